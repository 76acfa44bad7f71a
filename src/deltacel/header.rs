//! The first 64 bytes of a tile.
//!
//! Source: DELTACEL file format, "Header (64 bytes)".

use crate::error::{Error, ErrorKind, Part};
use crate::input::Input;

/// What a tile starts with.
pub const MAGIC: [u8; 8] = *b"DELTACEL";
pub(crate) const VERSION: u32 = 2;
pub(crate) const HEADER_LEN: usize = 64;

/// The largest number of genes: gene indices are `i32`.
pub(crate) const MAX_GENES: u32 = 1 << 31;

/// The header's fields, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Cells (rows).
    pub n_cells: u64,
    /// Stored nonzeros.
    pub nnz: u64,
    /// Genes (columns), 1 to 2^31.
    pub n_genes: u32,
    /// Chunks.
    pub n_chunks: u32,
    /// Absolute offset of the indptr, a multiple of 8.
    pub indptr_off: u64,
    /// Bytes of the tile.
    pub total_size: u64,
    /// CRC-32 of the bytes from 64 on.
    pub crc32: u32,
}

/// The header's fields in order: name and absolute offset.
pub(crate) const FIELDS: [(&str, u64); 11] = [
    ("magic", 0),
    ("version", 8),
    ("flags", 12),
    ("n_cells", 16),
    ("nnz", 24),
    ("n_genes", 32),
    ("n_chunks", 36),
    ("indptr_off", 40),
    ("total_size", 48),
    ("crc32", 56),
    ("reserved", 60),
];

impl Header {
    /// Reads the header and checks what it says by itself; it is outside the CRC, so each field counts.
    pub(crate) fn read(object: Input<'_>) -> Result<Header, Error> {
        if object.end() < HEADER_LEN as u64 {
            let kind = ErrorKind::Truncated { needed: HEADER_LEN as u64, available: object.end() };
            // Eight other bytes are no short tile but no tile at all.
            if !object.bytes().starts_with(&MAGIC[..object.bytes().len().min(MAGIC.len())]) {
                return Err(Error::new(ErrorKind::BadMagic, Part::Header("magic")).at(0));
            }
            return Err(Error::new(kind, Part::Header("header")).at(object.end()));
        }
        let mut input = object;
        let magic: [u8; 8] = input.array(Part::Header("magic"))?;
        if magic != MAGIC {
            return Err(Error::new(ErrorKind::BadMagic, Part::Header("magic")).at(0));
        }
        let version = input.u32(Part::Header("version"))?;
        if version != VERSION {
            let kind = ErrorKind::Version { found: version.into(), expected: VERSION.into() };
            return Err(Error::new(kind, Part::Header("version")).at(8));
        }
        let flags = input.u32(Part::Header("flags"))?;
        if flags != 0 {
            return Err(Error::new(ErrorKind::Reserved { found: flags.into() }, Part::Header("flags")).at(12));
        }
        let header = Header {
            n_cells: input.u64(Part::Header("n_cells"))?,
            nnz: input.u64(Part::Header("nnz"))?,
            n_genes: input.u32(Part::Header("n_genes"))?,
            n_chunks: input.u32(Part::Header("n_chunks"))?,
            indptr_off: input.u64(Part::Header("indptr_off"))?,
            total_size: input.u64(Part::Header("total_size"))?,
            crc32: input.u32(Part::Header("crc32"))?,
        };
        let reserved = input.u32(Part::Header("reserved"))?;
        if reserved != 0 {
            return Err(Error::new(ErrorKind::Reserved { found: reserved.into() }, Part::Header("reserved")).at(60));
        }
        if header.n_genes == 0 || header.n_genes > MAX_GENES {
            let kind = ErrorKind::OutOfRange { found: header.n_genes.into(), min: 1, max: MAX_GENES.into() };
            return Err(Error::new(kind, Part::Header("n_genes")).at(32));
        }
        if header.total_size > object.end() {
            let kind = ErrorKind::Truncated { needed: header.total_size, available: object.end() };
            return Err(Error::new(kind, Part::Header("total_size")).at(48));
        }
        if header.total_size < object.end() {
            let kind = ErrorKind::Inconsistent { found: header.total_size.into(), expected: object.end().into() };
            return Err(Error::new(kind, Part::Header("total_size")).at(48));
        }
        Ok(header)
    }

    /// The header's 64 bytes.
    #[cfg(feature = "encode")]
    pub(crate) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.n_cells.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.nnz.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.n_genes.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.n_chunks.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.indptr_off.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.total_size.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.crc32.to_le_bytes());
        bytes
    }
}
