//! Whole tiles to CSR arrays, one thread, all outputs reused.

use bitpacking::{BitPacker, BitPacker4x};
use ruzstd::decoding::FrameDecoder;
use tilekern::Stream;
use tilekern::deltacel::{Csr, CsrView, Decoder, Encoder, Profile, Tile};
use tilekern::kernels::Kernels;
use tilekern::simulate::{Params, Simulator};

use crate::turns::{Entry, Row, compare};

const CELLS: usize = 2000;
const ROUNDS: usize = 7;

pub fn run() -> Vec<Row> {
    let params = Params { cells: CELLS, ..Params::default() };
    let counts = Simulator::new(&params).cells(0..CELLS);
    let view =
        CsrView { n_genes: params.genes, indptr: &counts.indptr, indices: &counts.indices, values: &counts.data };
    let mut rows = Vec::new();
    for (case, profile) in [("plain:19", Profile::Plain(19)), ("balanced", Profile::Balanced), ("fast", Profile::Fast)]
    {
        let mut bytes = Vec::new();
        Encoder::builder().profile(profile).build().and_then(|mut e| e.encode(&view, &mut bytes)).expect("counts");
        let tile = Tile::open(&bytes).expect("a tile");
        rows.extend(tile_case(case, &bytes, &tile, &counts.indptr, &counts.indices, &counts.data));
    }
    rows
}

fn tile_case(
    case: &'static str,
    bytes: &[u8],
    tile: &Tile<'_>,
    indptr: &[i64],
    indices: &[i32],
    values: &[i32],
) -> Vec<Row> {
    let nnz = indices.len();
    let mut entries = Vec::new();
    for kernels in Kernels::available().collect::<Vec<_>>().into_iter().rev() {
        let decoder = Decoder::builder().kernels(kernels).threads(1).build().expect("a decoder");
        let mut csr = Csr::<i32>::new();
        entries.push(Entry {
            case,
            decoder: format!("tilekern {}", kernels.name()),
            bytes: bytes.len(),
            run: Box::new(move || _ = decoder.decode(tile, &mut csr).expect("a sound tile")),
        });
    }

    let mut planes = Vec::new();
    let mut out = (vec![0; nnz], vec![0; nnz]);
    let mut zstd = zstd::bulk::Decompressor::new().expect("a context");
    entries.push(Entry {
        case,
        decoder: "zstd 0.14.4 and plain loops".to_owned(),
        bytes: bytes.len(),
        run: Box::new(move || {
            plain(bytes, tile, &mut planes, &mut out, |frame, planes| {
                zstd.decompress_to_buffer(frame, &mut planes[..]).expect("a sound frame");
            });
        }),
    });

    let mut planes = Vec::new();
    let mut out = (vec![0; nnz], vec![0; nnz]);
    let mut ruzstd = FrameDecoder::new();
    entries.push(Entry {
        case,
        decoder: "ruzstd 0.9.1 and plain loops".to_owned(),
        bytes: bytes.len(),
        run: Box::new(move || {
            plain(bytes, tile, &mut planes, &mut out, |frame, planes| {
                ruzstd.decode_all(frame, planes).expect("a sound frame");
            });
        }),
    });

    let packed = Packed::new(indptr, indices, values);
    let mut out = (vec![0; nnz], vec![0; nnz]);
    packed.unpack(&mut out.0, &mut out.1);
    assert!(out.0.iter().zip(indices).all(|(&a, &b)| a == b.cast_unsigned()), "bitpacking gives other genes");
    assert!(out.1.iter().zip(values).all(|(&a, &b)| a == b.cast_unsigned()), "bitpacking gives other counts");
    entries.push(Entry {
        case,
        decoder: "bitpacking 0.9.3, its own blocks".to_owned(),
        bytes: packed.bytes(),
        run: Box::new(move || packed.unpack(&mut out.0, &mut out.1)),
    });
    compare(nnz, ROUNDS, &mut entries)
}

