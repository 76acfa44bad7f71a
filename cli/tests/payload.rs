//! `tilekern payload`, on sections that are made here.

mod support;

use std::fs;

use serde_json::{Value, json};
use support::{Run, tilekern, tilekern_with};
use tempfile::tempdir;

/// Blocks of 128 values in 4 miniblocks, 5 values, the first 7; then differences of 2.
const DELTAS: [u8; 10] = [0x80, 0x01, 0x04, 0x05, 0x0e, 0x04, 0x00, 0x00, 0x00, 0x00];

/// The command on a section, with these words as its options.
fn payload(section: &[u8], options: &str) -> Run {
    let words = ["payload", "-"].into_iter().chain(options.split(' '));
    tilekern_with(words, section)
}

fn deltas(options: &str) -> Run {
    payload(&DELTAS, &format!("--encoding DELTA_BINARY_PACKED {options}"))
}

/// Passes a run that ended in such a fault, told as people and as programs get it.
fn fault(section: &[u8], options: &str, kind: &str, offset: Option<u64>) {
    let run = payload(section, options);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{options}: {run:?}");
    assert!(run.stderr.ends_with(&format!("[{kind}]\n")), "{options}: {run:?}");
    let run = payload(section, &format!("{options} --json"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{options}: {run:?}");
    let error = &run.json()["error"];
    assert_eq!((error["kind"].as_str(), error["offset"].as_u64()), (Some(kind), offset), "{options}: {error}");
}

#[test]
fn values_and_steps_are_shown() {
    let run = deltas("--type INT64 --count 5");
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "7\n9\n11\n13\n15\n", ""));
    let run = deltas("--type INT64 --count 5 --json");
    assert_eq!(run.json(), json!({"values": ["7", "9", "11", "13", "15"], "consumed": 10}));
    let run = deltas("--type int32 --count 5 --trace --json");
    let found = run.json();
    assert_eq!((&found["values"], &found["consumed"]), (&json!([7, 9, 11, 13, 15]), &json!(10)));
    let step = |label: &str, depth: u8, span: [u64; 2], bytes: &str, detail: &str| json!({"label": label, "depth": depth, "start": span[0], "end": span[1], "bytes": bytes, "detail": detail});
    let expected = json!([
        step("header", 0, [0, 5], "800104050e", "blocks of 128 values in 4 miniblocks; 5 values; the first is 7"),
        step("block 0", 0, [5, 10], "0400000000", "smallest delta 2; bit widths [0, 0, 0, 0]"),
        step("block 0, miniblock 0", 0, [10, 10], "", "0 bits per delta; deltas [2, 2, 2, 2]"),
    ]);
    assert_eq!(found["steps"], expected);
    let run = deltas("--type INT32 --count 5 --trace");
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 4 + 1 + 5, "{run:?}");
    assert!(lines[1].starts_with("  0..5  header  ") && lines[1].contains("80 01 04 05 0e"), "{run:?}");
    assert_eq!(lines[5..], ["7", "9", "11", "13", "15"], "{run:?}");
}

