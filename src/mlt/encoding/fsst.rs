//! FSST: frequent pieces of up to 8 bytes as codes of one byte.
//!
//! Source: the encodings page, "FSST". A stream has the lengths of the symbols, a blob the symbols, and the corpus the
//! codes of all values together: below 255 a symbol, 255 the byte that follows it.

#[cfg(feature = "encode")]
use std::collections::HashMap;

use super::fault;
use crate::buffer::grow;
use crate::error::{Error, ErrorKind, Limit, Part};
use crate::input::Input;
use crate::mlt::{MltFault, Options};

const LENGTH: Part = Part::Values("", "symbol length");
const SYMBOL: Part = Part::Values("", "symbol");
const CODE: Part = Part::Values("", "code");

/// The code that says: the next byte as it is.
const ESCAPE: u8 = 255;

/// Symbols at most.
const MAX_SYMBOLS: usize = 255;

/// Bytes of a symbol at most.
const MAX_LENGTH: usize = 8;

/// Bytes that kernels write at once: with as many behind the last they are quick to the end.
const ROOM: usize = 72;

/// Symbols by their codes.
#[derive(Clone, Debug)]
pub struct Table {
    /// The bytes of each, the first lowest.
    symbols: [u64; 256],
    lengths: [u8; 256],
    count: usize,
}

impl Table {
    /// Symbols of these lengths, which stand in `symbols` behind each other.
    ///
    /// # Errors
    /// [`MltFault::FsstSymbols`], [`MltFault::FsstSymbolLength`], or [`MltFault::Lengths`] where the symbols have fewer
    /// bytes. The offset is where the symbol is, or would be.
    pub fn read(lengths: &[u32], symbols: Input<'_>) -> Result<Table, Error> {
        let mut table = Table { symbols: [0; 256], lengths: [0; 256], count: lengths.len() };
        if lengths.len() > MAX_SYMBOLS {
            let kind = MltFault::FsstSymbols { found: lengths.len() as u64 };
            return Err(fault(kind, LENGTH).at(symbols.offset()));
        }
        let (bytes, mut start) = (symbols.bytes(), 0);
        for (i, &found) in lengths.iter().enumerate() {
            let error = |kind, part| fault(kind, part).at(symbols.offset() + start as u64).index(i as u64);
            let length = match u8::try_from(found) {
                Ok(length) if usize::from(length) <= MAX_LENGTH => length,
                _ => return Err(error(MltFault::FsstSymbolLength { found }, LENGTH)),
            };
            let end = start + usize::from(length);
            let Some(symbol) = bytes.get(start..end) else {
                let kind = MltFault::Lengths { found: end as u64, available: bytes.len() as u64 };
                return Err(error(kind, SYMBOL));
            };
            let mut word = [0; MAX_LENGTH];
            word[..symbol.len()].copy_from_slice(symbol);
            (table.symbols[i], table.lengths[i], start) = (u64::from_le_bytes(word), length, end);
        }
        Ok(table)
    }

    /// The symbols in the order of their codes: 8 bytes of which the first so many count.
    pub fn symbols(&self) -> impl ExactSizeIterator<Item = ([u8; 8], u8)> {
        let symbols = self.symbols.iter().zip(&self.lengths).take(self.count);
        symbols.map(|(symbol, &length)| (symbol.to_le_bytes(), length))
    }
}

