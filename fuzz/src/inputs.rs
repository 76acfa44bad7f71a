//! Files that are converted, in. The tests of `tilekern-convert` include this file, and replay seeds and past crashes.

use std::fs;
use std::path::{Path, PathBuf};

use tilekern_convert::{Hdf5, Input, InputOptions, Source, open};

/// A body of a fuzz target.
pub type Body = fn(&[u8]);

/// Every target about such files, and its body.
pub const TARGETS: &[(&str, Body)] = &[("h5ad", h5ad), ("mtx", mtx), ("zarr", zarr)];

/// The seeds of one of them.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "h5ad" => SEEDS.iter().map(|seed| seed.to_vec()).collect(),
        "mtx" => folders(),
        _ => stores(),
    }
}

/// Made by `fuzz/seeds/make.py`.
const SEEDS: &[&[u8]] = &[
    include_bytes!("../seeds/h5ad/categories.h5ad"),
    include_bytes!("../seeds/h5ad/csc_gzip.h5ad"),
    include_bytes!("../seeds/h5ad/csr.h5ad"),
    include_bytes!("../seeds/h5ad/csr_lzf.h5ad"),
    include_bytes!("../seeds/h5ad/dense.h5ad"),
    include_bytes!("../seeds/h5ad/latest.h5ad"),
    include_bytes!("../seeds/h5ad/old.h5ad"),
    include_bytes!("../seeds/h5ad/small.loom"),
    include_bytes!("../seeds/h5ad/tenx.h5"),
];

/// Any bytes as an HDF5 file: errors, or tables and rows that have the shape that they should.
pub fn h5ad(data: &[u8]) {
    read("h5ad", data);
}

/// Files between separators as a Matrix Market folder: the matrix, then the tables of genes and cells, if they are there.
pub fn mtx(data: &[u8]) {
    read("mtx", data);
}

/// Files between separators, each a name and a content behind a line break, as a store of AnnData in zarr.
pub fn zarr(data: &[u8]) {
    read("zarr", data);
}

/// Does what the body of a target does. Returns how many tables and pieces of rows could be read.
pub fn read(target: &str, data: &[u8]) -> usize {
    let root = scratch(target);
    match target {
        "h5ad" => return Hdf5::from_bytes(data.to_vec()).map_or(0, |file| source(&file, &root)),
        "mtx" => {
            for (name, content) in ["matrix.mtx", "features.tsv", "barcodes.tsv"].iter().zip(split(data)) {
                put(&root, name, content);
            }
        }
        _ => {
            for file in split(data) {
                let end = file.iter().position(|&byte| byte == b'\n').unwrap_or(file.len());
                let name = String::from_utf8_lossy(&file[..end]);
                let plain = |part: &str| !part.is_empty() && part != ".." && part.bytes().all(|b| b.is_ascii_graphic());
                if end < 80 && name.split('/').all(plain) {
                    put(&root, &name, file.get(end + 1..).unwrap_or_default());
                }
            }
        }
    }
    let count = open(&root).map_or(0, |found| source(&*found, &root.join("scratch")));
    let _ = fs::remove_dir_all(root);
    count
}

/// What separates files.
const SEPARATOR: [u8; 2] = [0x1e, 0x1f];

fn split(data: &[u8]) -> Vec<&[u8]> {
    let mut files = Vec::new();
    let mut rest = data;
    while let Some(at) = rest.windows(2).position(|pair| pair == SEPARATOR) {
        files.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    files.push(rest);
    files
}

/// An empty folder of this process and thread.
fn scratch(target: &str) -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id());
    let root = std::env::temp_dir().join(format!("tilekern-fuzz-{target}-{}-{thread}", std::process::id()));
    let _ = fs::remove_dir_all(&root); // what of it is there
    root
}

