//! By what an input is known again.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::open::files_within;
use crate::{Error, Result};

/// Size and time of a file, or name, size and time of all files of a folder that may be read: what changes when they do.
pub fn state(path: &Path) -> Result<String> {
    let (mut all, mut bytes, mut newest) = (Vec::new(), 0_u64, 0);
    for file in files_within(path)? {
        let fault = |error| Error::io(error, &file);
        let found = fs::metadata(&file).map_err(fault)?;
        let time = found.modified().map_err(fault)?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        (bytes, newest) = (bytes.saturating_add(found.len()), time.max(newest));
        let name = file.strip_prefix(path).unwrap_or(Path::new(file.file_name().unwrap_or_default()));
        all.push(format!("{}\0{}\0{time}\0", name.to_string_lossy(), found.len()));
    }
    all.sort_unstable();
    // FNV-1a: it must tell accidents apart, and be the same in every process.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = all.iter().flat_map(|file| file.as_bytes()).fold(0xcbf2_9ce4_8422_2325, step);
    Ok(format!("{} files, {bytes} bytes, the newest of {newest}, all of them {hash:016x}", all.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read counts, and nothing that only lies beside it.
    #[test]
    fn only_files_that_may_be_read_count() {
        const MATRIX: &str = "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1\n";
        let cases: [(&str, &[&str], &[&str]); 5] = [
            ("", &["manifest.json", "var.parquet", "obs/obs_0000.parquet", "tiles/tile_000000.dct"], &["log", "x/log"]),
            ("", &["zarr.json", "X/zarr.json", "X/c/0/0"], &["log.txt", "slurm-1.out"]),
            ("", &[".zgroup", ".zattrs", "obs/.zgroup", "X/0.0"], &["log.txt"]),
            ("", &["matrix.mtx", "features.tsv.gz", "barcodes.tsv"], &["log.txt", "other/matrix.mtx", "genes.csv"]),
            ("a_matrix.mtx", &["a_matrix.mtx", "a_genes.tsv", "a_barcodes.tsv"], &["b_genes.tsv", "log.txt"]),
        ];
        for (input, read, beside) in cases {
            let folder = tempfile::tempdir().unwrap();
            let write = |name: &str, text: &str| {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            read.iter().for_each(|name| write(name, MATRIX));
            let now = || state(&folder.path().join(input)).unwrap();
            let before = now();
            beside.iter().for_each(|name| write(name, MATRIX));
            #[cfg(unix)]
            for (to, name) in [("/nowhere/at all", "dangling"), ("loop", "loop"), (".", "folder")] {
                std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
            }
            assert_eq!(now(), before, "{beside:?}");
            for name in read {
                write(name, &format!("{MATRIX}\n"));
                assert_ne!(now(), before, "{name}");
                let path = folder.path().join(name);
                let time = fs::metadata(&path).unwrap().modified().unwrap() - std::time::Duration::from_secs(1_000_000);
                let after = now();
                fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
                assert_ne!(now(), after, "{name}");
            }
        }
    }
}