/// Expands a corpus. What `out` held is overwritten. `expected` is about how many bytes it should come to, which saves
/// work where it is right; no corpus comes to more than 8 times its bytes.
///
/// # Errors
/// [`MltFault::FsstCode`], [`MltFault::FsstEscape`], or more bytes than the limits allow.
pub fn expand(
    table: &Table,
    corpus: Input<'_>,
    expected: u64,
    out: &mut Vec<u8>,
    options: &Options,
) -> Result<(), Error> {
    let codes = corpus.bytes();
    let limit = options.limits.max_output_bytes;
    let allowed = usize::try_from(limit).unwrap_or(usize::MAX);
    let most = codes.len().saturating_mul(MAX_LENGTH).min(allowed);
    let expected = usize::try_from(expected).unwrap_or(usize::MAX);
    let (mut room, mut read, mut written) = (expected.saturating_add(ROOM).min(most), 0, 0);
    loop {
        grow(out, room)?;
        room = out.len().min(allowed);
        let (codes, to) = (&codes[read..], &mut out[written..room]);
        let seen = options.kernels.fsst(&table.symbols, &table.lengths, table.count, codes, to);
        // However a row of the caller's own counts, it is no more than there is.
        (read, written) = (read + seen.read.min(codes.len()), written + seen.written.min(to.len()));
        let kind = match codes[seen.read.min(codes.len())..] {
            [] => break,
            [ESCAPE] => ErrorKind::Mlt(MltFault::FsstEscape),
            [found, ..] if found != ESCAPE && usize::from(found) >= table.count => {
                let symbols = u16::try_from(table.count).unwrap_or(u16::MAX);
                ErrorKind::Mlt(MltFault::FsstCode { found, symbols })
            }
            _ if room < most => {
                room = room.saturating_mul(2).saturating_add(ROOM).min(most);
                continue;
            }
            _ => {
                let needed = written as u64 + MAX_LENGTH as u64;
                ErrorKind::LimitExceeded { needed, limit, what: Limit::OutputBytes }
            }
        };
        return Err(Error::new(kind, CODE).at(corpus.offset() + read as u64));
    }
    out.truncate(written);
    Ok(())
}

/// A text in codes, and their symbols.
#[cfg(feature = "encode")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// Bytes of each symbol.
    pub lengths: Vec<u32>,
    /// The symbols behind each other.
    pub symbols: Vec<u8>,
    /// The codes.
    pub corpus: Vec<u8>,
}

/// Finds symbols for a text and compresses it with them.
#[cfg(feature = "encode")]
pub fn encode(text: &[u8]) -> Compressed {
    let symbols = Symbols::train(text);
    let (mut corpus, mut rest) = (Vec::new(), text);
    while let Some(&byte) = rest.first() {
        let taken = match symbols.longest(rest) {
            Some(code) => {
                corpus.push(u8::try_from(code).expect("255 symbols at most"));
                symbols.sorted[code].length
            }
            None => {
                corpus.extend([ESCAPE, byte]);
                1
            }
        };
        rest = &rest[taken..];
    }
    let mut compressed = Compressed { lengths: Vec::new(), symbols: Vec::new(), corpus };
    for symbol in symbols.sorted {
        compressed.lengths.push(u32::try_from(symbol.length).expect("8 bytes at most"));
        compressed.symbols.extend_from_slice(&symbol.bytes[..symbol.length]);
    }
    compressed
}

/// A candidate; bytes behind its length are 0.
#[cfg(feature = "encode")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Symbol {
    bytes: [u8; MAX_LENGTH],
    length: usize,
}

#[cfg(feature = "encode")]
impl Symbol {
    /// The first bytes of a text, as many as a symbol can have.
    fn of(text: &[u8]) -> Symbol {
        let (mut bytes, length) = ([0; MAX_LENGTH], text.len().min(MAX_LENGTH));
        bytes[..length].copy_from_slice(&text[..length]);
        Symbol { bytes, length }
    }
}

/// Symbols, by which one can look for the longest that a text starts with.
#[cfg(feature = "encode")]
struct Symbols {
    /// By the first byte, then the longest first.
    sorted: Vec<Symbol>,
    /// Where those of each first byte start.
    starts: [usize; 257],
}

#[cfg(feature = "encode")]
impl Symbols {
    /// How often symbols are chosen anew, from those before and pairs of them.
    const GENERATIONS: u32 = 5;
    /// Bytes of a text that are looked at, and of the pieces that they are taken in.
    const SAMPLE: usize = 1 << 15;
    const PIECE: usize = 1 << 9;