#[test]
fn every_type_and_encoding_is_taken() {
    let folder = tempdir().unwrap();
    let dictionary = folder.path().join("page");
    fs::write(&dictionary, b"\x03\0\0\0abc\0\0\0\0\x02\0\0\0\xff\xfe").unwrap();
    let page = format!("--dictionary {}", dictionary.to_str().expect("text"));
    for (section, options, values) in [
        (&b"\x05"[..], "--encoding PLAIN --type BOOLEAN --count 3".to_owned(), json!([true, false, true])),
        (b"\x02\0\0\0\x06\x01", "--encoding RLE --type BOOLEAN --count 3".to_owned(), json!([true, true, true])),
        (b"\0\0\xc0\x7f", "--encoding PLAIN --type FLOAT --count 1".to_owned(), json!(["0x7fc00000"])),
        (b"abcdefghijkl", "--encoding PLAIN --type INT96 --count 1".to_owned(), json!(["6162636465666768696a6b6c"])),
        (
            b"abcdef",
            "--encoding BYTE_STREAM_SPLIT --type FIXED_LEN_BYTE_ARRAY --type-length 3 --count 2".to_owned(),
            json!(["616365", "626466"]),
        ),
        (b"\x03\x88\xc6\xfa", "--encoding HYBRID --bit-width 3 --count 8".to_owned(), json!([0, 1, 2, 3, 4, 5, 6, 7])),
        (b"\x05\x39\x77", "--encoding BIT_PACKED --bit-width 3 --count 8".to_owned(), json!([0, 1, 2, 3, 4, 5, 6, 7])),
        (
            b"\x02\x04\x01\x02\x02",
            format!("--encoding RLE_DICTIONARY --type BYTE_ARRAY --count 3 {page}"),
            json!(["", "", "fffe"]),
        ),
        (b"", format!("--encoding PLAIN_DICTIONARY --type BYTE_ARRAY --count 0 {page}"), json!([])),
    ] {
        let run = payload(section, &format!("{options} --json"));
        assert_eq!(run.code, Some(0), "{options}: {run:?}");
        assert_eq!(run.json(), json!({"values": values, "consumed": section.len()}), "{options}");
        let text = payload(section, &options);
        assert_eq!((text.code, text.stdout.lines().count()), (Some(0), values.as_array().map_or(0, Vec::len)));
    }
    let text =
        payload(b"\x02\x04\x01\x02\x00", &format!("--encoding RLE_DICTIONARY --type BYTE_ARRAY --count 3 {page}"));
    assert_eq!(text.stdout, "\"\"\n\"\"\nabc\n");
}

#[test]
fn faults_of_the_data_are_told_with_their_place() {
    let deltas = "--encoding DELTA_BINARY_PACKED --type INT64 --count";
    fault(&DELTAS, &format!("{deltas} 6"), "count_mismatch", Some(0));
    fault(&DELTAS[..9], &format!("{deltas} 5"), "truncated", Some(6));
    fault(&DELTAS, &format!("{deltas} -1"), "count_negative", None);
    fault(&DELTAS, &format!("{deltas} 5 --max-output 39"), "limit_exceeded", None);
    let fixed = "--encoding PLAIN --type FIXED_LEN_BYTE_ARRAY --count 1 --type-length";
    fault(&DELTAS, &format!("{fixed} 0"), "type_length_zero", None);
    fault(&DELTAS, &format!("{fixed} -3"), "type_length_zero", None);
    fault(&DELTAS, &format!("{fixed} 9"), "trailing_bytes", Some(9));
    fault(&DELTAS, "--encoding HYBRID --bit-width 33 --count 1", "bit_width_too_large", Some(0));
    fault(&DELTAS, "--encoding HYBRID --bit-width -1 --count 1", "out_of_range", None);
    fault(&DELTAS, "--encoding RLE --type INT32 --count 1", "unsupported", Some(0));
    fault(b"\x02\0", "--encoding HYBRID --bit-width 1 --count 3", "truncated", Some(2));
    // A trace tells the steps before the fault.
    let cut = payload(&DELTAS[..9], &format!("{deltas} 5 --trace --json"));
    let found = cut.json();
    assert_eq!((cut.code, found["error"]["kind"].as_str(), found.get("values")), (Some(1), Some("truncated"), None));
    assert_eq!(found["steps"].as_array().map(Vec::len), Some(1), "{found}");
    let cut = payload(&DELTAS[..9], &format!("{deltas} 5 --trace"));
    assert_eq!((cut.code, cut.stdout.lines().count()), (Some(1), 2), "{cut:?}");
}

