//! Traces of tiles: of the corpus, and of tiles made here.

mod support;

use libtest_mimic::{Failed, Trial};
use support::{entries, same};
use tilekern::Limits;
use tilekern::deltacel::{Csr, Decoder, Tile, trace};

fn main() {
    support::run("fixtures/deltacel", |corpus| {
        let mut trials = Vec::new();
        for folder in ["valid", "invalid"] {
            for entry in entries(&corpus.join(folder).join("index.json")) {
                let path = corpus.join(folder).join(entry["tile"].as_str().expect("a tile"));
                let name = format!("{folder} {}", entry["name"].as_str().unwrap_or_default());
                trials.push(Trial::test(name, move || agrees(&std::fs::read(&path)?)));
            }
        }
        let path = corpus.join("valid/hand_3x5.dct");
        trials.push(Trial::test("the hand-checkable tile", move || hand(&std::fs::read(&path)?)));
        trials
    })
}

/// A trace ends with the fault of opening, and without one where the tile opens; steps lie in the object.
fn agrees(bytes: &[u8]) -> Result<(), Failed> {
    let trace = trace(bytes, None, &Limits::default());
    let opened = Tile::open(bytes);
    for step in &trace.steps {
        same("span in the object", step.span.start <= step.span.end && step.span.end <= bytes.len() as u64, true)?;
    }
    match (opened, trace.fault) {
        (Ok(tile), fault) => {
            let decoded = Decoder::new()?.decode(&tile, &mut Csr::<i32>::new());
            // A trace shows frames; what the values mean is the decoder's to judge.
            if let (Ok(_), Some(fault)) = (decoded, fault) {
                return Err(format!("traced to a fault, though it decodes: {fault}").into());
            }
        }
        (Err(error), Some(fault)) => same("fault", fault.to_string(), error.to_string())?,
        (Err(error), None) => return Err(format!("traced to the end, though {error}").into()),
    }
    Ok(())
}

fn hand(bytes: &[u8]) -> Result<(), Failed> {
    let trace = trace(bytes, Some(0), &Limits::default());
    let steps: Vec<String> = trace
        .steps
        .iter()
        .map(|s| {
            format!("{:3}..{:3} {}{}: {}", s.span.start, s.span.end, "  ".repeat(s.depth.into()), s.label, s.detail)
        })
        .collect();
    let expected = "
  0.. 64 header: 
  0..  8   magic: DELTACEL
  8.. 12   version: 2
 12.. 16   flags: 0
 16.. 24   n_cells: 3
 24.. 32   nnz: 4
 32.. 36   n_genes: 5
 36.. 40   n_chunks: 1
 40.. 48   indptr_off: 160
 48.. 56   total_size: 233
 56.. 60   crc32: 0x5df4265c
 60.. 64   reserved: 0
 64..160 chunk table, entry 0: cells 0..3, nonzeros 0..4, gaps 17 bytes at 192, vals 17 bytes at 216
160..192 indptr: 4 values: 0 3 3 4
192..209 chunk 0, gaps: zstd frame, 17 bytes to 8
192..198   frame header: 8 bytes, single segment
198..209   block 0: raw, 8 bytes, last
192..209   gaps: 4 values: 0 2 2 1
216..233 chunk 0, vals: zstd frame, 17 bytes to 8
216..222   frame header: 8 bytes, single segment
222..233   block 0: raw, 8 bytes, last
216..233   counts: 4 values: 1 2 3 300";
    same("steps", format!("\n{}", steps.join("\n")).as_str(), expected)
}
