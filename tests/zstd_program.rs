//! The frames of tiles are plain zstd: the `zstd` program unpacks each of them.
//!
//! Without the program there is one test: ignored, or failing where `TILEKERN_REQUIRE_ZSTD` is set.
#![allow(clippy::cast_possible_truncation)] // small numbers, checked by what they lead to

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use tilekern::deltacel::{Chunks, CsrView, Encoder, ExceptionPolicy, Profile};

fn main() {
    let arguments = Arguments::from_args();
    let trials = match Command::new("zstd").arg("--version").output() {
        Ok(output) if output.status.success() => ["small", "balanced", "fast", "quick", "plain:1", "plain:19"]
            .map(|profile| Trial::test(format!("zstd unpacks {profile}"), move || unpacks(profile.parse()?)))
            .into(),
        _ => {
            let required =
                std::env::var_os("TILEKERN_REQUIRE_ZSTD").is_some_and(|value| value != "0" && !value.is_empty());
            vec![Trial::test("zstd program", || Err("not found".into())).with_ignored_flag(!required)]
        }
    };
    libtest_mimic::run(&arguments, trials).exit()
}

/// The streams of the matrix below are known, so the frames can be judged by what the program makes of them.
fn unpacks(profile: Profile) -> Result<(), Failed> {
    // One chunk of several blocks. Cells of 0 to 600 nonzeros; gaps and counts of one byte, of two, and above 65535.
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let (mut gaps, mut counts) = (Vec::new(), Vec::new());
    for cell in 0..480 {
        let mut gene = 0;
        for i in 0..(cell * 37) % 601 {
            let gap = match (cell * 131 + i * i) % 997 {
                0 => 70_000 + cell,
                x if x < 40 => x * 9,
                x => x % (2 + i / 90),
            } + i32::from(i > 0);
            let count = if i == 300 { 65_500 + cell } else { 1 + (cell * i) % 5 * i32::from(i % 3 == 0) };
            gene += gap;
            indices.push(gene);
            values.push(count);
            gaps.push(gap);
            counts.push(count);
        }
        indptr.push(indices.len() as i64);
    }
    let matrix = CsrView { n_genes: 1 << 30, indptr: &indptr, indices: &indices, values: &values };
    let settings = Encoder::builder().profile(profile).chunks(Chunks::Count(1)).exceptions(ExceptionPolicy::Any);
    let mut tile = Vec::new();
    let report = settings.build()?.encode(&matrix, &mut tile)?;
    assert!(report.count_exceptions > 0 && report.gap_exceptions > 0);

    let folder = tempfile::tempdir()?;
    for chunk in 0..report.n_chunks as usize {
        let field = |i: usize| {
            let at = 64 + 96 * chunk + 8 * i;
            u64::from_le_bytes(tile[at..at + 8].try_into().expect("8 bytes")) as usize
        };
        let nonzeros = field(2)..field(3);
        for (stream, of) in [(4, &gaps), (6, &counts)] {
            let of = &of[nonzeros.clone()];
            let stored: Vec<[u8; 2]> = of.iter().map(|&value| (value.min(65_535) as u16).to_le_bytes()).collect();
            let planes: Vec<u8> = (0..2).flat_map(|plane| stored.iter().map(move |bytes| bytes[plane])).collect();
            assert_eq!(unpack(&tile[field(stream)..][..field(stream + 1)], folder.path())?, planes);
        }
        for (stream, of, less) in [(8, &counts, 0), (10, &gaps, 65_535)] {
            let large = (0u32..).zip(&of[nonzeros.clone()]).filter(|(_, value)| **value > 65_535);
            let (positions, payloads): (Vec<u32>, Vec<u32>) =
                large.map(|(position, value)| (position, (value - less) as u32)).unzip();
            let listed: Vec<u8> = positions.iter().chain(&payloads).flat_map(|n| n.to_le_bytes()).collect();
            assert!(!listed.is_empty());
            assert_eq!(unpack(&tile[field(stream)..][..field(stream + 1)], folder.path())?, listed);
        }
    }
    Ok(())
}

fn unpack(frame: &[u8], folder: &Path) -> Result<Vec<u8>, Failed> {
    let (packed, unpacked) = (folder.join("frame.zst"), folder.join("frame"));
    std::fs::write(&packed, frame)?;
    let run = Command::new("zstd").args(["-d", "-q", "-f", "-o"]).args([&unpacked, &packed]).output()?;
    if !run.status.success() {
        return Err(format!("zstd -d: {}", String::from_utf8_lossy(&run.stderr)).into());
    }
    Ok(std::fs::read(unpacked)?)
}
