//! Tiles that the writer makes, read back by a reader written for these tests from the format document alone.
#![cfg(feature = "encode")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small numbers, checked by what they lead to

use proptest::prelude::*;
use tilekern::ErrorKind;
use tilekern::deltacel::{Chunks, Csr, CsrView, Decoder, EncodeReport, Encoder, ExceptionPolicy, Profile, Tile};

const MAX_GENES: u32 = 1 << 31;

/// A matrix as it is given to the writer: cells of (gene, count).
#[derive(Clone, Debug, Default, PartialEq)]
struct Matrix {
    n_genes: u32,
    cells: Vec<Vec<(i32, i32)>>,
}

impl Matrix {
    fn encode(&self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<EncodeReport, tilekern::Error> {
        // Any first bound will do: it is what the others are counted from.
        let mut indptr = vec![7i64];
        for cell in &self.cells {
            indptr.push(indptr[indptr.len() - 1] + cell.len() as i64);
        }
        let (indices, values): (Vec<i32>, Vec<i32>) = self.cells.iter().flatten().copied().unzip();
        encoder.encode(&CsrView { n_genes: self.n_genes, indptr: &indptr, indices: &indices, values: &values }, out)
    }
}

/// What a reader sees.
struct Read {
    matrix: Matrix,
    n_chunks: usize,
    exceptions: [u64; 2],
    stream_bytes: u64,
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().unwrap()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(word(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(word(bytes, at))
}

/// One frame, whole, with its size stated and neither checksum nor dictionary.
fn unpack(frame: &[u8]) -> Vec<u8> {
    assert_eq!(zstd_safe::find_frame_compressed_size(frame), Ok(frame.len()));
    let size = zstd_safe::get_frame_content_size(frame).unwrap().expect("a stated size");
    assert_eq!(frame[4] & 7, 0, "checksum or dictionary");
    let mut content = Vec::with_capacity(size as usize);
    assert_eq!(zstd_safe::decompress(&mut content, frame), Ok(size as usize));
    content
}

fn words(plane: &[u8]) -> Vec<u32> {
    let (low, high) = plane.split_at(plane.len() / 2);
    low.iter().zip(high).map(|(&low, &high)| u32::from(low) + 256 * u32::from(high)).collect()
}

fn read(tile: &[u8]) -> Read {
    assert_eq!(&tile[..8], b"DELTACEL");
    assert_eq!((u32_at(tile, 8), u32_at(tile, 12), u32_at(tile, 60)), (2, 0, 0));
    assert_eq!(u64_at(tile, 48), tile.len() as u64);
    assert_eq!(u32_at(tile, 56), crc32fast::hash(&tile[64..]));
    let (n_cells, nnz) = (u64_at(tile, 16) as usize, u64_at(tile, 24));
    let (n_genes, n_chunks, indptr_off) = (u32_at(tile, 32), u32_at(tile, 36) as usize, u64_at(tile, 40) as usize);
    assert_eq!(indptr_off, 64 + 96 * n_chunks);
    let indptr: Vec<u64> = (0..=n_cells).map(|cell| u64_at(tile, indptr_off + 8 * cell)).collect();
    assert_eq!((indptr[0], indptr[n_cells]), (0, nnz));
    assert_eq!(n_chunks == 0, n_cells == 0);

    // Every byte behind the indptr is of one stream, or one of the zeros before it.
    let mut at = indptr_off + 8 * (n_cells + 1);
    let mut stream = |entry: usize, must: bool| {
        let (start, len) = (u64_at(tile, entry) as usize, u64_at(tile, entry + 8) as usize);
        if len == 0 {
            assert!(!must && start == 0);
            return &[][..];
        }
        assert_eq!(start, at.next_multiple_of(8));
        assert!(tile[at..start].iter().all(|&byte| byte == 0));
        at = start + len;
        &tile[start..at]
    };
    let mut read =
        Read { matrix: Matrix { n_genes, cells: Vec::new() }, n_chunks, exceptions: [0, 0], stream_bytes: 0 };
    let mut ends = (0, 0);
    for chunk in 0..n_chunks {
        let entry = 64 + 96 * chunk;
        let field = |i: usize| u64_at(tile, entry + 8 * i);
        assert_eq!((field(0), field(2)), ends);
        ends = (field(1), field(3));
        assert!(field(0) < field(1), "a chunk without a cell");
        assert_eq!((indptr[field(0) as usize], indptr[field(1) as usize]), (field(2), field(3)));
        let n = (field(3) - field(2)) as usize;
        let frames = [(32, true), (48, true), (64, false), (80, false)].map(|(at, must)| stream(entry + at, must));
        read.stream_bytes += frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
        let [gaps, vals] = [frames[0], frames[1]].map(|frame| words(&unpack(frame)));
        assert_eq!((gaps.len(), vals.len()), (n, n));
        let [vexc, gexc] = [frames[2], frames[3]].map(|frame| {
            let content = if frame.is_empty() { Vec::new() } else { unpack(frame) };
            assert!(frame.is_empty() == content.is_empty() && content.len() % 8 == 0);
            let k = content.len() / 8;
            let list: Vec<_> = (0..k).map(|i| (u32_at(&content, 4 * i), u32_at(&content, 4 * (k + i)))).collect();
            assert!(list.windows(2).all(|pair| pair[0].0 < pair[1].0));
            list
        });
        read.exceptions[0] += vexc.len() as u64;
        read.exceptions[1] += gexc.len() as u64;
        let (mut vexc, mut gexc) = (vexc.into_iter().peekable(), gexc.into_iter().peekable());
        for cell in field(0) as usize..field(1) as usize {
            let mut gene = 0u64;
            let mut nonzeros = Vec::new();
            for position in indptr[cell] - field(2)..indptr[cell + 1] - field(2) {
                let (mut gap, mut count) = (gaps[position as usize], vals[position as usize]);
                if let Some((_, more)) = gexc.next_if(|&(at, _)| u64::from(at) == position) {
                    assert!(gap == 65_535 && more >= 1);
                    gap += more;
                }
                if let Some((_, whole)) = vexc.next_if(|&(at, _)| u64::from(at) == position) {
                    assert!(count == 65_535 && whole > 65_535);
                    count = whole;
                }
                gene += u64::from(gap);
                nonzeros.push((i32::try_from(gene).unwrap(), i32::try_from(count).unwrap()));
            }
            read.matrix.cells.push(nonzeros);
        }
        assert!(vexc.next().is_none() && gexc.next().is_none(), "an exception of no nonzero");
    }
    assert_eq!(ends, (n_cells as u64, nnz));
    assert_eq!(at, tile.len(), "bytes behind the last stream");
    read
}

/// The library's own reader.
fn decode(tile: &[u8]) -> Matrix {
    let mut csr = Csr::<i32>::new();
    Decoder::new().unwrap().decode(&Tile::open(tile).unwrap(), &mut csr).unwrap();
    let cell = |bounds: &[i64]| {
        let nonzeros = bounds[0] as usize..bounds[1] as usize;
        csr.indices()[nonzeros.clone()].iter().copied().zip(csr.values()[nonzeros].iter().copied()).collect()
    };
    Matrix { n_genes: csr.n_genes(), cells: csr.indptr().windows(2).map(cell).collect() }
}

/// Encodes, reads back by both readers, and compares; gives the tile.
fn round_trip(matrix: &Matrix, encoder: &mut Encoder) -> (Vec<u8>, EncodeReport) {
    let mut tile = vec![9; 5];
    let report = matrix.encode(encoder, &mut tile).unwrap();
    let read = read(&tile);
    assert_eq!(read.matrix, *matrix);
    assert_eq!(decode(&tile), *matrix);
    let nonzeros = || matrix.cells.iter().flatten();
    let gaps = matrix
        .cells
        .iter()
        .flat_map(|cell| cell.iter().scan(0, |previous, &(gene, _)| Some(gene - std::mem::replace(previous, gene))));
    let exceptions = [nonzeros().filter(|n| n.1 > 65_535).count(), gaps.filter(|&gap| gap > 65_535).count()];
    assert_eq!(read.exceptions, exceptions.map(|n| n as u64));
    assert_eq!([report.count_exceptions, report.gap_exceptions], read.exceptions);
    assert_eq!((report.n_cells, report.nnz), (matrix.cells.len() as u64, nonzeros().count() as u64));
    assert_eq!(report.n_chunks as usize, read.n_chunks);
    assert_eq!(report.gaps_bytes + report.vals_bytes + report.exception_bytes, read.stream_bytes);
    assert_eq!(report.total_bytes, tile.len() as u64);
    assert_eq!(report.header_bytes + report.indptr_bytes, u64_at(&tile, 40) + 8 * (report.n_cells + 1));
    (tile, report)
}

const PROFILES: [Profile; 6] =
    [Profile::Small, Profile::Balanced, Profile::Fast, Profile::Quick, Profile::Plain(1), Profile::Plain(19)];

fn profile() -> impl Strategy<Value = Profile> {
    prop::sample::select(&PROFILES[..])
}

fn chunks() -> impl Strategy<Value = Chunks> {
    prop_oneof![Just(Chunks::Auto), (1u32..40).prop_map(Chunks::Count), Just(Chunks::Count(u32::MAX))]
}

fn matrix() -> impl Strategy<Value = Matrix> {
    let n_genes = prop_oneof![Just(1), 1u32..300, 1u32..40_000, 60_000u32..1 << 20, Just(MAX_GENES)];
    n_genes.prop_flat_map(|n_genes| {
        let last = i32::try_from(n_genes - 1).unwrap();
        let gene = prop_oneof![4 => 0..=last.min(2000), 1 => 0..=last, 1 => last.saturating_sub(3).max(0)..=last];
        let count = prop_oneof![6 => 1..4, 2 => 1..300, 1 => 65_530..65_540, 1 => 1..=i32::MAX];
        let cell = prop::collection::btree_map(gene, count, 0..80usize).prop_map(|cell| cell.into_iter().collect());
        prop::collection::vec(prop_oneof![1 => Just(Vec::new()), 3 => cell], 0..30)
            .prop_map(move |cells| Matrix { n_genes, cells })
    })
}

proptest! {
    #[test]
    fn any_matrix_comes_back(matrix in matrix(), profile in profile(), chunks in chunks(), threads in 0usize..4) {
        let mut encoder = Encoder::builder().profile(profile).chunks(chunks).threads(threads).build().unwrap();
        let (tile, report) = round_trip(&matrix, &mut encoder);
        if let Chunks::Count(n) = chunks {
            prop_assert_eq!(report.n_chunks as usize, (n as usize).min(matrix.cells.len()));
        }
        // Neither the number of threads nor what an encoder did before shows in the bytes.
        let mut other = Encoder::builder().profile(profile).chunks(chunks).threads(1).build().unwrap();
        counts_like(3, 40, 500).encode(&mut other, &mut Vec::new()).unwrap();
        prop_assert_eq!(&round_trip(&matrix, &mut other).0, &tile);
    }
}

/// A stream of numbers that is the same everywhere.
fn numbers(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Counts that resemble real ones: most small, genes thinning out along the order.
fn counts_like(seed: u64, n_cells: usize, per_cell: usize) -> Matrix {
    let mut next = numbers(0x9E37_79B9_7F4A_7C15 ^ seed);
    let mut cell = || {
        let mut gene = -1;
        (0..per_cell)
            .map(|i| {
                gene += 1 + (next() % (1 + i as u64 / 100).pow(2)) as i32;
                let count = 1 + (next().trailing_zeros() / 2) as i32;
                (gene, if next().is_multiple_of(4000) { count * 300 } else { count })
            })
            .collect()
    };
    let cells: Vec<Vec<(i32, i32)>> = (0..n_cells).map(|_| cell()).collect();
    let n_genes = 1 + cells.iter().flatten().map(|nonzero| nonzero.0).max().unwrap_or(0);
    Matrix { n_genes: u32::try_from(n_genes).unwrap(), cells }
}

#[test]
fn every_profile_many_blocks() {
    let matrix = counts_like(1, 60, 2500); // planes of 150,000 bytes
    let sizes = PROFILES.map(|profile| {
        let tiles = [1, 2].map(|threads| {
            let settings = Encoder::builder().profile(profile).chunks(Chunks::Count(1)).threads(threads);
            round_trip(&matrix, &mut settings.build().unwrap()).0
        });
        assert!(tiles[0] == tiles[1], "{profile}");
        tiles[0].len()
    });
    let [small, balanced, fast, quick, plain_1, plain_19] = sizes;
    assert!([balanced, fast, quick, plain_19].iter().all(|&size| small <= size && size < plain_1), "{sizes:?}");
}

#[test]
fn cells_are_shared_out_by_nonzeros() {
    let matrix = counts_like(2, 500, 3001);
    let mut encoder = Encoder::builder().profile(Profile::Plain(1)).build().unwrap();
    let (tile, report) = round_trip(&matrix, &mut encoder);
    assert_eq!(report.n_chunks, 4);
    for chunk in 0..4 {
        let n = u64_at(&tile, 64 + 96 * chunk + 24) - u64_at(&tile, 64 + 96 * chunk + 16);
        assert!(n.abs_diff(375_125) <= 3001, "chunk {chunk} has {n}");
    }
    // One cell that has nearly everything, in any place, leaves every chunk its cell.
    for place in 0..9 {
        let mut cells = vec![vec![(0, 1)]; 9];
        cells[place] = (0..5000).map(|gene| (gene, 1)).collect();
        let matrix = Matrix { n_genes: 5000, cells };
        for n in 1..12 {
            let mut encoder = Encoder::builder().chunks(Chunks::Count(n)).build().unwrap();
            assert_eq!(round_trip(&matrix, &mut encoder).1.n_chunks, n.min(9));
        }
    }
}

#[test]
fn edges_of_the_format() {
    let mut encoder = Encoder::builder().build().unwrap();
    for n_genes in [1, MAX_GENES] {
        let last = i32::try_from(n_genes - 1).unwrap();
        for cells in [
            vec![],
            vec![vec![]],
            vec![vec![]; 50],
            vec![vec![(last, i32::MAX)]],
            vec![vec![], vec![(0, 65_535)], vec![(0, 65_536)], vec![]],
        ] {
            round_trip(&Matrix { n_genes, cells }, &mut encoder);
        }
    }
    let cell = vec![(65_535, 1), (131_070, 2), (196_606, 65_536), (300_000, 70_000)];
    let matrix = Matrix { n_genes: 300_001, cells: vec![cell.clone(), vec![(65_536, 1)], cell] };
    let (tile, report) = round_trip(&matrix, &mut encoder);
    assert_eq!((report.count_exceptions, report.gap_exceptions), (4, 5));
    let (no_cells, _) = round_trip(&Matrix { n_genes: 9, cells: vec![] }, &mut encoder);
    assert_eq!(no_cells.len(), 64 + 8);
    assert_eq!(round_trip(&matrix, &mut encoder).0, tile);
}

#[test]
fn exceptions_must_be_rare_unless_allowed() {
    let (count, gap) = ((0..3).map(|i| (i, 65_536)).collect(), (1..4).map(|i| (i * 65_536, 1)).collect());
    for (what, cell) in [("counts", count), ("gaps", gap)] {
        let tile = |n_cells| Matrix { n_genes: 1 << 20, cells: vec![Clone::clone(&cell); n_cells] };
        let mut strict = Encoder::builder().build().unwrap();
        round_trip(&tile(341), &mut strict);
        let error = tile(342).encode(&mut strict, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooManyExceptions { found: 1026, max: 1024 });
        assert!(error.to_string().starts_with(&format!("matrix, {what}: 1026 values above 65535")), "{error}");
        let mut lenient = Encoder::builder().exceptions(ExceptionPolicy::Any).build().unwrap();
        assert_eq!(round_trip(&tile(342), &mut lenient).1.nnz, 1026);
    }
}

#[test]
fn names_of_profiles() {
    for profile in PROFILES {
        assert_eq!(profile.to_string().parse::<Profile>().unwrap(), profile);
    }
    assert_eq!(Profile::default().to_string(), "balanced");
    assert_eq!("plain:22".parse::<Profile>().unwrap().zstd_level(), 22);
    for text in ["", "Small", "plain", "plain:", "plain:x", "plain:0", "plain:23", "plain:-1", " fast"] {
        let error = text.parse::<Profile>().unwrap_err().to_string();
        assert!(error.starts_with("option profile"), "{error}");
    }
    for settings in [Encoder::builder().profile(Profile::Plain(23)), Encoder::builder().chunks(Chunks::Count(0))] {
        assert!(matches!(settings.build().err().unwrap().kind(), ErrorKind::OutOfRange { .. }));
    }
}
