//! The rules of MapLibre Tiles that data can break.

use std::fmt;

/// A rule of MapLibre Tiles that the data breaks. The numbers say by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MltFault {
    // Integer words.
    /// A stream is not as long as its values need.
    Length {
        /// Bytes found.
        found: u64,
        /// Bytes that the values need.
        expected: u64,
    },
    /// The width of bit packing is not 1 to 32.
    BitWidth {
        /// Bits stated.
        found: u8,
    },
    /// A bit-packed payload is not exactly as long as its values need.
    BitPackedLength {
        /// Bytes found.
        found: u64,
        /// Bytes that the values need.
        expected: u64,
    },
    /// A FastPFOR payload is no whole number of 32-bit words.
    FastPforLength {
        /// Bytes found.
        found: u64,
    },
    /// A FastPFOR block's width, or the width of its widest value, is above the width of the type.
    FastPforWidth {
        /// Bits stated.
        found: u8,
        /// Bits of the type.
        max: u8,
    },
    /// A FastPFOR block has exceptions, but its widest value is not wider than the block.
    FastPforMaxWidth {
        /// Bits of the widest value.
        found: u8,
        /// Bits of the block.
        width: u8,
    },
    /// A FastPFOR exception lies outside its block.
    FastPforPosition {
        /// The position stated.
        found: u8,
        /// Values of a block.
        values: u16,
    },
    /// A FastPFOR exception has no value left in its array.
    FastPforException {
        /// Bits of the array's values.
        width: u8,
    },
    /// A FastPFOR exception array has more values than a page.
    FastPforArray {
        /// Values stated.
        found: u32,
    },
    /// A FastPFOR payload ends inside a page, or an offset leaves it.
    FastPforPage {
        /// Words that the page needs.
        needed: u64,
        /// Words that there are.
        available: u64,
    },
    /// The values of FastPFOR blocks and tail are not as many as the stream has.
    FastPforCount {
        /// Values found.
        found: u64,
        /// Values of the stream.
        expected: u64,
    },
    /// The values in FastPFOR blocks are no whole number of blocks.
    FastPforBlockValues {
        /// Values stated.
        found: u32,
        /// Values of a block.
        block: u16,
    },
    /// The packed blocks of a FastPFOR page do not end where the page says.
    FastPforOffset {
        /// Words from the page's start on, as stated.
        found: u64,
        /// Words that the blocks' widths make, at least.
        expected: u64,
    },
    /// The entries of FastPFOR blocks are longer or shorter than the page says.
    FastPforEntries {
        /// Bytes left at the block in question, or behind the last.
        found: u64,
        /// Bytes of the block's entry; 0 behind the last.
        expected: u64,
    },
    /// A FastPFOR exception array of values of one bit, which need none.
    FastPforBitmap,
    /// FastPFOR in a version 1 stream of 64-bit words.
    FastPfor64,
    /// Run lengths do not sum to the stream's count.
    RunSum {
        /// Their sum, or that up to the first that is too long.
        found: u64,
        /// Values of the stream.
        expected: u64,
    },
    /// The header's number of runs is not half its number of words.
    RunCount {
        /// Runs stated.
        runs: u64,
        /// Words stated.
        words: u64,
    },
    /// A run length without its value.
    OddRuns,
    // Truth values.
    /// The lengths of alternating runs do not sum to the stream's count.
    BooleanRunSum {
        /// Their sum, or that up to the first that is too long.
        found: u64,
        /// Values of the stream.
        expected: u64,
    },
    /// The summary of sparse truth values names a byte past the last.
    SparseSummary,
    /// A stored byte of sparse truth values is 0.
    SparseZero,
    /// Byte runs do not expand to exactly the bitmap.
    BooleanRleLength {
        /// Bytes that they expand to, or would with the run that is too long.
        found: u64,
        /// Bytes of the bitmap.
        expected: u64,
    },
    // Floating-point numbers.
    /// An ALP scale that names no pair of exponent and factor.
    AlpScale {
        /// The scale stated.
        found: u8,
    },
    /// A code past the dictionary.
    Code {
        /// The code found.
        found: u32,
        /// Entries of the dictionary.
        entries: u64,
    },
    // Strings.
    /// A value is not UTF-8.
    Utf8,
    /// Lengths run past the bytes that they cut.
    Lengths {
        /// Bytes that they need.
        found: u64,
        /// Bytes that there are.
        available: u64,
    },
    /// A shared prefix is longer than the entry before.
    Prefix {
        /// Bytes said to be shared.
        found: u64,
        /// Bytes of the entry before.
        max: u64,
    },
    /// The lengths of a front-coded dictionary are an odd number.
    OddLengths {
        /// How many.
        found: u64,
    },
    /// The suffixes of a front-coded dictionary do not fill their bytes.
    Suffixes {
        /// Bytes that they need.
        found: u64,
        /// Bytes that there are.
        expected: u64,
    },
    /// Front coding where there is no dictionary.
    FrontCoded,
    /// An FSST code without a symbol.
    FsstCode {
        /// The code.
        found: u8,
        /// Symbols of the table.
        symbols: u16,
    },
    /// An FSST corpus ends on an escape.
    FsstEscape,
    /// An FSST table has too many symbols.
    FsstSymbols {
        /// How many.
        found: u64,
    },
    /// An FSST symbol is longer than 8 bytes.
    FsstSymbolLength {
        /// Bytes stated.
        found: u32,
    },
    // Vertices.
    /// An offset past the vertex dictionary.
    VertexOffset {
        /// The offset found.
        found: u32,
        /// Vertices of the dictionary.
        vertices: u64,
    },
    /// More than 16 bits an axis in Morton codes.
    MortonBits {
        /// Bits stated.
        found: u32,
    },
    /// rANS on a vertex dictionary.
    RansDictionary,
    /// The runs of the topology do not cover the vertices.
    RansRuns {
        /// Vertices that the topology has.
        found: u64,
        /// Vertices of the stream.
        expected: u64,
    },
    /// A frequency in an rANS table has too many bits.
    RansGamma {
        /// Leading zeros.
        found: u32,
    },
    /// The frequencies of an rANS table do not sum to its slots.
    RansSum {
        /// Their sum.
        found: u64,
        /// The table's slots.
        expected: u64,
    },
    /// The last symbol of an rANS table has no slots.
    RansLast,
    /// A symbol of an rANS table stands for no delta.
    RansSymbol {
        /// The symbol.
        found: u16,
    },
    /// An rANS lane is too short, or has half a word.
    RansLaneLength {
        /// Bytes stated.
        found: u64,
    },
    /// A symbol of a context without a table.
    RansContext {
        /// The context.
        found: u8,
    },
    /// An rANS lane does not end as it began, with all its words read.
    RansLane {
        /// The lane.
        lane: u8,
    },
    /// The raw bits of an rANS stream are not as many as its symbols need.
    RansRaw {
        /// Bytes found.
        found: u64,
        /// Bytes that the symbols need.
        expected: u64,
    },
    /// A parameter of an rANS stream or table is out of range.
    RansParameter {
        /// Its value.
        found: u32,
        /// The largest allowed.
        max: u32,
    },
    // Containers.
    /// Bytes of a layer follow its last column.
    LayerTrailing {
        /// How many.
        bytes: u64,
    },
    /// A layer, or a struct's list of fields, that must not be empty is.
    Empty,
    /// A frame without even a tag.
    FrameSize,
    /// A code that the format does not define.
    UnknownCode {
        /// The code.
        found: u32,
    },
    /// An encoding that this kind of stream cannot have.
    EncodingNotAllowed {
        /// The encoding's byte.
        found: u8,
    },
    /// A reference to a shared presence field that there is not.
    SharedPresence {
        /// The field referred to.
        found: u8,
        /// Fields that there are.
        fields: u8,
    },
    /// Two columns, or fields of a struct, have one name.
    RepeatedName,
    /// A second column of a kind of which a layer has one.
    RepeatedColumn,
    /// A stream that the column cannot have, has twice, or has in another order.
    StreamRole {
        /// The stream's type byte.
        found: u8,
    },
    /// Another number of streams than the column has.
    StreamCount {
        /// The number stated.
        found: u64,
        /// The number that the column has, at least.
        expected: u64,
    },
    /// A layer without a geometry column.
    NoGeometry,
    /// A stream needs its own value count here.
    NoCount,
    /// Values of a column, or bits of its presence, are not as many as they must be.
    Count {
        /// Values found.
        found: u64,
        /// Values that there must be.
        expected: u64,
    },
    /// A value does not fit its column's type.
    Range {
        /// The value found.
        found: i64,
    },
    /// A geometry of a type that the layer's layout cannot hold, or whose lengths are not there.
    GeometryType {
        /// The type's code.
        found: u32,
    },
    /// The topology needs more lengths, or leaves some over.
    Topology {
        /// Lengths that it needs.
        found: u64,
        /// Lengths that there are.
        expected: u64,
    },
    /// The topology goes past the vertices.
    Vertices {
        /// Vertices that it needs.
        found: u64,
        /// Vertices that there are.
        available: u64,
    },
    /// A triangle's corner is no vertex of its feature or layer, or the triangles do not fit their trees or counts.
    Triangles {
        /// The number found.
        found: u64,
        /// The number that there must be, or must not be reached.
        expected: u64,
    },
    /// Values of vertices in a layer whose layout has none to give them to.
    MValues,
    /// Columns are nested too deeply.
    Depth {
        /// The deepest that is allowed.
        max: u8,
    },
}

