//! The error of every fallible call: what is wrong, in which part, at which absolute byte offset.

use std::fmt;
use std::path::{Path, PathBuf};

/// A fault in the data, in the environment, or in a request.
///
/// Its `Display` is one line that says where, what, and what to do about it; its `Debug` is the same.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    part: Part,
    offset: Option<u64>,
    index: Option<u64>,
    page: Option<PagePlace>,
    #[cfg(feature = "mlt")]
    layer: Option<crate::mlt::LayerPlace>,
    unpacked: Option<u64>,
    path: Option<PathBuf>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Which page of a Parquet file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePlace {
    /// Its row group.
    pub row_group: u32,
    /// Its column, as the leaves of the schema are counted.
    pub column: u32,
    /// Its number in the column chunk; dictionary pages count. None: the fault is in no page.
    pub page: Option<u32>,
}

/// What is wrong. The names (see [`ErrorKind::name`]) are stable; the numbers say by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Reading or writing failed; the source says how.
    Io(std::io::ErrorKind),
    /// The object ends before the part does.
    Truncated {
        /// Bytes that the part needs, counted from the start of the object.
        needed: u64,
        /// Bytes that the object has.
        available: u64,
    },
    /// Not the format's magic bytes.
    BadMagic,
    /// A version that this reader does not know.
    Version {
        /// The version found.
        found: u64,
        /// The version that is understood.
        expected: u64,
    },
    /// A field that must be 0 is not.
    Reserved {
        /// Its value.
        found: u64,
    },
    /// A checksum does not match the bytes that it covers.
    Checksum {
        /// The checksum stored.
        found: u64,
        /// The checksum of the bytes.
        expected: u64,
    },
    /// A digest does not match the bytes that it covers.
    Digest,
    /// Two places disagree.
    Inconsistent {
        /// The value found.
        found: i128,
        /// The value that another place implies.
        expected: i128,
    },
    /// A value outside the range that the format allows.
    OutOfRange {
        /// The value found.
        found: i128,
        /// The smallest that is allowed.
        min: i128,
        /// The largest that is allowed.
        max: i128,
    },
    /// An offset that must be a multiple of `align` is not.
    Misaligned {
        /// The offset found.
        found: u64,
        /// What it must be a multiple of.
        align: u64,
    },
    /// A zstd frame is unsound.
    Frame(FrameFault),
    /// A nonzero names the same gene as the one before it.
    RepeatedGene,
    /// A value that must be given once only.
    Repeated {
        /// The index at which it was given first.
        first: u64,
    },
    /// A name that must be that of one thing alone.
    Ambiguous {
        /// How many have it.
        found: u64,
    },
    /// A dataset does not have the genes of those that it is to be read with, or its table of genes names others than its
    /// list.
    OtherGenes,
    /// A nonzero names a gene below that of the one before it.
    UnsortedGenes {
        /// The gene of the nonzero before it.
        after: i64,
    },
    /// A stored count is 0.
    ZeroCount,
    /// A value has an exception, but its stream does not hold 65535 there.
    NotExcepted {
        /// What the stream holds.
        found: u64,
    },
    /// Text that is no JSON, not UTF-8, or not of the shape asked for.
    Syntax(SyntaxFault),
    /// A section of encoded values breaks a rule of its encoding.
    Encoding(EncodingFault),
    /// A MapLibre Tile breaks a rule of its format.
    #[cfg(feature = "mlt")]
    Mlt(crate::mlt::MltFault),
    /// The compressed body of a page does not unpack to what its header states.
    Compression(CompressionFault),
    /// A required field is absent.
    Missing,
    /// A field has another type than the format states.
    WrongType,
    /// More than [`Limits`](crate::Limits) allow.
    LimitExceeded {
        /// What the data asks for.
        needed: u64,
        /// What is allowed.
        limit: u64,
        /// Which limit.
        what: Limit,
    },
    /// More exceptions than the writer's policy allows.
    TooManyExceptions {
        /// Exceptions in the tile.
        found: u64,
        /// The policy's bound.
        max: u64,
    },
    /// Legal, but not possible here.
    Unsupported(Unsupported),
    /// A kernel was asked for that is unknown or that this CPU lacks; the source names them.
    KernelUnavailable,
}

