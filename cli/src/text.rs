//! Text from data, so that a terminal shows it and does not obey it.

use std::borrow::Cow;
use std::fmt::Write;

use indicatif::HumanCount;
use tilekern::deltacel::dataset::obs::Value;

/// Whether a character only shows. Control characters steer a terminal, and marks of direction, zero-width spaces and
/// line separators make text look like another one.
fn is_plain(c: char) -> bool {
    !(c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
}

/// The text with every other character as an escape of JSON. In a JSON document such characters stand in strings alone,
/// and so the document means the same.
pub fn plain(text: &str) -> Cow<'_, str> {
    // Most text is of letters and digits alone.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if is_plain(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => write!(out, "\\u{:04x}", u32::from(c)).expect("strings grow"),
        }
    }
    Cow::Owned(out)
}

/// So many things: `1 cell`, `1,234 cells`.
pub fn counted(n: impl TryInto<u64>, thing: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{} {thing}{}", HumanCount(n), if n == 1 { "" } else { "s" })
}

/// At most `most` characters of a text, the last of which is `…` where there are more.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.chars().take(most.saturating_sub(1)).chain(['…']).collect()),
    }
}

/// Text between tabs or in a table: in quotes where it is empty, has quotes, or is not plain.
pub fn quoted(text: &str) -> String {
    if !text.is_empty() && text.chars().all(|c| c != '"' && is_plain(c)) {
        return text.to_owned();
    }
    plain(&serde_json::Value::from(text).to_string()).into_owned()
}

/// A value between tabs or in a table: nothing for a missing one; text that is empty or not plain in quotes.
pub fn shown(value: Value<'_>) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        value => match json(value) {
            // Words for numbers that JSON has not.
            serde_json::Value::String(word) => word,
            other => plain(&other.to_string()).into_owned(),
        },
    }
}

/// A value as JSON.
pub fn json(value: Value<'_>) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => value.into(),
        // What is stored has 64 bits.
        Value::Int(value) => match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => value.to_string().into(),
        },
        Value::Float(value) if value.is_nan() => "NaN".into(),
        Value::Float(value) if value.is_infinite() => if value > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        Value::Float(value) => value.into(),
        Value::String(text) => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(plain("na\u{ef}ve \"x\" \u{4e2d}"), "na\u{ef}ve \"x\" \u{4e2d}");
        assert_eq!(plain("\u{1b}[31m\u{9b}2J\u{7f}\u{202e}\r\n"), "\\u001b[31m\\u009b2J\\u007f\\u202e\\u000d\\n");
        assert_eq!(shown(Value::String("a\u{9b}b")), "\"a\\u009bb\"");
        assert_eq!(shown(Value::String("\u{1b}]0;x\u{7}")), "\"\\u001b]0;x\\u0007\"");
        assert_eq!(shown(Value::String("")), "\"\"");
        let document = serde_json::to_string(&["\u{1b}\u{9b}\u{2028}"]).unwrap();
        assert!(plain(&document).is_ascii());
        assert_eq!(serde_json::from_str::<[String; 1]>(&plain(&document)).unwrap(), ["\u{1b}\u{9b}\u{2028}"]);
    }

    #[test]
    fn things_are_counted() {
        assert_eq!([0u64, 1, 2, 62_954].map(|n| counted(n, "gene")), ["0 genes", "1 gene", "2 genes", "62,954 genes"]);
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(cut("\u{e9}\u{e9}\u{e9}", 3), "\u{e9}\u{e9}\u{e9}");
        assert_eq!(cut("\u{e9}\u{e9}\u{e9}\u{e9}", 3), "\u{e9}\u{e9}…");
    }
}