fn put(root: &Path, name: &str, content: &[u8]) {
    let path = root.join(name);
    // A name may be that of a folder, or lie below a file.
    let _ = path.parent().map(fs::create_dir_all);
    let _ = fs::write(path, content);
}

fn source(source: &dyn Source, scratch: &Path) -> usize {
    let mut count = 0;
    let options = InputOptions { feature_type: None, memory: 1 << 20, scratch: scratch.to_owned(), tables: true };
    for slot in source.slots().iter().take(4) {
        let Ok(mut input) = source.open(slot, &options) else { continue };
        let (n_cells, n_genes) = (input.n_cells(), input.n_genes());
        assert!((1..=1 << 31).contains(&n_genes));
        for (table, rows) in [(input.obs(), n_cells), (input.var(), n_genes)] {
            if let Ok(table) = table {
                assert_eq!(table.num_rows() as u64, rows);
                count += 1;
            }
        }
        // A dense matrix is gone through whatever is in it; one of any size fits into a few bytes.
        if n_genes > 1 << 14 {
            continue;
        }
        count += usize::from(rows(&mut *input, 0..n_cells.min(50)));
        count += usize::from(rows(&mut *input, n_cells.saturating_sub(3)..n_cells));
    }
    let _ = fs::remove_dir_all(scratch);
    count
}

/// Matrix Market folders of every kind of table.
fn folders() -> Vec<Vec<u8>> {
    let head = "%%MatrixMarket matrix coordinate integer general\n%\n3 4 3\n";
    let matrices = [
        format!("{head}1 1 5\n3 1 2\n2 4 1\n"),
        format!("{head}3 4 2\n1 4 0\n1 4 7\n").replace("integer", "real").replace(" 7", " 7.0e0"),
        head.replace("3 4 3", "2147483648 9999999 0"),
        format!("{head}1 1 -5\n").replace('\n', "\r\n"),
    ];
    let features = ["a\nb\nc\n", "i\ta\nj\tb\nk\tc", "i\ta\tGene Expression\nj\tb\tAntibody\tmore\nk\t\t\n"];
    let mut seeds: Vec<Vec<u8>> = matrices.iter().map(|matrix| matrix.clone().into_bytes()).collect();
    for (matrix, features) in matrices.iter().zip(features) {
        seeds.push([matrix.as_bytes(), features.as_bytes(), b"AC-1\nAG-1\n\nAT-1\n"].join(&SEPARATOR[..]));
    }
    // Stored blocks of deflate, so that a change of the content is a change of the text.
    let text = matrices[0].as_bytes();
    let len = u16::try_from(text.len()).expect("small");
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend([len.to_le_bytes(), (!len).to_le_bytes()].concat());
    packed.extend(text);
    packed.extend([crc32fast::hash(text).to_le_bytes(), u32::from(len).to_le_bytes()].concat());
    seeds.push(packed);
    seeds
}