    fn new(mut sorted: Vec<Symbol>) -> Symbols {
        sorted.sort_by_key(|symbol| (symbol.bytes[0], MAX_LENGTH - symbol.length, symbol.bytes));
        let mut starts = [0; 257];
        for (first, start) in starts.iter_mut().enumerate() {
            *start = sorted.partition_point(|symbol| usize::from(symbol.bytes[0]) < first);
        }
        Symbols { sorted, starts }
    }

    /// The code of the longest symbol that a text starts with.
    fn longest(&self, text: &[u8]) -> Option<usize> {
        let first = usize::from(*text.first()?);
        let (next, text) = (Symbol::of(text), u64::from_le_bytes(Symbol::of(text).bytes));
        (self.starts[first]..self.starts[first + 1]).find(|&code| {
            let Symbol { bytes, length } = self.sorted[code];
            let other = (u64::from_le_bytes(bytes) ^ text) << (8 * (MAX_LENGTH - length));
            length <= next.length && other == 0
        })
    }

    /// The symbols that save the most in a sample of a text, found in generations: of each, the symbols that the sample
    /// splits into, and neighbours together, compete for the places of the next.
    fn train(text: &[u8]) -> Symbols {
        let pieces = (text.len().min(Self::SAMPLE)).div_ceil(Self::PIECE).max(1);
        let sample = |i: usize| {
            let start = text.len().saturating_sub(Self::PIECE) / pieces.saturating_sub(1).max(1) * i;
            &text[start..(start + Self::PIECE).min(text.len())]
        };
        let mut symbols = Symbols::new(Vec::new());
        for _ in 0..Self::GENERATIONS {
            let mut counts: HashMap<Symbol, u64> = HashMap::new();
            let mut count = |piece: &[u8]| *counts.entry(Symbol::of(piece)).or_default() += 1;
            for piece in (0..pieces).map(sample) {
                let (mut at, mut before) = (0, None);
                while at < piece.len() {
                    let length = symbols.longest(&piece[at..]).map_or(1, |code| symbols.sorted[code].length);
                    let end = at + length;
                    count(&piece[at..end]);
                    if length > 1 {
                        // So that single bytes stay in the race.
                        count(&piece[at..=at]);
                    }
                    if let Some(before) = before {
                        count(&piece[before..end]);
                    }
                    (at, before) = (end, Some(at));
                }
            }
            let mut best: Vec<_> = counts.into_iter().collect();
            best.sort_by_key(|&(symbol, count)| (std::cmp::Reverse(count * symbol.length as u64), symbol));
            best.truncate(MAX_SYMBOLS);
            symbols = Symbols::new(best.into_iter().map(|(symbol, _)| symbol).collect());
        }
        symbols
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::alike;
    use super::*;
    use crate::limits::Limits;

    fn table(symbols: &[&[u8]]) -> Table {
        let lengths: Vec<u32> = symbols.iter().map(|symbol| symbol.len() as u32).collect();
        Table::read(&lengths, Input::new(&symbols.concat())).unwrap()
    }

    fn expanded(table: &Table, corpus: &[u8], limits: Limits) -> Result<Vec<u8>, Error> {
        let results = [0, 1, 100, u64::MAX].map(|expected| {
            alike(|options| {
                let (options, mut out) = (options.limits(limits), vec![9; 3]);
                expand(table, Input::at(corpus, 50), expected, &mut out, &options).map(|()| out)
            })
        });
        // Whatever is expected.
        let [first, others @ ..] = results;
        for other in others {
            assert_eq!(first.as_ref().map_err(Error::to_string), other.as_ref().map_err(Error::to_string));
        }
        first
    }

    #[test]
    fn worked_example() {
        let table = table(&[b"ab", b"cd"]);
        assert_eq!(expanded(&table, &[0, 1, 0, 255, b'z'], Limits::default()).unwrap(), b"abcdabz");
        assert_eq!(
            table.symbols().map(|(bytes, length)| (bytes[0], length)).collect::<Vec<_>>(),
            [(b'a', 2), (b'c', 2)]
        );
    }

    #[test]
    fn corpora() {
        // Nothing, escapes alone, symbols of every length, an escaped escape.
        assert_eq!(expanded(&table(&[]), &[], Limits::default()).unwrap(), b"");
        assert_eq!(expanded(&table(&[]), &[255, b'a', 255, 255], Limits::default()).unwrap(), b"a\xff");
        let symbols: Vec<&[u8]> = (0..=8).map(|length| &b"abcdefgh"[..length]).collect();
        let all = table(&symbols);
        for n in [1, 7, 8, 9, 63, 64, 65, 1000] {
            let corpus: Vec<u8> = (0..n).map(|i| (i * 7 % 9) as u8).collect();
            let expected: Vec<u8> = corpus.iter().flat_map(|&code| symbols[usize::from(code)].to_vec()).collect();
            assert_eq!(expanded(&all, &corpus, Limits::default()).unwrap(), expected);
        }
        let full: Vec<Vec<u8>> = (0..=254).map(|code| vec![code; 8]).collect();
        let full = table(&full.iter().map(|symbol| &symbol[..]).collect::<Vec<_>>());
        let corpus: Vec<u8> = (0..=254).collect();
        let expected: Vec<u8> = (0..=254).flat_map(|code| [code; 8]).collect();
        assert_eq!(expanded(&full, &corpus, Limits::default()).unwrap(), expected);
    }

    #[test]
    fn faults_of_tables() {
        let fault = |lengths: &[u32], symbols: &[u8]| {
            let error = Table::read(lengths, Input::at(symbols, 20)).unwrap_err();
            (error.kind().name(), error.offset(), error.value_index())
        };
        assert_eq!(fault(&[0; 256], b""), ("fsst_symbols", Some(20), None));
        assert_eq!(fault(&[2, 9], b"abcdefghijkl"), ("fsst_symbol_length", Some(22), Some(1)));
        assert_eq!(fault(&[u32::MAX], b""), ("fsst_symbol_length", Some(20), Some(0)));
        assert_eq!(fault(&[2, 2], b"abc"), ("lengths_past_bytes", Some(22), Some(1)));
        // Surplus bytes are passed over.
        Table::read(&[2], Input::new(b"abc")).unwrap();
    }

    #[test]
    fn faults_of_corpora() {
        let table = table(&[b"ab", b"cd"]);
        for n in [0, 1, 7, 8, 9, 200] {
            let fault = |end: &[u8]| {
                let error = expanded(&table, &[&vec![1; n], end].concat(), Limits::default()).unwrap_err();
                (error.kind().name(), error.offset().unwrap() - 50 - n as u64)
            };
            assert_eq!(fault(&[2]), ("fsst_code", 0));
            assert_eq!(fault(&[0, 255, 254, 254, 1]), ("fsst_code", 3));
            assert_eq!(fault(&[255]), ("fsst_escape", 0));
            assert_eq!(fault(&[255, 255, 255]), ("fsst_escape", 2));
        }
    }

    #[test]
    fn limits() {
        let table = table(&[b"abcdefgh"]);
        let limited = |bytes| expanded(&table, &[0; 100], Limits::default().with_output_bytes(bytes));
        assert_eq!(limited(800).unwrap().len(), 800);
        for bytes in [0, 1, 64, 799] {
            assert_eq!(limited(bytes).unwrap_err().kind().name(), "limit_exceeded");
        }
    }

    #[cfg(feature = "encode")]
    #[test]
    fn encodes() {
        let names = include_str!("strings.rs").repeat(4);
        let bytes: Vec<u8> = (0..70_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for text in [&b""[..], b"a", b"aaaaaaaaaaaaaaaaaaaaaaaa", &[0; 100], &[255; 3], names.as_bytes(), &bytes] {
            let Compressed { lengths, symbols, corpus } = encode(text);
            let table = Table::read(&lengths, Input::new(&symbols)).unwrap();
            assert_eq!(expanded(&table, &corpus, Limits::default()).unwrap(), text);
        }
        assert!(encode(names.as_bytes()).corpus.len() * 2 < names.len());
    }
}