/// What is wrong with a zstd frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameFault {
    /// The stream does not start with the magic of a zstd frame.
    Magic,
    /// The frame, or a block of it, goes past the stream's end.
    Truncated,
    /// A reserved bit or block type is used.
    Reserved,
    /// The header does not state the content's size.
    NoContentSize,
    /// The stated size is not what the stream must hold.
    ContentSize {
        /// Bytes stated.
        found: u64,
        /// Bytes that the stream must hold.
        expected: u64,
    },
    /// The stated size is more than the frame's blocks can hold.
    Unreachable {
        /// Bytes stated.
        found: u64,
        /// Bytes that the blocks can hold at most.
        max: u64,
    },
    /// With this frame, the object's streams have far more blocks than its bytes: they share bytes to slow a reader down.
    Overlap {
        /// Blocks that are let pass.
        max: u64,
    },
    /// A block is larger than the format allows.
    BlockSize {
        /// Bytes stated.
        found: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// The frame needs a dictionary.
    Dictionary {
        /// The dictionary's id.
        id: u32,
    },
    /// Bytes follow the frame inside the stream.
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// The frame's content does not decode, or its checksum is wrong.
    Corrupt,
}

/// What is wrong with a section of encoded values: of Parquet, and what MapLibre Tiles share with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodingFault {
    /// A varint has more bits than its field can hold.
    VarintOverflow {
        /// Bits that the field can hold.
        bits: u32,
    },
    /// The block size of a delta encoding is 0 or no multiple of 128.
    BlockSize {
        /// The size stated, in values.
        found: u64,
    },
    /// A block of a delta encoding has no miniblocks.
    NoMiniblocks,
    /// The miniblocks of a block do not share its values in multiples of 32.
    MiniblockSize {
        /// Values of a block.
        block: u64,
        /// Miniblocks of a block.
        miniblocks: u64,
    },
    /// A value is packed in more bits than its type has.
    BitWidth {
        /// Bits stated.
        found: u32,
        /// Bits of the type.
        max: u32,
    },
    /// A value does not fit its type.
    Range {
        /// The value found.
        found: i64,
    },
    /// A repeated value has bits above the width of its section.
    Width {
        /// The value found.
        found: u32,
        /// The width, in bits.
        width: u32,
    },
    /// The section states another number of values than its page.
    Count {
        /// Values that the section states.
        found: u64,
        /// Values that the page states.
        expected: u64,
    },
    /// A negative number of values.
    CountNegative {
        /// The number found.
        found: i64,
    },
    /// Bytes follow the last value.
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// A length below 0.
    NegativeLength {
        /// The length found.
        found: i64,
    },
    /// A length that the type does not allow.
    Length {
        /// Bytes found.
        found: u64,
        /// Bytes of a value, of which there may be several.
        expected: u64,
    },
    /// A value shares more bytes with the one before it than that has.
    Prefix {
        /// Bytes said to be shared.
        found: u64,
        /// Bytes of the value before.
        max: u64,
    },
    /// An index names no entry of the dictionary.
    Index {
        /// The index found.
        found: u32,
        /// Entries of the dictionary.
        entries: u64,
    },
    /// A run without values.
    EmptyRun,
    /// A run of more values than a page can have.
    RunTooLong {
        /// Values of the run.
        found: u64,
        /// Values allowed.
        max: u64,
    },
    /// Values of a fixed length of 0 bytes, or fewer.
    TypeLength {
        /// The length stated.
        found: i64,
    },
    /// An ALP section in a mode that is not known.
    AlpMode {
        /// The mode stated.
        found: u8,
    },
    /// The vectors of an ALP section are too small or too large.
    AlpVectorSize {
        /// The stated logarithm of the size.
        found: u8,
    },
    /// A vector of an ALP section does not start where the one before it ends.
    AlpOffset {
        /// The offset stated.
        found: u64,
        /// The offset implied.
        expected: u64,
    },
    /// The exponent of an ALP vector is too large, or its factor is larger than that.
    AlpExponent {
        /// The number found.
        found: u8,
        /// The largest allowed.
        max: u8,
    },
    /// An exception of an ALP vector lies outside the vector.
    AlpException {
        /// The position, or the number of exceptions.
        found: u32,
        /// Values of the vector.
        values: u32,
    },
}

