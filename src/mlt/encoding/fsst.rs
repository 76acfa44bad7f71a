//! FSST: frequent pieces of up to 8 bytes as codes of one byte.
//!
//! Source: the encodings page, "FSST". A stream has the lengths of the symbols, a blob the symbols, and the corpus the
//! codes of all values together: below 255 a symbol, 255 the byte that follows it.

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
const ROOM: usize = 64;

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
