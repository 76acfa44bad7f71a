//! Shared by the tests of the conversion.
#![allow(dead_code)] // each test target uses its part

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tilekern::deltacel::dataset::Dataset;
use tilekern::deltacel::{Csr, Decoder};
use tilekern_convert::{Options, Result, Step, Summary, convert};

/// The folder that holds the corpora: `TILEKERN_FIXTURES`, else `../shared` beside the checkout.
pub fn fixtures() -> PathBuf {
    match std::env::var_os("TILEKERN_FIXTURES") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    }
}

/// Whether a switch for tests is on.
pub fn switched_on(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| value != "0" && !value.is_empty())
}

/// SHA-256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A matrix of cells x genes in rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    pub n_genes: usize,
    /// Genes and counts of each cell, sorted.
    pub rows: Vec<Vec<(u32, i32)>>,
}

impl Matrix {
    /// That of a dataset, with the columns of its source.
    pub fn of(path: &Path) -> Matrix {
        let dataset = Dataset::open(path).expect("a dataset");
        let mut csr = Csr::<i32>::new();
        dataset.range(0..dataset.n_cells(), &Decoder::new().expect("a decoder"), &mut csr).expect("sound");
        let order = dataset.gene_order().expect("a gene order").expect("a gene order");
        let at = |bound: i64| usize::try_from(bound).expect("a bound");
        let row = |bounds: &[i64]| {
            let span = at(bounds[0])..at(bounds[1]);
            let genes = csr.indices()[span.clone()].iter().map(|&gene| order[gene as usize].unsigned_abs());
            let mut row: Vec<_> = genes.zip(csr.values()[span].iter().copied()).collect();
            row.sort_unstable();
            row
        };
        Matrix { n_genes: order.len(), rows: csr.indptr().windows(2).map(row).collect() }
    }

    pub fn sums(&self) -> Vec<u64> {
        let mut sums = vec![0; self.n_genes];
        self.rows.iter().flatten().for_each(|&(gene, count)| sums[gene as usize] += u64::from(count.unsigned_abs()));
        sums
    }

    /// The digests of indptr, indices and data.
    pub fn digests(&self) -> [String; 3] {
        let mut indptr = vec![0_i64];
        self.rows.iter().for_each(|row| indptr.push(indptr[indptr.len() - 1] + i64::try_from(row.len()).unwrap()));
        let indices: Vec<i32> = self.rows.iter().flatten().map(|&(gene, _)| i32::try_from(gene).unwrap()).collect();
        let data: Vec<i32> = self.rows.iter().flatten().map(|&(_, count)| count).collect();
        [
            sha256(bytemuck::cast_slice(&indptr)),
            sha256(bytemuck::cast_slice(&indices)),
            sha256(bytemuck::cast_slice(&data)),
        ]
    }

    /// The lines of a Matrix Market file, by cell.
    pub fn lines(&self) -> Vec<String> {
        let row = |(cell, row): (usize, &Vec<(u32, i32)>)| {
            row.iter().map(move |(gene, count)| format!("{} {} {count}", gene + 1, cell + 1)).collect::<Vec<_>>()
        };
        self.rows.iter().enumerate().flat_map(row).collect()
    }

    /// Writes it as a Matrix Market folder with those lines.
    pub fn write(&self, folder: &Path, lines: &[String], genes: &[String], cells: &[String]) {
        fs::create_dir_all(folder).unwrap();
        let head = format!("{} {} {}", self.n_genes, self.rows.len(), lines.len());
        let head = ["%%MatrixMarket matrix coordinate integer general", "% made by a test", &head].join("\n");
        fs::write(folder.join("matrix.mtx"), [head, lines.join("\n")].join("\n") + "\n").unwrap();
        fs::write(folder.join("features.tsv"), genes.join("\n") + "\n").unwrap();
        fs::write(folder.join("barcodes.tsv"), cells.join("\n") + "\n").unwrap();
    }

    /// The same in the order of cells, with made-up names.
    pub fn write_plain(&self, folder: &Path) {
        let genes: Vec<_> = (0..self.n_genes).map(|gene| format!("id{gene}\tname{gene}\tGene Expression")).collect();
        let cells: Vec<_> = (0..self.rows.len()).map(|cell| format!("cell{cell}")).collect();
        self.write(folder, &self.lines(), &genes, &cells);
    }

    /// Made of a seed; some cells and genes are empty.
    pub fn random(cells: usize, n_genes: usize, per_cell: usize, seed: u64) -> Matrix {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap()
        };
        let mut row = |cell: usize| {
            let n = if cell.is_multiple_of(7) { 0 } else { next() % (2 * per_cell + 1) };
            let mut row: BTreeMap<u32, i32> = BTreeMap::new();
            for _ in 0..n {
                let gene = (next() % n_genes).min(next() % n_genes);
                let count = if next().is_multiple_of(1000) { 70_000 } else { 1 + next() % 5 };
                row.insert(u32::try_from(gene).unwrap(), i32::try_from(count).unwrap());
            }
            row.into_iter().collect()
        };
        Matrix { n_genes, rows: (0..cells).map(&mut row).collect() }
    }
}

/// Converts without being told of progress.
pub fn run(inputs: &[&Path], output: &Path, options: &Options) -> Result<Summary> {
    let inputs: Vec<_> = inputs.iter().map(|path| (*path).to_owned()).collect();
    convert(&inputs, output, options, Step::Whole, &())
}

/// The files below a folder with their contents.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), bytes);
            }
        }
    }
    found
}