impl EncodingFault {
    /// The fault's stable, lower-case name.
    pub const fn name(&self) -> &'static str {
        match self {
            EncodingFault::VarintOverflow { .. } => "varint_overflow",
            EncodingFault::BlockSize { .. } => "block_size_invalid",
            EncodingFault::NoMiniblocks => "miniblock_count_zero",
            EncodingFault::MiniblockSize { .. } => "miniblock_size_invalid",
            EncodingFault::BitWidth { .. } => "bit_width_too_large",
            EncodingFault::Range { .. } => "value_out_of_range",
            EncodingFault::Width { .. } => "value_out_of_width",
            EncodingFault::Count { .. } => "count_mismatch",
            EncodingFault::CountNegative { .. } => "count_negative",
            EncodingFault::Trailing { .. } => "trailing_bytes",
            EncodingFault::NegativeLength { .. } => "negative_length",
            EncodingFault::Length { .. } => "length_mismatch",
            EncodingFault::Prefix { .. } => "prefix_too_long",
            EncodingFault::Index { .. } => "dictionary_index_out_of_range",
            EncodingFault::EmptyRun => "empty_run",
            EncodingFault::RunTooLong { .. } => "run_too_long",
            EncodingFault::TypeLength { .. } => "type_length_zero",
            EncodingFault::AlpMode { .. } => "alp_mode_unknown",
            EncodingFault::AlpVectorSize { .. } => "alp_vector_size_invalid",
            EncodingFault::AlpOffset { .. } => "alp_offset_invalid",
            EncodingFault::AlpExponent { .. } => "alp_exponent_invalid",
            EncodingFault::AlpException { .. } => "alp_exception_invalid",
        }
    }
}

impl fmt::Display for EncodingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EncodingFault::VarintOverflow { bits } => write!(f, "a varint has more than {bits} bits"),
            EncodingFault::BlockSize { found } => {
                write!(f, "blocks of {found} values; they must be a multiple of 128, above 0")
            }
            EncodingFault::NoMiniblocks => f.write_str("blocks of no miniblocks"),
            EncodingFault::MiniblockSize { block, miniblocks } => {
                write!(f, "{miniblocks} miniblocks in blocks of {block} values; each must have a multiple of 32")
            }
            EncodingFault::BitWidth { found, max } => write!(f, "{found} bits a value where {max} are the most"),
            EncodingFault::Range { found } => write!(f, "{found} does not fit the type"),
            EncodingFault::Width { found, width } => write!(f, "repeats {found}, which {width} bits cannot hold"),
            EncodingFault::Count { found, expected } => {
                write!(f, "states {found} values where the page has {expected}")
            }
            EncodingFault::CountNegative { found } => write!(f, "{found} values"),
            EncodingFault::Trailing { bytes } => write!(f, "{bytes} bytes follow the last value"),
            EncodingFault::NegativeLength { found } => write!(f, "a length of {found}"),
            EncodingFault::Length { found, expected } => {
                write!(f, "{found} bytes where values have {expected} each")
            }
            EncodingFault::Prefix { found, max } => {
                write!(f, "shares {found} bytes with the value before it, which has {max}")
            }
            EncodingFault::Index { found, entries } => {
                write!(f, "index {found} is past the dictionary's {entries} entries")
            }
            EncodingFault::EmptyRun => f.write_str("a run without values"),
            EncodingFault::RunTooLong { found, max } => write!(f, "a run of {found} values where {max} are the most"),
            EncodingFault::TypeLength { found } => write!(f, "values of {found} bytes each"),
            EncodingFault::AlpMode { found } => write!(f, "mode {found}; only 0 is known"),
            EncodingFault::AlpVectorSize { found } => write!(f, "vectors of 2^{found} values; 2^3 to 2^15 are allowed"),
            EncodingFault::AlpOffset { found, expected } => {
                write!(f, "a vector at offset {found} where {expected} is implied")
            }
            EncodingFault::AlpExponent { found, max } => write!(f, "exponent or factor {found}; {max} is the most"),
            EncodingFault::AlpException { found, values } => {
                write!(f, "exception {found} in a vector of {values} values")
            }
        }
    }
}