/// What the format's text says, as plain loops that the compiler may vectorise, over someone's zstd.
fn plain(
    bytes: &[u8],
    tile: &Tile<'_>,
    planes: &mut Vec<u8>,
    (indices, values): &mut (Vec<i32>, Vec<i32>),
    mut decompress: impl FnMut(&[u8], &mut Vec<u8>),
) {
    let index = |value: u64| usize::try_from(value).expect("in memory");
    for n in 0..tile.n_chunks() {
        let chunk = tile.chunk(n);
        let nonzeros = index(chunk.nonzeros.start)..index(chunk.nonzeros.end);
        planes.resize(2 * nonzeros.len(), 0);
        for stream in [Stream::Gaps, Stream::Vals] {
            let (offset, len) = chunk.span(stream);
            decompress(&bytes[index(offset)..index(offset + len)], planes);
            let (lo, hi) = planes.split_at(nonzeros.len());
            let words = lo.iter().zip(hi).map(|(&lo, &hi)| i32::from(u16::from_le_bytes([lo, hi])));
            if stream == Stream::Vals {
                values[nonzeros.clone()].iter_mut().zip(words).for_each(|(out, word)| *out = word);
                continue;
            }
            indices[nonzeros.clone()].iter_mut().zip(words).for_each(|(out, word)| *out = word);
            for cell in index(chunk.cells.start)..index(chunk.cells.end) {
                let mut gene = 0;
                let cell = index(tile.indptr(cell).cast_unsigned())..index(tile.indptr(cell + 1).cast_unsigned());
                for out in &mut indices[cell] {
                    gene += *out;
                    *out = gene;
                }
            }
        }
    }
}

/// The same matrix in blocks of 128 values: genes as sorted runs within a cell, counts as they are.
struct Packed {
    packer: BitPacker4x,
    /// Value at which each block starts, bits of a gene, bits of a count; the last of a cell is shorter.
    blocks: Vec<(usize, u8, u8)>,
    /// Cell bounds where a run of genes starts anew.
    initial: Vec<u32>,
    genes: Vec<u8>,
    counts: Vec<u8>,
    /// Values that fill no block, as they are: position, gene, count.
    rest: Vec<(u32, u32, u32)>,
}

impl Packed {
    fn new(indptr: &[i64], indices: &[i32], values: &[i32]) -> Packed {
        let packer = BitPacker4x::new();
        let mut packed =
            Packed { packer, blocks: vec![], initial: vec![], genes: vec![], counts: vec![], rest: vec![] };
        let mut buffer = vec![0; 4 * BitPacker4x::BLOCK_LEN];
        for cell in indptr.windows(2) {
            let mut at = usize::try_from(cell[0]).expect("in memory");
            let end = usize::try_from(cell[1]).expect("in memory");
            let mut before = 0;
            while at + BitPacker4x::BLOCK_LEN <= end {
                let unsigned = |block: &[i32]| block.iter().map(|value| value.cast_unsigned()).collect::<Vec<u32>>();
                let genes = unsigned(&indices[at..at + BitPacker4x::BLOCK_LEN]);
                let counts = unsigned(&values[at..at + BitPacker4x::BLOCK_LEN]);
                let gene_bits = packer.num_bits_sorted(before, &genes);
                let len = packer.compress_sorted(before, &genes, &mut buffer, gene_bits);
                packed.genes.extend_from_slice(&buffer[..len]);
                let count_bits = packer.num_bits(&counts);
                let len = packer.compress(&counts, &mut buffer, count_bits);
                packed.counts.extend_from_slice(&buffer[..len]);
                packed.blocks.push((at, gene_bits, count_bits));
                packed.initial.push(before);
                before = genes[BitPacker4x::BLOCK_LEN - 1];
                at += BitPacker4x::BLOCK_LEN;
            }
            packed.rest.extend((at..end).map(|i| {
                let position = u32::try_from(i).expect("a small matrix");
                (position, indices[i].cast_unsigned(), values[i].cast_unsigned())
            }));
        }
        packed
    }

    /// Bytes of the packed blocks, their widths, and the rest at two bytes a number.
    fn bytes(&self) -> usize {
        self.genes.len() + self.counts.len() + 2 * self.blocks.len() + 4 * self.rest.len()
    }

    fn unpack(&self, genes: &mut [u32], counts: &mut [u32]) {
        let (mut gene_at, mut count_at) = (0, 0);
        for (&(at, gene_bits, count_bits), &initial) in self.blocks.iter().zip(&self.initial) {
            let block = at..at + BitPacker4x::BLOCK_LEN;
            gene_at +=
                self.packer.decompress_sorted(initial, &self.genes[gene_at..], &mut genes[block.clone()], gene_bits);
            count_at += self.packer.decompress(&self.counts[count_at..], &mut counts[block], count_bits);
        }
        for &(position, gene, count) in &self.rest {
            genes[position as usize] = gene;
            counts[position as usize] = count;
        }
    }
}