/// Stores of both versions: three cells of two genes.
fn stores() -> Vec<Vec<u8>> {
    type Array<'a> = (&'a str, &'a str, &'a str, Vec<u8>, &'a [usize]);
    let words = |values: &[i32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let floats: Vec<u8> = [1_f32, 2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let texts = [&3_u32.to_le_bytes()[..], b"\x01\0\0\0a", b"\0\0\0\0", b"\x02\0\0\0bc"].concat();
    let genes = [&2_u32.to_le_bytes()[..], b"\x01\0\0\0x", b"\x01\0\0\0y"].concat();
    let sparse: Vec<Array<'_>> = vec![
        ("X/data", "<f4", "float32", floats.clone(), &[3]),
        ("X/indices", "<i4", "int32", words(&[0, 1, 1]), &[3]),
        ("X/indptr", "<i4", "int32", words(&[0, 2, 2, 3]), &[4]),
    ];
    let dense: Vec<Array<'_>> = vec![("X", "<i4", "int32", words(&[1, 0, 0, 2, 3, 0]), &[3, 2])];
    let tables: Vec<Array<'_>> = vec![
        ("obs/_index", "|O", "string", texts, &[3]),
        ("obs/n", "<i4", "int32", words(&[7, 8, 9]), &[3]),
        ("var/_index", "|O", "string", genes, &[2]),
        ("var/ids", "|S2", "uint16", b"g1g2".to_vec(), &[2]),
    ];
    let frame = |columns: &str| {
        format!("{{\"_index\": \"_index\", \"column-order\": [{columns}], \"encoding-type\": \"dataframe\"}}")
    };
    let mut seeds = Vec::new();
    for (x, is_sparse) in [(sparse, true), (dense, false)] {
        for version in [2, 3] {
            let mut files: Vec<Vec<u8>> = Vec::new();
            let mut put = |name: String, content: &[u8]| files.push([name.as_bytes(), b"\n", content].concat());
            let mut groups = vec![
                ("", "{\"encoding-type\": \"anndata\"}".to_owned()),
                ("obs/", frame("\"n\"")),
                ("var/", frame("\"ids\"")),
            ];
            if is_sparse {
                groups.push(("X/", "{\"encoding-type\": \"csr_matrix\", \"shape\": [3, 2]}".to_owned()));
            }
            for (name, attributes) in groups {
                if version == 2 {
                    put(format!("{name}.zgroup"), b"{\"zarr_format\": 2}");
                    put(format!("{name}.zattrs"), attributes.as_bytes());
                } else {
                    let text = format!("{{\"node_type\": \"group\", \"attributes\": {attributes}}}");
                    put(format!("{name}zarr.json"), text.as_bytes());
                }
            }
            for (name, two, three, content, shape) in x.iter().chain(&tables) {
                let is_text = *three == "string";
                if version == 2 {
                    let filters = if is_text { "[{\"id\": \"vlen-utf8\"}]" } else { "null" };
                    let text = format!(
                        "{{\"shape\": {shape:?}, \"chunks\": {shape:?}, \"dtype\": \"{two}\", \"compressor\": null, \
                         \"filters\": {filters}, \"fill_value\": 0, \"order\": \"C\"}}"
                    );
                    put(format!("{name}/.zarray"), text.as_bytes());
                    let zeros = vec!["0"; shape.len()].join(".");
                    put(format!("{name}/{zeros}"), content);
                } else {
                    let codec = if is_text { "vlen-utf8" } else { "bytes" };
                    let text = format!(
                        "{{\"shape\": {shape:?}, \"data_type\": \"{three}\", \"fill_value\": 0, \"chunk_grid\": {{\"name\": \
                         \"regular\", \"configuration\": {{\"chunk_shape\": {shape:?}}}}}, \"codecs\": [{{\"name\": \
                         \"{codec}\"}}]}}"
                    );
                    put(format!("{name}/zarr.json"), text.as_bytes());
                    put(format!("{name}/c/{}", vec!["0"; shape.len()].join("/")), content);
                }
            }
            seeds.push(files.join(&SEPARATOR[..]));
        }
    }
    seeds
}

/// Whether the rows of some cells could be read; they have the shape that they should.
fn rows(input: &mut dyn Input, cells: std::ops::Range<u64>) -> bool {
    let n_genes = input.n_genes();
    let mut next = cells.start;
    let read = input.rows(cells.clone(), 1 << 16, &mut |block| {
        assert_eq!(block.first_cell, next);
        next += block.n_cells() as u64;
        assert_eq!(block.indptr[0], 0);
        assert!(block.indptr.is_sorted());
        assert_eq!(block.indptr.last().copied(), i64::try_from(block.indices.len()).ok());
        assert_eq!(block.indices.len(), block.values.len());
        assert!(block.indices.iter().all(|&gene| u64::from(gene) < n_genes));
        Ok(())
    });
    if read.is_ok() {
        assert_eq!(next, cells.end);
    }
    read.is_ok()
}