/// What is wrong with the compressed body of a Parquet page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressionFault {
    /// It is not what its codec writes; the source says how.
    Corrupt,
    /// It unpacks to another size than stated.
    Size {
        /// Bytes stated.
        found: u64,
        /// Bytes that it unpacks to, of more the first.
        expected: u64,
    },
    /// The stated size is more than so many compressed bytes can hold.
    Unreachable {
        /// Bytes stated.
        found: u64,
        /// Bytes that it can hold at most.
        max: u64,
    },
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyntaxFault {
    /// Not UTF-8.
    Utf8,
    /// Not JSON; the source says where.
    Json,
    /// Not a npy header of a one-dimensional array.
    Npy,
    /// A name holds a line break.
    LineBreak,
    /// JSON that is nested too deeply.
    Depth,
    /// A key that is given twice.
    RepeatedKey,
    /// Not the stated number of hexadecimal digits.
    Hex,
    /// Not a Parquet file, or a damaged one; the source says how.
    Parquet,
    /// Not an Arrow IPC file of the expected shape.
    ArrowIpc,
    /// Not a filter; the source says what is expected.
    Filter,
}

/// Which of the [`Limits`](crate::Limits) was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// `max_output_bytes`
    OutputBytes,
    /// `max_values`
    Values,
    /// `max_scratch_bytes`
    ScratchBytes,
    /// `max_input_bytes`
    InputBytes,
}

/// What is not possible here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// Tiles are little-endian and must not be loaded on a big-endian host.
    BigEndianHost,
    /// The content is of no kind that is known.
    Content,
    /// The target exists and is not what would be written.
    Exists,
    /// Another writer is at work there.
    Busy,
    /// The directory has no manifest: its writer was interrupted.
    Incomplete,
    /// Not a regular file, or not a directory.
    FileKind,
    /// The request does not go with this kind of object.
    Request,
    /// A kind of column that there is not.
    Kind,
    /// Values of this type have no such encoding.
    Encoding,
    /// The data is encrypted.
    Encrypted,
    /// Data compressed with a codec that is not read here.
    Codec,
    /// Groups of columns inside each other, too deeply.
    SchemaDepth,
}

impl ErrorKind {
    /// The kind's stable, lower-case name, as in the `--json` output.
    pub fn name(&self) -> &'static str {
        match self {
            ErrorKind::Io(_) => "io",
            ErrorKind::Truncated { .. } => "truncated",
            ErrorKind::BadMagic => "bad_magic",
            ErrorKind::Version { .. } => "version",
            ErrorKind::Reserved { .. } => "reserved",
            ErrorKind::Checksum { .. } => "checksum",
            ErrorKind::Digest => "digest",
            ErrorKind::Inconsistent { .. } => "inconsistent",
            ErrorKind::OutOfRange { .. } => "out_of_range",
            ErrorKind::Misaligned { .. } => "misaligned",
            ErrorKind::Frame(_) => "frame",
            ErrorKind::RepeatedGene => "repeated_gene",
            ErrorKind::Repeated { .. } => "repeated",
            ErrorKind::Ambiguous { .. } => "ambiguous",
            ErrorKind::OtherGenes => "other_genes",
            ErrorKind::UnsortedGenes { .. } => "unsorted_genes",
            ErrorKind::ZeroCount => "zero_count",
            ErrorKind::NotExcepted { .. } => "not_excepted",
            ErrorKind::Syntax(_) => "syntax",
            ErrorKind::Encoding(fault) => fault.name(),
            #[cfg(feature = "mlt")]
            ErrorKind::Mlt(fault) => fault.name(),
            ErrorKind::Compression(_) => "compression",
            ErrorKind::Missing => "missing",
            ErrorKind::WrongType => "wrong_type",
            ErrorKind::LimitExceeded { .. } => "limit_exceeded",
            ErrorKind::TooManyExceptions { .. } => "too_many_exceptions",
            ErrorKind::Unsupported(_) => "unsupported",
            ErrorKind::KernelUnavailable => "kernel_unavailable",
        }
    }
}

