//! What a path is, and which of its matrices is meant.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::rows::{Cleaner, Columns, Rows};
use crate::{Error, ErrorKind, Input, InputOptions, Result, Source, deltacel, hdf5, mtx, zarr};

/// Opens a file or folder as what its content says that it is.
///
/// # Errors
/// What cannot be read, or is of no kind that is known.
pub fn open(path: &Path) -> Result<Box<dyn Source>> {
    let fault = |error| Error::io(error, path);
    if std::fs::metadata(path).map_err(fault)?.is_dir() {
        return open_folder(path);
    }
    if mtx::Mtx::is_file(path)? {
        return Ok(Box::new(mtx::Mtx::in_file(path)?));
    }
    let mut start = [0; 8];
    let mut file = std::fs::File::open(path).map_err(fault)?.take(8);
    let mut found = 0;
    while found < start.len() {
        match file.read(&mut start[found..]).map_err(fault)? {
            0 => break,
            n => found += n,
        }
    }
    if hdf5::Hdf5::is_file(&start[..found]) {
        return Ok(Box::new(hdf5::Hdf5::open(path)?));
    }
    let advice = match &start[..found] {
        [] => "it is empty",
        b"DELTACEL" => "it is one tile; name the directory of its dataset",
        [b'P', b'K', ..] => "it is a zip archive; unpack it and name what was in it",
        _ => {
            "write it as h5ad with Python's anndata, or as Matrix Market text: tables of text (csv, tsv, loom's loomR \
             variants) say neither which way they lie nor what their numbers are"
        }
    };
    let message = format!("of no kind that can be converted; {advice}");
    Err(Error::new(ErrorKind::Unsupported, message).in_path(path))
}

fn open_folder(path: &Path) -> Result<Box<dyn Source>> {
    if path.join("manifest.json").exists() {
        return Ok(Box::new(deltacel::Folder::new(path)));
    }
    if zarr::is_store(path) {
        return Ok(Box::new(hdf5::Hdf5::open_zarr(path)?));
    }
    if let Some(found) = mtx::Mtx::in_folder(path)? {
        return Ok(Box::new(found));
    }
    let files = single_files(path)?;
    if let Some((end, n)) = files.iter().max_by_key(|(_, n)| **n) {
        let (folder, files) = (path.join(format!("*.{end}")), if *n == 1 { "file" } else { "files" });
        let message = format!("a folder, in which {n} {end} {files} lie; name the files: {}", folder.display());
        return Err(Error::new(ErrorKind::Unsupported, message).in_path(path));
    }
    let message = "a folder of no kind that can be converted; it needs a matrix.mtx or matrix.mtx.gz, the manifest.json \
                   of a dataset, or the metadata of an AnnData store in zarr";
    Err(Error::new(ErrorKind::Unsupported, message).in_path(path))
}

/// The files of an input that may be read: all that matters of it is in them.
///
/// # Errors
/// An input that is not there, or cannot be listed.
pub fn files_within(path: &Path) -> Result<Vec<PathBuf>> {
    if !std::fs::metadata(path).map_err(|error| Error::io(error, path))?.is_dir() {
        // Tables lie beside a matrix.
        return if mtx::Mtx::is_file(path)? { Ok(mtx::Mtx::in_file(path)?.files()) } else { Ok(vec![path.to_owned()]) };
    }
    let first = |name: &Path| name.iter().next().unwrap_or_default().to_string_lossy().into_owned();
    if path.join("manifest.json").exists() {
        let known = ["manifest.json", "gene_order.npy", "var_names.txt", "var.parquet", "obs", "tiles"];
        return walk(path, &|name| known.contains(&&*first(name)));
    }
    if zarr::is_store(path) {
        // Whatever lies within its arrays may be a chunk; beside them only metadata is read.
        return walk(path, &|name| {
            name.iter().count() > 1 || first(name).starts_with('.') || first(name) == "zarr.json"
        });
    }
    mtx::Mtx::in_folder(path)?.map_or_else(|| walk(path, &|_| true), |found| Ok(found.files()))
}

