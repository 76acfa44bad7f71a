//! What the fuzzers start from.

use tilekern::deltacel::{Chunks, CsrView, Encoder, ExceptionPolicy, Profile};

use super::build::{Draft, Piece, exceptions, planes, raw_frame, rle_frame};

/// The seeds of a target.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "tile_decode" => tiles(),
        // Bytes that choose a tile, too.
        "tile_differential" => tiles().into_iter().chain((0..64).map(|i| noise(i, 600))).collect(),
        "encode_round_trip" => (0..64).zip((0..).step_by(40)).map(|(i, len)| noise(i, len)).collect(),
        "frame" => frames(),
        #[cfg(feature = "dataset")]
        "manifest" | "side_files" | "cell_selection" => super::dataset::seeds(target),
        #[cfg(feature = "obs")]
        "obs_schema" | "obs_filter" | "obs_cache" => super::obs::seeds(target),
        #[cfg(feature = "mlt")]
        "mlt_tile" | "mlt_encoding" | "mlt_differential" | "mlt_round_trip" => super::mlt::seeds(target),
        #[cfg(feature = "parquet")]
        "parquet_payload" | "parquet_round_trip" => super::parquet::seeds(target),
        #[cfg(feature = "parquet-files")]
        "parquet_chunk" | "parquet_file" => super::parquet_file::seeds(target),
        _ => Vec::new(),
    }
}

/// Bytes that are the same everywhere.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed ^ 0x9E37_79B9_7F4A_7C15;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        })
        .collect()
}

/// Tiles of the encoder, and some that it does not write: frames of every kind, chunks without cells, shared streams.
pub fn tiles() -> Vec<Vec<u8>> {
    let mut tiles = Vec::new();
    let lens = [0, 1, 3, 64, 65, 300];
    let cells: Vec<Vec<(i32, i32)>> = (0..12u8)
        .map(|cell| {
            let bytes = noise(cell.into(), lens[usize::from(cell) % lens.len()]);
            let mut gene = -1;
            bytes
                .iter()
                .map(|&byte| {
                    gene += if byte == 0 { 70_000 } else { 1 + i32::from(byte) % 9 };
                    (gene, if byte == 255 { 65_535 + i32::from(cell) } else { 1 + i32::from(byte) / 64 })
                })
                .collect()
        })
        .collect();
    for (profile, chunks) in [
        (Profile::Plain(1), Chunks::Auto),
        (Profile::Balanced, Chunks::Count(3)),
        (Profile::Small, Chunks::Count(5)),
        (Profile::Quick, Chunks::Count(u32::MAX)),
    ] {
        let builder = Encoder::builder().profile(profile).chunks(chunks).exceptions(ExceptionPolicy::Any);
        let mut encoder = builder.threads(1).build().expect("sound settings");
        for n_cells in [0, 1, 4, 12] {
            let mut indptr = vec![0];
            for cell in &cells[..n_cells] {
                indptr.push(indptr[indptr.len() - 1] + cell.len() as i64);
            }
            let (indices, values): (Vec<i32>, Vec<i32>) = cells[..n_cells].iter().flatten().copied().unzip();
            let matrix = CsrView { n_genes: 1 << 22, indptr: &indptr, indices: &indices, values: &values };
            let mut tile = Vec::new();
            encoder.encode(&matrix, &mut tile).expect("a sound matrix");
            tiles.push(tile);
        }
    }
    let (gaps, counts) = ([65_535, 1, 65_535, 3], [1, 65_535, 65_535, 2]);
    let lists = [exceptions(&[(1, 65_536), (2, u32::MAX >> 1)]), exceptions(&[(0, 1), (2, 900)])];
    let lone = Piece {
        cells: 0..2,
        nonzeros: 0..4,
        frames: [planes(&gaps), planes(&counts), lists[0].clone(), lists[1].clone()].map(|c| raw_frame(&c)),
    };
    let none = |cells, at| Piece {
        cells,
        nonzeros: at..at,
        frames: [raw_frame(&[]), rle_frame(0, &[(7, 0)]), raw_frame(&[]), Vec::new()],
    };
    tiles.push(
        Draft {
            n_genes: 200_000,
            bounds: vec![0, 2, 4, 4],
            chunks: vec![none(0..0, 0), lone, none(2..2, 4), none(2..3, 4), none(3..3, 4)],
            shared: true,
        }
        .write(),
    );
    // Counts of 257 and gaps of 1, as runs.
    let runs = Piece {
        cells: 0..1,
        nonzeros: 0..1000,
        frames: [rle_frame(2000, &[(1, 1000), (0, 1000)]), rle_frame(2000, &[(1, 2000)]), Vec::new(), Vec::new()],
    };
    tiles.push(Draft { n_genes: 1001, bounds: vec![0, 1000], chunks: vec![runs], shared: false }.write());
    tiles
}

fn frames() -> Vec<Vec<u8>> {
    let mut frames = vec![
        raw_frame(&[]),
        raw_frame(&noise(1, 100)),
        rle_frame(0, &[(0, 0)]),
        rle_frame(400, &[(1, 150), (2, 250)]),
        rle_frame(300_000, &[(1, 128 << 10), (2, 128 << 10), (3, 300_000 - (256 << 10))]),
    ];
    let like_gaps: Vec<u8> = noise(2, 3000).iter().map(|byte| byte.trailing_zeros().to_le_bytes()[0]).collect();
    for content in [&noise(3, 2)[..], &noise(4, 300), &like_gaps, &like_gaps.repeat(60)] {
        for (level, checksum) in [(1, false), (3, true), (19, false), (-5, true)] {
            let mut context = zstd_safe::CCtx::create();
            for parameter in
                [zstd_safe::CParameter::CompressionLevel(level), zstd_safe::CParameter::ChecksumFlag(checksum)]
            {
                context.set_parameter(parameter).expect("a parameter of libzstd");
            }
            let mut frame = Vec::with_capacity(zstd_safe::compress_bound(content.len()));
            context.compress2(&mut frame, content).expect("room");
            frames.push(frame);
        }
    }
    // A window instead of a single segment, as large as the format has it.
    let mut wide = vec![0x28, 0xB5, 0x2F, 0xFD, 0x80, 31 << 3];
    wide.extend(4u32.to_le_bytes());
    wide.extend(super::build::block_header(0, 4, true));
    wide.extend([1, 2, 0, 0]);
    frames.push(wide);
    frames
}