/// Which part of an object. Its `Display` is what people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The object as a whole.
    Object,
    /// A field of a tile's header.
    Header(&'static str),
    /// The chunk table of a tile.
    ChunkTable,
    /// A field of one chunk's entry in the table.
    ChunkEntry(u32, &'static str),
    /// The array of cell bounds of a tile.
    Indptr,
    /// A compressed stream of one chunk.
    Chunk(u32, Stream),
    /// A key of `manifest.json`, or the whole of it.
    Manifest(Option<&'static str>),
    /// A tile of a dataset.
    Tile(u32),
    /// A file of a dataset by its fixed name.
    File(&'static str),
    /// A key of `obs/schema.json`, or the whole of it.
    Schema(Option<&'static str>),
    /// A column of the table of cells by its number, and a field of it.
    Column(u32, &'static str),
    /// Of a section of encoded values, the stream (or nothing, where there is only one) and the part of it.
    Values(&'static str, &'static str),
    /// A column of a row group of a Parquet file.
    RowGroup(u32, u32),
    /// The footer of a Parquet file, or a field of it.
    Footer(&'static str),
    /// A field of a page's header in a Parquet file.
    PageHeader(&'static str),
    /// A section of a page in a Parquet file.
    Page(&'static str),
    /// A filter on the table of cells; offsets are those in its text.
    Filter,
    /// An array or number of a matrix given to the encoder.
    Matrix(&'static str),
    /// The gene of a nonzero in a matrix given to the encoder.
    GeneOf {
        /// The nonzero's cell, counted from the matrix's first.
        cell: u64,
        /// Its gene, as given.
        gene: i64,
    },
    /// The count of a nonzero in a matrix given to the encoder.
    CountOf {
        /// The nonzero's cell, counted from the matrix's first.
        cell: u64,
        /// Its gene.
        gene: i64,
    },
    /// A buffer given by the caller.
    Buffer(&'static str),
    /// A selection of cells.
    Cells,
    /// A selection of genes.
    Genes,
    /// The table of kernels.
    Kernels,
    /// An option of a command or of a builder.
    Option(&'static str),
}

/// The compressed streams of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Gaps between gene indices.
    Gaps,
    /// Counts.
    Vals,
    /// Gaps above 65535.
    Gexc,
    /// Counts above 65535.
    Vexc,
}

impl Stream {
    /// The name that the format gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Stream::Gaps => "gaps",
            Stream::Vals => "vals",
            Stream::Gexc => "gexc",
            Stream::Vexc => "vexc",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Part::Object => f.write_str("object"),
            Part::Header(field) => write!(f, "header, {field}"),
            Part::ChunkTable => f.write_str("chunk table"),
            Part::ChunkEntry(chunk, field) => write!(f, "chunk table, chunk {chunk}, {field}"),
            Part::Indptr => f.write_str("indptr"),
            Part::Chunk(chunk, stream) => write!(f, "chunk {chunk}, {}", stream.name()),
            Part::Manifest(None) => f.write_str("manifest"),
            Part::Manifest(Some(key)) => write!(f, "manifest, {key}"),
            Part::Tile(tile) => write!(f, "tile {tile}"),
            Part::File(name) => f.write_str(name),
            Part::Schema(None) => f.write_str("schema"),
            Part::Schema(Some(key)) => write!(f, "schema, {key}"),
            Part::Column(column, field) => write!(f, "column {column}, {field}"),
            Part::Values("", piece) => f.write_str(piece),
            Part::Values(stream, piece) => write!(f, "{stream}: {piece}"),
            Part::RowGroup(group, column) => write!(f, "row group {group}, column {column}"),
            Part::Footer("") => f.write_str("footer"),
            Part::Footer(field) => write!(f, "footer, {field}"),
            Part::PageHeader(field) => write!(f, "page header, {field}"),
            Part::Page(section) => f.write_str(section),
            Part::Filter => f.write_str("filter"),
            Part::Matrix(what) => write!(f, "matrix, {what}"),
            Part::GeneOf { cell, gene } => write!(f, "matrix, cell {cell}, gene {gene}"),
            Part::CountOf { cell, gene } => write!(f, "matrix, cell {cell}, count of gene {gene}"),
            Part::Buffer(name) => write!(f, "buffer {name}"),
            Part::Cells => f.write_str("selection of cells"),
            Part::Genes => f.write_str("selection of genes"),
            Part::Kernels => f.write_str("kernels"),
            Part::Option(name) => write!(f, "option {name}"),
        }
    }
}

impl Error {
    /// An error of `kind` in `part`, so far without an offset.
    #[cold]
    pub fn new(kind: ErrorKind, part: Part) -> Error {
        Error(Box::new(Inner {
            kind,
            part,
            offset: None,
            index: None,
            page: None,
            #[cfg(feature = "mlt")]
            layer: None,
            unpacked: None,
            path: None,
            source: None,
        }))
    }

    /// Names the part, unless one is named already.
    #[cfg(feature = "dataset")]
    #[must_use]
    pub(crate) fn in_part(mut self, part: Part) -> Error {
        if self.0.part == Part::Object {
            self.0.part = part;
        }
        self
    }

    /// Adds the absolute byte offset in the object.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Error {
        self.0.offset = Some(offset);
        self
    }

    /// Adds the index of the value inside its part (of a nonzero in its chunk, of a cell in its tile, …).
    #[must_use]
    pub fn index(mut self, index: u64) -> Error {
        self.0.index = Some(index);
        self
    }

    /// Names the stream of values that the part belongs to, unless one is named already.
    #[cfg(any(feature = "mlt", feature = "parquet-files"))]
    #[must_use]
    pub(crate) fn in_stream(mut self, stream: &'static str) -> Error {
        if let Part::Values("", piece) = self.0.part {
            self.0.part = Part::Values(stream, piece);
        }
        self
    }

    /// Adds the page that the part belongs to, unless one is named already.
    #[cfg(feature = "parquet-files")]
    #[must_use]
    pub fn in_page(mut self, page: PagePlace) -> Error {
        self.0.page = self.0.page.or(Some(page));
        self
    }

    /// Adds the layer and column of a MapLibre Tile that the part belongs to, unless they are named already.
    #[cfg(feature = "mlt")]
    #[must_use]
    pub fn in_layer(mut self, layer: crate::mlt::LayerPlace) -> Error {
        self.0.layer = self.0.layer.or(Some(layer));
        self
    }

    /// Adds an absolute byte offset in the object, unless there is one already.
    #[cfg(feature = "mlt")]
    #[must_use]
    pub(crate) fn near(mut self, offset: u64) -> Error {
        self.0.offset = self.0.offset.or(Some(offset));
        self
    }

    /// Makes its offset one in the unpacked body of a page, whose compressed body stands at `body` in the object.
    #[cfg(feature = "parquet-files")]
    #[must_use]
    pub(crate) fn unpacked_from(mut self, body: u64) -> Error {
        self.0.unpacked = self.0.offset;
        self.0.offset = Some(body);
        self
    }

    /// Adds the file which the object is, unless one is named already.
    #[must_use]
    pub fn in_path(mut self, path: impl AsRef<Path>) -> Error {
        if self.0.path.is_none() {
            self.0.path = Some(path.as_ref().to_owned());
        }
        self
    }

    /// Adds the error behind this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    /// Adds what the error is about, unless an error behind it is known.
    #[cfg(feature = "obs")]
    #[must_use]
    pub(crate) fn about(self, what: &str) -> Error {
        if self.0.source.is_some() { self } else { self.caused_by(what) }
    }

    /// A failed read or write of `path`.
    #[cold]
    pub fn io(error: std::io::Error, path: impl AsRef<Path>) -> Error {
        Error::new(ErrorKind::Io(error.kind()), Part::Object).in_path(path).caused_by(error)
    }

    /// What is wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// In which part.
    pub fn part(&self) -> Part {
        self.0.part
    }

    /// The absolute byte offset in the object: of the field, or of the frame that holds the value.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The index of the value inside its part.
    pub fn value_index(&self) -> Option<u64> {
        self.0.index
    }

    /// The page of a Parquet file that the part belongs to.
    pub fn page(&self) -> Option<PagePlace> {
        self.0.page
    }

    /// The layer and column of a MapLibre Tile that the part belongs to.
    #[cfg(feature = "mlt")]
    pub fn layer(&self) -> Option<crate::mlt::LayerPlace> {
        self.0.layer
    }

    /// The byte offset in the unpacked body of a page; the absolute offset is then that of the compressed body.
    pub fn unpacked_offset(&self) -> Option<u64> {
        self.0.unpacked
    }

    /// The file which the object is, where it is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The message without path, part and offset: what is wrong and what to do.
    pub fn message(&self) -> String {
        Message(&self.0).to_string()
    }
}

struct Message<'a>(&'a Inner);

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.kind {
            ErrorKind::Io(kind) => match &self.0.source {
                Some(source) => write!(f, "{source}")?,
                None => write!(f, "{kind}")?,
            },
            ErrorKind::Truncated { needed, available } => {
                write!(f, "ends after {available} bytes where {needed} are needed; fetch the object again")?;
            }
            ErrorKind::BadMagic => f.write_str("wrong magic bytes; this is not the format asked for")?,
            ErrorKind::Version { found, expected } => {
                write!(f, "version {found}, but only version {expected} is understood; a newer tilekern may read it")?;
            }
            ErrorKind::Reserved { found } => write!(f, "must be 0 but is {found}")?,
            ErrorKind::Checksum { found, expected } => {
                write!(
                    f,
                    "stored checksum {found:#010x}, but the bytes give {expected:#010x}; fetch the object again"
                )?;
            }
            ErrorKind::Digest => f.write_str("the bytes do not have the stated digest; fetch the object again")?,
            ErrorKind::Inconsistent { found, expected } => {
                write!(f, "is {found} where the rest of the object implies {expected}")?;
            }
            ErrorKind::OutOfRange { found, min, max } if min == max => write!(f, "is {found}, must be {min}")?,
            ErrorKind::OutOfRange { found, min, max } if min > max => {
                write!(f, "is {found}, but nothing is allowed here")?
            }
            ErrorKind::OutOfRange { found, min, max } => write!(f, "is {found}, must be {min} to {max}")?,
            ErrorKind::Misaligned { found, align } => write!(f, "is {found}, must be a multiple of {align}")?,
            ErrorKind::Frame(fault) => write!(f, "{fault}")?,
            ErrorKind::RepeatedGene => f.write_str("repeats the gene of the nonzero before it (a gap of 0)")?,
            ErrorKind::Repeated { first } => write!(f, "is the same as value {first}")?,
            ErrorKind::Ambiguous { found } => write!(f, "is the name of {found}")?,
            ErrorKind::OtherGenes if self.0.part != Part::Genes => f.write_str("names other genes than var_names.txt")?,
            ErrorKind::OtherGenes => f.write_str("has other genes than the first dataset")?,
            ErrorKind::UnsortedGenes { after } => {
                write!(f, "follows gene {after}; the genes of a cell must increase: sort them")?;
            }
            ErrorKind::ZeroCount => f.write_str("a stored count is 0")?,
            ErrorKind::NotExcepted { found } => {
                write!(f, "has an exception, but its stream holds {found} there in place of 65535")?;
            }
            ErrorKind::Syntax(fault) => f.write_str(match fault {
                SyntaxFault::Utf8 => "is not UTF-8",
                SyntaxFault::Json => "is not the JSON that is expected here",
                SyntaxFault::Npy => "is not a one-dimensional '<i4' npy array",
                SyntaxFault::LineBreak => "holds a line break",
                SyntaxFault::Depth => "is nested more than 128 levels deep",
                SyntaxFault::RepeatedKey => "is given twice",
                SyntaxFault::Hex => "is not the stated number of hexadecimal digits",
                SyntaxFault::Parquet => "is not a sound Parquet file",
                SyntaxFault::ArrowIpc => "is not an Arrow file of the expected columns and batches",
                SyntaxFault::Filter => "is not a filter",
            })?,
            ErrorKind::Encoding(fault) => write!(f, "{fault}")?,
            #[cfg(feature = "mlt")]
            ErrorKind::Mlt(fault) => write!(f, "{fault}")?,
            ErrorKind::Compression(CompressionFault::Corrupt) => f.write_str("does not unpack; fetch the object again")?,
            ErrorKind::Compression(CompressionFault::Size { found, expected }) => {
                write!(f, "unpacks to {expected} bytes where {found} are stated")?;
            }
            ErrorKind::Compression(CompressionFault::Unreachable { found, max }) => {
                write!(f, "states {found} bytes, but can hold {max} at most")?;
            }
            ErrorKind::Missing if self.0.part == Part::Filter => f.write_str("names a column that there is not")?,
            // What there is not is the whole message.
            ErrorKind::Missing if self.0.part == Part::Genes && self.0.source.is_some() => {}
            ErrorKind::Missing => f.write_str("is absent")?,
            ErrorKind::WrongType if self.0.part == Part::Filter => f.write_str("does not go with the column")?,
            ErrorKind::WrongType => f.write_str("has another type than the format states")?,
            ErrorKind::LimitExceeded { needed, limit, what } => {
                let (what, how) = match what {
                    Limit::OutputBytes => ("bytes of results", "raise max_output_bytes (--max-output)"),
                    Limit::Values => ("values", "raise max_values"),
                    Limit::ScratchBytes => ("bytes of scratch", "raise max_scratch_bytes"),
                    Limit::InputBytes => ("bytes of input", "raise max_input_bytes"),
                };
                write!(f, "needs {needed} {what}, the limit is {limit}; {how} if you trust the source")?;
            }
            ErrorKind::TooManyExceptions { found, max } => {
                write!(
                    f,
                    "{found} values above 65535 where {max} are the policy's bound; \
                     check that these are raw counts, or allow it explicitly"
                )?;
            }
            ErrorKind::Unsupported(what) => f.write_str(match what {
                Unsupported::BigEndianHost => "tiles are little-endian; a big-endian host must not load them",
                Unsupported::Content => "of no kind that is known here; name the kind with --as",
                Unsupported::Exists => "exists already; choose another name or remove it",
                Unsupported::Busy => "another writer is at work there",
                Unsupported::Incomplete => "has no manifest.json: it is no dataset, or one whose writer was interrupted; name another, or write it again",
                Unsupported::FileKind => "is not a regular file or directory as it must be here",
                Unsupported::Request => "does not go with this kind of object",
                Unsupported::Encoding => "values of this type have no such encoding",
                Unsupported::Encrypted => "encrypted; decrypt it first, with the program that holds its keys",
                Unsupported::Codec => {
                    "compressed with LZO or an unknown codec; rewrite it with zstd, snappy, gzip, brotli or lz4_raw"
                }
                Unsupported::SchemaDepth => "has columns nested more than 64 groups deep",
                Unsupported::Kind => "is none of category, numeric, bool and string; convert or leave out the column",
            })?,
            ErrorKind::KernelUnavailable => match &self.0.source {
                Some(source) => write!(f, "{source}")?,
                None => f.write_str("not available on this CPU")?,
            },
        }
        match (&self.0.source, self.0.kind) {
            (None, _) | (_, ErrorKind::Io(_) | ErrorKind::KernelUnavailable) => Ok(()),
            (Some(source), ErrorKind::Missing) if self.0.part == Part::Genes => write!(f, "{source}"),
            (Some(source), _) => write!(f, " ({source})"),
        }
    }
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FrameFault::Magic => f.write_str("not a zstd frame"),
            FrameFault::Truncated => f.write_str("the zstd frame goes past the stream's end"),
            FrameFault::Reserved => f.write_str("the zstd frame uses a reserved bit or block type"),
            FrameFault::NoContentSize => f.write_str("the zstd frame does not state its content size"),
            FrameFault::ContentSize { found, expected } => {
                write!(f, "the zstd frame states {found} bytes where the stream must hold {expected}")
            }
            FrameFault::Unreachable { found, max } => {
                write!(f, "the zstd frame states {found} bytes, but its blocks hold {max} at most")
            }
            FrameFault::BlockSize { found, max } => {
                write!(f, "a block of the zstd frame has {found} bytes where {max} are allowed")
            }
            FrameFault::Overlap { max } => {
                write!(
                    f,
                    "the tile's streams share bytes and have more than {max} blocks together; no writer does that"
                )
            }
            FrameFault::Dictionary { id } => write!(f, "the zstd frame needs dictionary {id}"),
            FrameFault::Trailing { bytes } => write!(f, "{bytes} bytes follow the zstd frame inside the stream"),
            FrameFault::Corrupt => f.write_str("the zstd frame does not decode"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.0.path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(PagePlace { row_group, column, page }) = self.0.page {
            write!(f, "row group {row_group}, column {column}, ")?;
            if let Some(page) = page {
                write!(f, "page {page}, ")?;
            }
        }
        #[cfg(feature = "mlt")]
        if let Some(layer) = self.0.layer {
            write!(f, "{layer}, ")?;
        }
        if self.0.part != Part::Object {
            write!(f, "{}", self.0.part)?;
            if let Some(index) = self.0.index {
                write!(f, ", value {index}")?;
            }
            if let (Some(unpacked), Some(body)) = (self.0.unpacked, self.0.offset) {
                write!(f, " at unpacked byte {unpacked} of the body at byte {body}")?;
            } else if let Some(offset) = self.0.offset {
                write!(f, " at byte {offset}")?;
            }
            f.write_str(": ")?;
        } else if let Some(offset) = self.0.offset {
            write!(f, "byte {offset}: ")?;
        }
        write!(f, "{}", Message(&self.0))
    }
}

impl fmt::Debug for Error {
    /// What a program that returns it from `main` shows to people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} [{}]", self.kind().name())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

impl From<tilekern_kernels::NoSuchKernel> for Error {
    fn from(error: tilekern_kernels::NoSuchKernel) -> Error {
        Error::new(ErrorKind::KernelUnavailable, Part::Kernels).caused_by(error)
    }
}