impl MltFault {
    /// The fault's stable, lower-case name.
    pub const fn name(&self) -> &'static str {
        match self {
            MltFault::Length { .. } => "stream_length",
            MltFault::BitWidth { .. } => "bit_width",
            MltFault::BitPackedLength { .. } => "bit_packed_length",
            MltFault::FastPforLength { .. } => "fastpfor_length",
            MltFault::FastPforWidth { .. } => "fastpfor_width",
            MltFault::FastPforMaxWidth { .. } => "fastpfor_max_width",
            MltFault::FastPforPosition { .. } => "fastpfor_position",
            MltFault::FastPforException { .. } => "fastpfor_exception",
            MltFault::FastPforArray { .. } => "fastpfor_array",
            MltFault::FastPforPage { .. } => "fastpfor_page",
            MltFault::FastPforCount { .. } => "fastpfor_count",
            MltFault::FastPforBlockValues { .. } => "fastpfor_block_values",
            MltFault::FastPforOffset { .. } => "fastpfor_offset",
            MltFault::FastPforEntries { .. } => "fastpfor_entries",
            MltFault::FastPforBitmap => "fastpfor_bitmap",
            MltFault::FastPfor64 => "fastpfor_64_bit",
            MltFault::RunSum { .. } => "run_sum",
            MltFault::RunCount { .. } => "run_count",
            MltFault::OddRuns => "run_odd",
            MltFault::BooleanRunSum { .. } => "boolean_run_sum",
            MltFault::SparseSummary => "sparse_summary",
            MltFault::SparseZero => "sparse_zero",
            MltFault::BooleanRleLength { .. } => "boolean_rle_length",
            MltFault::AlpScale { .. } => "alp_scale",
            MltFault::Code { .. } => "code_out_of_dictionary",
            MltFault::Utf8 => "utf8",
            MltFault::Lengths { .. } => "lengths_past_bytes",
            MltFault::Prefix { .. } => "prefix_too_long",
            MltFault::OddLengths { .. } => "front_coding_odd",
            MltFault::Suffixes { .. } => "front_coding_suffixes",
            MltFault::FrontCoded => "front_coding_without_dictionary",
            MltFault::FsstCode { .. } => "fsst_code",
            MltFault::FsstEscape => "fsst_escape",
            MltFault::FsstSymbols { .. } => "fsst_symbols",
            MltFault::FsstSymbolLength { .. } => "fsst_symbol_length",
            MltFault::VertexOffset { .. } => "vertex_offset",
            MltFault::MortonBits { .. } => "morton_bits",
            MltFault::RansDictionary => "rans_on_dictionary",
            MltFault::RansRuns { .. } => "rans_runs",
            MltFault::RansGamma { .. } => "rans_gamma",
            MltFault::RansSum { .. } => "rans_frequency_sum",
            MltFault::RansLast => "rans_last_symbol",
            MltFault::RansSymbol { .. } => "rans_symbol",
            MltFault::RansLaneLength { .. } => "rans_lane_length",
            MltFault::RansContext { .. } => "rans_context",
            MltFault::RansLane { .. } => "rans_lane_end",
            MltFault::RansRaw { .. } => "rans_raw_bits",
            MltFault::RansParameter { .. } => "rans_parameter",
            MltFault::LayerTrailing { .. } => "layer_trailing_bytes",
            MltFault::Empty => "empty",
            MltFault::FrameSize => "frame_size",
            MltFault::UnknownCode { .. } => "unknown_code",
            MltFault::EncodingNotAllowed { .. } => "encoding_not_allowed",
            MltFault::SharedPresence { .. } => "shared_presence",
            MltFault::RepeatedName => "repeated_name",
            MltFault::RepeatedColumn => "repeated_column",
            MltFault::StreamRole { .. } => "stream_role",
            MltFault::StreamCount { .. } => "stream_count",
            MltFault::NoGeometry => "no_geometry",
            MltFault::NoCount => "no_count",
            MltFault::Count { .. } => "count_mismatch",
            MltFault::Range { .. } => "value_out_of_range",
            MltFault::GeometryType { .. } => "geometry_type",
            MltFault::Topology { .. } => "topology",
            MltFault::Vertices { .. } => "topology_past_vertices",
            MltFault::Triangles { .. } => "triangles",
            MltFault::MValues => "m_value_layout",
            MltFault::Depth { .. } => "depth",
        }
    }
}