/// All files below a folder whose names within it are wanted.
fn walk(root: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let (mut found, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = left.pop() {
        let fault = |error| Error::io(error, &folder);
        for entry in std::fs::read_dir(&folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let path = entry.path();
            let is_link = entry.file_type().map_err(fault)?.is_symlink();
            // Files may be linked; folders that are could be linked in a circle, and a link to nowhere is no file.
            if path.is_dir() {
                left.extend((!is_link).then_some(path));
            } else if (!is_link || path.exists()) && wanted(path.strip_prefix(root).unwrap_or(&path)) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// How many files of each kind that is a single one lie in a folder, by the ends of their names.
fn single_files(folder: &Path) -> Result<BTreeMap<&'static str, usize>> {
    let fault = |error| Error::io(error, folder);
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        let known = ["h5ad", "h5", "loom"].into_iter().find(|end| path.extension().is_some_and(|found| found == *end));
        known.into_iter().for_each(|end| *found.entry(end).or_insert(0) += 1);
    }
    Ok(found)
}

/// Opens the matrix that is asked for; without one the only one that holds counts, if that is the usual one.
///
/// # Errors
/// Whatever keeps it from being opened; `Ambiguous` where a choice must be made.
pub fn choose(
    source: &dyn Source,
    path: &Path,
    wanted: Option<&str>,
    options: &InputOptions,
) -> Result<Box<dyn Input>> {
    let slots = source.slots();
    match (wanted, &slots[..]) {
        (Some(slot), _) => source.open(slot, options),
        (None, []) => Err(Error::new(ErrorKind::Missing, "it holds no matrix").in_path(path)),
        (None, [only]) => source.open(only, options),
        (None, [first, others @ ..]) => {
            let mut why = None;
            let mut found: Vec<&String> = Vec::new();
            match holds_counts(source, first, options)? {
                None => found.push(first),
                Some(error) => why = Some(error),
            }
            found.extend(other_counts(source, others, options));
            match found[..] {
                [slot] if slot == first => source.open(first, options),
                [] => Err(why
                    .unwrap_or_else(|| Error::new(ErrorKind::NotCounts, "no matrix holds counts"))
                    .hint(format!("none of {} holds counts", slots.join(", ")))
                    .in_part(first.as_str())
                    .in_path(path)),
                _ => {
                    let error = match why {
                        None => Error::new(ErrorKind::Ambiguous, "several matrices hold counts"),
                        Some(error) => error.in_part(first.as_str()),
                    };
                    Err(error.hint(choices(&found)).in_path(path))
                }
            }
        }
    }
}

/// What to say of the matrices that hold counts.
pub fn choices(found: &[&String]) -> String {
    let list: Vec<_> = found.iter().map(|slot| format!("--matrix {slot}")).collect();
    format!("choose: {}", list.join(" or "))
}

/// Those of some slots which hold counts.
pub fn other_counts<'a>(source: &dyn Source, slots: &'a [String], options: &InputOptions) -> Vec<&'a String> {
    // One that cannot be read is no choice to offer.
    slots.iter().filter(|slot| matches!(holds_counts(source, slot, options), Ok(None))).collect()
}

/// Whether all values of a matrix are counts; else the first that is none.
fn holds_counts(source: &dyn Source, slot: &str, options: &InputOptions) -> Result<Option<Error>> {
    let mut input = source.open(slot, options)?;
    let (mut cleaner, mut rows) = (Cleaner::new(Columns::Same(input.n_genes()), false), Rows::default());
    let n_cells = input.n_cells();
    let read = input.rows(0..n_cells, options.memory, &mut |block| {
        rows.clear();
        cleaner.clean(&block, 0..block.n_cells(), &mut rows)
    });
    match read {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotCounts => Ok(Some(error)),
        Err(error) => Err(error),
    }
}
