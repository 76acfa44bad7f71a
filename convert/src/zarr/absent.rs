//! Which files of chunks an array lacks.
//!
//! A chunk without a file has the fill value throughout: so zarr says, and so its writers store chunks of zeros alone. A
//! store that was copied in part lacks files, too, and nothing in it tells one from the other; what the values must be
//! like can (see `Sparse::check`). Of chunks in a shard its index says whether they were stored: it lies in the same file as
//! they do, so none of those that it does not list was lost on the way. They are filled, as zarr asks.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What is known of the arrays of a store, by their directories: each is looked through once.
#[derive(Clone, Default)]
pub struct Known(Arc<Mutex<HashMap<PathBuf, Arc<Absent>>>>);

/// Files that are not there.
#[derive(Default)]
pub struct Absent {
    pub files: u64,
    /// Which ones, of an array with one dimension.
    pub gaps: Vec<Range<u64>>,
}

/// Where an array has its files: how many along each dimension, and their names.
pub struct Place<'a> {
    pub folder: &'a Path,
    pub files: Vec<u64>,
    pub prefix: &'a str,
    pub separator: &'a str,
}

impl Known {
    pub fn absent(&self, place: &Place<'_>) -> Arc<Absent> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(place.folder.to_owned()).or_insert_with(|| Arc::new(Absent::of(place))).clone()
    }
}

impl Absent {
    fn of(place: &Place<'_>) -> Absent {
        let (mut present, mut list) = (0, Vec::new());
        visit(place.folder, &mut Vec::new(), place.files.len() + 1, &mut |parts| {
            if let Some(numbers) = place.numbers(parts) {
                present += 1;
                list.extend(numbers.first().filter(|_| numbers.len() == 1).copied());
            }
        });
        list.sort_unstable();
        let mut gaps = Vec::new();
        if let [files] = place.files[..] {
            let ends = list.iter().copied().chain([files]);
            let starts = [0].into_iter().chain(list.iter().map(|n| n + 1));
            gaps.extend(starts.zip(ends).map(|(start, end)| start..end).filter(|gap| !gap.is_empty()));
        }
        let files = place.files.iter().fold(1, |all: u64, &n| all.saturating_mul(n));
        Absent { files: files.saturating_sub(present), gaps }
    }
}

impl Place<'_> {
    /// The numbers of the chunk that a file is, by its path below the directory of the array; none of other files.
    fn numbers(&self, parts: &[String]) -> Option<Vec<u64>> {
        let name = parts.join("/");
        if self.files.is_empty() {
            let alone = if self.prefix.is_empty() { "0" } else { self.prefix };
            return (name == alone).then(Vec::new);
        }
        let numbers = match self.prefix {
            "" => &*name,
            prefix => name.strip_prefix(prefix)?.strip_prefix(self.separator)?,
        };
        // As it is written: no sign, no zeros in front.
        let number = |text: &str| text.parse().ok().filter(|n: &u64| n.to_string() == text);
        let numbers = numbers.split(self.separator).map(number).collect::<Option<Vec<u64>>>()?;
        (numbers.len() == self.files.len() && numbers.iter().zip(&self.files).all(|(n, files)| n < files))
            .then_some(numbers)
    }
}

/// Hands over each file below a directory, as the names of which its path consists.
fn visit(folder: &Path, parts: &mut Vec<String>, depth: usize, each: &mut dyn FnMut(&[String])) {
    // What cannot be listed shows when it is read.
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_folder = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
            Ok(kind) => kind.is_dir(),
            Err(_) => continue,
        };
        parts.push(name);
        if !is_folder {
            each(parts);
        } else if depth > 1 {
            visit(&entry.path(), parts, depth - 1, each);
        }
        parts.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_names_are_none_of_chunks() {
        let folder = tempfile::tempdir().unwrap();
        let absent = |names: &[&str], files: &[u64], prefix: &str, separator: &str| {
            let root = folder.path().join("array");
            fs::create_dir(&root).unwrap();
            for name in names {
                let path = root.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            let found = Absent::of(&Place { folder: &root, files: files.to_vec(), prefix, separator });
            fs::remove_dir_all(&root).unwrap();
            (found.files, found.gaps.iter().map(|gap| (gap.start, gap.end)).collect::<Vec<_>>())
        };
        let list = ["c/1", "c/2", "c/4", "zarr.json", "c/7", "c/01", "c/+3", "3", "c/3.tmp", "c/0/0"];
        assert_eq!(absent(&list, &[6], "c", "/"), (3, vec![(0, 1), (3, 4), (5, 6)]));
        assert_eq!(absent(&["c.0", "c.1"], &[2], "c", "."), (0, vec![]));
        assert_eq!(absent(&[".zarray", "0"], &[3], "", "."), (2, vec![(1, 3)]));
        assert_eq!(absent(&["0.0", "0.1", "1.1", "2.0", "1"], &[2, 2], "", "."), (1, vec![]));
        assert_eq!(absent(&["0/0", "0/1", "1/1"], &[2, 2], "", "/"), (1, vec![]));
        assert_eq!(absent(&["c/0/0", "c/0/1/0"], &[1, 2], "c", "/"), (1, vec![]));
        assert_eq!(absent(&["c"], &[], "c", "/"), (0, vec![]));
        assert_eq!(absent(&["1"], &[], "", "."), (1, vec![]));
        assert_eq!(absent(&[], &[0], "", "."), (0, vec![]));
        assert_eq!(absent(&["c/0"], &[u64::MAX], "c", "/"), (u64::MAX - 1, vec![(1, u64::MAX)]));
        assert_eq!(absent(&[], &[u64::MAX, 3], "c", "/").0, u64::MAX);
    }
}