impl fmt::Display for MltFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MltFault::Length { found, expected } => write!(f, "{found} bytes where the values need {expected}"),
            MltFault::BitWidth { found } => write!(f, "bit-packed at {found} bits a value; 1 to 32 are allowed"),
            MltFault::BitPackedLength { found, expected } => {
                write!(f, "{found} bit-packed bytes where the values need exactly {expected}")
            }
            MltFault::FastPforLength { found } => write!(f, "{found} bytes of FastPFOR; they must be a multiple of 4"),
            MltFault::FastPforWidth { found, max } => write!(f, "a FastPFOR width of {found}; {max} is the most"),
            MltFault::FastPforMaxWidth { found, width } => {
                write!(
                    f,
                    "the widest value of a FastPFOR block with exceptions has {found} bits; it must have more than {width}"
                )
            }
            MltFault::FastPforPosition { found, values } => {
                write!(f, "FastPFOR exception at {found} of a block of {values} values")
            }
            MltFault::FastPforException { width } => {
                write!(f, "no value is left for a FastPFOR exception in the array of {width} bits")
            }
            MltFault::FastPforArray { found } => {
                write!(f, "a FastPFOR exception array of {found} values; 65536 are the most")
            }
            MltFault::FastPforPage { needed, available } => {
                write!(f, "a FastPFOR page needs {needed} words, but the payload has {available}")
            }
            MltFault::FastPforCount { found, expected } => {
                write!(f, "{found} values in FastPFOR blocks and tail where the stream has {expected}")
            }
            MltFault::FastPforBlockValues { found, block } => {
                write!(f, "{found} values in FastPFOR blocks of {block}")
            }
            MltFault::FastPforOffset { found, expected } => {
                write!(f, "the blocks of a FastPFOR page end at word {expected} where the page says {found}")
            }
            MltFault::FastPforEntries { found, expected } => {
                write!(f, "{found} bytes where the entry of a FastPFOR block has {expected}")
            }
            MltFault::FastPforBitmap => f.write_str("a FastPFOR exception array of 1 bit; such exceptions have none"),
            MltFault::FastPfor64 => f.write_str("FastPFOR on 64-bit words, which version 1 does not have"),
            MltFault::RunSum { found, expected } => {
                write!(f, "run lengths sum to {found} where the stream has {expected} values")
            }
            MltFault::RunCount { runs, words } => write!(f, "{runs} runs in {words} words; each run has two"),
            MltFault::OddRuns => f.write_str("a run length without its value"),
            MltFault::BooleanRunSum { found, expected } => {
                write!(f, "runs of truth values sum to {found} where the stream has {expected}")
            }
            MltFault::SparseSummary => f.write_str("the summary of sparse truth values names a byte past the last"),
            MltFault::SparseZero => f.write_str("a stored byte of sparse truth values is 0"),
            MltFault::BooleanRleLength { found, expected } => {
                write!(f, "byte runs expand to {found} bytes where the bitmap has {expected}")
            }
            MltFault::AlpScale { found } => write!(f, "ALP scale {found}; 189 is the most"),
            MltFault::Code { found, entries } => write!(f, "code {found} is past the dictionary's {entries} entries"),
            MltFault::Utf8 => f.write_str("a value is not UTF-8"),
            MltFault::Lengths { found, available } => {
                write!(f, "lengths reach byte {found} where there are {available}")
            }
            MltFault::Prefix { found, max } => {
                write!(f, "an entry shares {found} bytes with the one before it, which has {max}")
            }
            MltFault::OddLengths { found } => write!(f, "{found} lengths for front coding; an entry has two"),
            MltFault::Suffixes { found, expected } => {
                write!(f, "the suffixes of front coding need {found} bytes where there are {expected}")
            }
            MltFault::FrontCoded => f.write_str("front coding where there is no dictionary"),
            MltFault::FsstCode { found, symbols } => {
                write!(f, "FSST code {found} in a table of {symbols} symbols")
            }
            MltFault::FsstEscape => f.write_str("the FSST corpus ends on an escape"),
            MltFault::FsstSymbols { found } => write!(f, "{found} FSST symbols; 255 are the most"),
            MltFault::FsstSymbolLength { found } => write!(f, "an FSST symbol of {found} bytes; 8 are the most"),
            MltFault::VertexOffset { found, vertices } => {
                write!(f, "vertex offset {found} is past the dictionary's {vertices} vertices")
            }
            MltFault::MortonBits { found } => write!(f, "Morton codes of {found} bits an axis; 16 are the most"),
            MltFault::RansDictionary => f.write_str("a vertex dictionary cannot be coded with rANS"),
            MltFault::RansRuns { found, expected } => {
                write!(f, "the topology has {found} vertices where the rANS stream has {expected}")
            }
            MltFault::RansGamma { found } => write!(f, "an rANS frequency with {found} leading zeros; 12 are the most"),
            MltFault::RansSum { found, expected } => {
                write!(f, "rANS frequencies sum to {found} where the table has {expected} slots")
            }
            MltFault::RansLast => f.write_str("the last symbol of an rANS table has no slots"),
            MltFault::RansSymbol { found } => write!(f, "rANS symbol {found} stands for no delta"),
            MltFault::RansLaneLength { found } => {
                write!(f, "an rANS lane of {found} bytes; it must be an even number, 4 at least")
            }
            MltFault::RansContext { found } => write!(f, "an rANS symbol of context {found}, which has no table"),
            MltFault::RansLane { lane } => {
                write!(f, "rANS lane {lane} does not start and end as it must, with all its words read")
            }
            MltFault::RansRaw { found, expected } => {
                write!(f, "{found} bytes of raw bits where the rANS symbols need {expected}")
            }
            MltFault::RansParameter { found, max } => write!(f, "an rANS parameter is {found}; {max} is the most"),
            MltFault::LayerTrailing { bytes } => write!(f, "{bytes} bytes follow the layer's last column"),
            MltFault::Empty => f.write_str("must not be empty"),
            MltFault::FrameSize => f.write_str("a frame of 0 bytes; it must have a tag at least"),
            MltFault::UnknownCode { found } => write!(f, "code {found:#x} is not defined here"),
            MltFault::EncodingNotAllowed { found } => {
                write!(f, "encoding {found:#04x} is none that this stream can have")
            }
            MltFault::SharedPresence { found, fields } => {
                write!(f, "refers to shared presence field {found} where the layer has {fields}")
            }
            MltFault::RepeatedName => f.write_str("has the name of another column"),
            MltFault::RepeatedColumn => f.write_str("a second column of a kind of which a layer has one"),
            MltFault::StreamRole { found } => write!(f, "stream type {found:#04x} has no place here"),
            MltFault::StreamCount { found, expected } => write!(f, "{found} streams where {expected} are expected"),
            MltFault::NoGeometry => f.write_str("the layer has no geometry column"),
            MltFault::NoCount => f.write_str("the stream must state its value count here"),
            MltFault::Count { found, expected } => write!(f, "{found} values where there must be {expected}"),
            MltFault::Range { found } => write!(f, "{found} does not fit the column's type"),
            MltFault::GeometryType { found } => write!(f, "geometry type {found} cannot be here"),
            MltFault::Topology { found, expected } => {
                write!(f, "the topology takes {found} lengths where there are {expected}")
            }
            MltFault::Vertices { found, available } => {
                write!(f, "the topology takes {found} vertices where there are {available}")
            }
            MltFault::Triangles { found, expected } => {
                write!(f, "triangles do not fit: {found} where {expected} is implied")
            }
            MltFault::MValues => f.write_str("values of vertices in a layer whose layout cannot have them"),
            MltFault::Depth { max } => write!(f, "columns are nested more than {max} deep"),
        }
    }
}