#[test]
fn faults_say_what_to_do() {
    let deltas = "--encoding DELTA_BINARY_PACKED --count";
    for (section, options, says) in [
        (&DELTAS[..], format!("{deltas} 4 --type INT64"), "; give --count 5 ["),
        (&DELTAS, format!("{deltas} -1 --type INT64"), "; give --count 0 or more ["),
        (&DELTAS, format!("{deltas} 99999999999999 --type INT64"), "; check --count ["),
        (&DELTAS, format!("{deltas} 5 --type INT64 --max-output 39"), "; if you trust the source, raise --max-output"),
        (&DELTAS[5..], format!("{deltas} 5 --type INT64"), "neither levels nor compression"),
        (&DELTAS, format!("{deltas} 5 --type FLOAT"), "; FLOAT has PLAIN, "),
        (&DELTAS, "--encoding PLAIN --type INT64 --count 2".to_owned(), "; check --count and --type, "),
        (&DELTAS, "--encoding PLAIN --type INT64 --count 1".to_owned(), "the section ends with its values ["),
    ] {
        let run = payload(section, &options);
        assert!(run.code == Some(1) && run.stderr.contains(says), "{options}: {run:?}");
        for word in ["fetch", "max_"] {
            assert!(!run.stderr.contains(word), "{options}: {run:?}");
        }
    }
    assert_eq!(payload(&DELTAS, "--encoding delta_binary_packed --count 5 --type int64").code, Some(0));
}

#[test]
fn a_damaged_dictionary_is_told_by_its_name() {
    let folder = tempdir().unwrap();
    let page = folder.path().join("page");
    let page = page.to_str().expect("text");
    fs::write(page, b"\x03\0\0\0ab").unwrap();
    let options = "--encoding RLE_DICTIONARY --count 1 --json --dictionary";
    let run = payload(b"\x00\x02", &format!("{options} {page} --type BYTE_ARRAY"));
    let error = &run.json()["error"];
    assert_eq!((run.code, error["kind"].as_str(), error["path"].as_str()), (Some(1), Some("truncated"), Some(page)));
    let run = payload(b"\x00\x02", &format!("{options} {page} --type INT32"));
    let error = &run.json()["error"];
    assert_eq!(
        (run.code, error["kind"].as_str(), error["offset"].as_u64()),
        (Some(1), Some("trailing_bytes"), Some(4))
    );
    let run = payload(b"\x00\x02", &format!("{options} {page}.none --type INT32"));
    assert_eq!((run.code, run.json()["error"]["kind"].as_str()), (Some(1), Some("io")));
}

#[test]
fn wrong_use_is_told() {
    for (options, says) in [
        ("--count 1 --type INT32", "--encoding"),
        ("--encoding PLAIN --type INT32", "--count"),
        ("--encoding ZIP --count 1", "DELTA_BINARY_PACKED"),
        ("--encoding PLAIN --count 1", "--type"),
        ("--encoding PLAIN --count 1 --type INT32 --bit-width 3", "--bit-width"),
        ("--encoding PLAIN --count 1 --type INT32 --type-length 3", "--type-length"),
        ("--encoding PLAIN --count 1 --type FIXED_LEN_BYTE_ARRAY", "--type-length"),
        ("--encoding HYBRID --count 1", "--bit-width"),
        ("--encoding RLE_DICTIONARY --count 1 --type INT32", "--dictionary"),
        ("--encoding PLAIN --count 1 --type INT32 --dictionary x", "no dictionary"),
        ("--encoding PLAIN --count x --type INT32", "invalid value"),
    ] {
        let run = payload(&DELTAS, options);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{options}: {run:?}");
        assert!(run.stderr.contains(says), "{options}: {run:?}");
    }
}

#[test]
fn kernels_can_be_chosen() {
    for level in tilekern::kernels::Kernels::available() {
        let run = deltas(&format!("--type INT64 --count 5 --kernel {}", level.name()));
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "7\n9\n11\n13\n15\n"), "{run:?}");
    }
    let run = tilekern(["payload", "none.bin", "--encoding", "PLAIN", "--type", "INT32", "--count", "1", "--json"]);
    assert_eq!((run.code, run.json()["error"]["path"].clone()), (Some(1), Value::from("none.bin")));
}
