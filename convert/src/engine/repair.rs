//! Files of a dataset that are damaged or gone, made again of the inputs of which it was converted.
//!
//! The dataset is put together a second time beside the first one, with the tiles of the first one that are sound. What was
//! remade is moved over only when all else has come out the same, so that other inputs cannot get in.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tilekern::deltacel::Decoder;
use tilekern::deltacel::dataset::{self, Dataset, Event, Manifest};
use tilekern::{Directory, Part, Unsupported};

use super::record::{Order, Record, WRITER};
use super::{Conversion, Counted, Options, Phase, Plan, Progress, Shard, check, counts_name, journal, open_all};
use crate::stage::{Stage, place, tile_name};
use crate::{Error, ErrorKind, GeneOrder, Result};

const MANIFEST: &str = "manifest.json";
const GENE_ORDER: &str = "gene_order.npy";

/// The files that every version of the writer makes with the same bytes.
const FIXED: [&str; 3] = [GENE_ORDER, "var_names.txt", "obs/schema.json"];

/// The files whose digests are in the manifest, where its writer put them there.
const DIGESTED: [&str; 3] = [GENE_ORDER, "var_names.txt", "var.parquet"];

/// How to repair. All else is recorded in the dataset.
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// The list by which genes were ordered, where there was one and `gene_order.npy` is damaged.
    pub gene_order: Option<PathBuf>,
    /// Threads; 0 is one per CPU.
    pub threads: usize,
    /// As for a conversion.
    pub memory: u64,
    /// Only say what would be remade.
    pub dry_run: bool,
}

impl Default for RepairOptions {
    fn default() -> RepairOptions {
        let Options { threads, memory, .. } = Options::default();
        RepairOptions { gene_order: None, threads, memory, dry_run: false }
    }
}

/// What a repair came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The files that were remade, or would be. None where the dataset was sound.
    pub files: Vec<Repair>,
    /// What else a person should know. One sentence each.
    pub notes: Vec<String>,
}

/// A file that was remade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Its name in the dataset.
    pub name: String,
    /// What was wrong with it, the first fault of it.
    pub fault: String,
}

/// Makes those files of a dataset again that do not pass its verification, of the inputs of which it was converted.
///
/// Files are replaced one by one, each at once. It works in a directory beside the dataset, `OUTPUT.repair`, which stays
/// after an interruption: the next repair goes on there.
///
/// # Errors
/// A manifest that is unsound or does not say how it was converted; inputs that do not come to the same dataset; what is
/// wrong with an input or the disk. Before the first file is replaced the dataset stays as it is.
pub fn repair(inputs: &[PathBuf], output: &Path, options: &RepairOptions, progress: &dyn Progress) -> Result<Repaired> {
    // What a link points to is meant, not the link.
    let root = fs::canonicalize(output).map_err(|error| Error::io(error, output))?;
    let dataset = open(&root, output)?;
    let bad = faults(&root, dataset.manifest(), options, progress)?;
    let mut name = root.file_name().unwrap_or_default().to_owned();
    name.push(".repair");
    let working = root.with_file_name(name);
    if bad.is_empty() {
        // One that was killed right behind its last step leaves it.
        if !options.dry_run
            && let Some(left) = Stage::left(working, 0)?
        {
            left.discard()?;
        }
        return Ok(Repaired::default());
    }
    if let Some(path) = bad.keys().map(|name| root.join(name)).find(|path| is_filled(path)) {
        let message = "is a directory, where a file belongs, and holds something; move it away and repair again";
        return Err(Error::new(ErrorKind::Unsupported, message).in_path(path));
    }
    let record = Record::read(dataset.manifest()).map_err(|error| error.in_path(output))?;
    if inputs.len() != record.inputs.len() {
        let given: Vec<_> = record.inputs.iter().map(|input| input.path.as_str()).collect();
        let message =
            format!("was converted from {} inputs: {}; name as many, in that order", given.len(), given.join(", "));
        return Err(Error::new(ErrorKind::Inconsistent, message).in_path(output));
    }
    let conversion_options = original(&dataset, &record, options, &bad).map_err(|error| error.in_path(output))?;
    check(inputs, &conversion_options, super::Step::Whole)?;
    let whole = Shard { index: 0, count: 1 };
    let journal = journal(inputs, &conversion_options, whole.count)?;
    let task = Task { root: &root, output, dataset: &dataset, record: &record, bad: &bad };
    let sources = open_all(inputs)?;
    let stage = Stage::open(working, whole.index, true, &journal)?;
    let result = Conversion::open(inputs, sources, Some(&record), &conversion_options, whole, &stage, progress)
        .and_then(|mut conversion| task.run(&mut conversion, options.dry_run));
    match result {
        Ok(repaired) => {
            stage.discard()?;
            Ok(repaired)
        }
        // What was asked for can be done later.
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Interrupted) => {
            stage.clear_scratch()?;
            Err(error)
        }
        // Inputs that do not fit will not fit the next time, and must not be in the way of others.
        Err(error) => {
            stage.discard()?;
            Err(error)
        }
    }
}

/// The dataset, whose manifest must be sound.
fn open(root: &Path, output: &Path) -> Result<Dataset> {
    let incomplete = tilekern::ErrorKind::Unsupported(Unsupported::Incomplete);
    Dataset::open(root).map_err(|error| match (error.kind(), error.part()) {
        (kind, _) if kind == incomplete => {
            let message = "has no manifest.json, without which nothing vouches for its other files: go on with the \
                           conversion that was interrupted (tilekern convert --resume), or convert the inputs anew";
            Error::new(ErrorKind::Unsupported, message).in_path(output)
        }
        (_, Part::Manifest(_)) => Error::from(error).hint(
            "its manifest is damaged, without which nothing vouches for its other files: fetch the manifest again, or \
             convert the inputs anew",
        ),
        _ => error.into(),
    })
}

/// The files that do not pass, each with its first fault; and `manifest.json` where it does not agree with sound files.
fn faults(
    root: &Path,
    manifest: &Manifest,
    options: &RepairOptions,
    progress: &dyn Progress,
) -> Result<BTreeMap<String, String>> {
    let decoder = Decoder::builder().threads(options.threads).build()?;
    let mut bad = BTreeMap::new();
    let mut before = 0;
    let mut alien = None;
    progress.start(Phase::Verifying, 0, manifest.n_cells());
    let ControlFlow::Continue(()) = dataset::verify(&Directory::new(root)?, &decoder, |event| {
        match event {
            Event::Fault(error) | Event::Warning(error) => {
                let name = error.path().and_then(|path| path.strip_prefix(root).ok());
                match name.map(|name| name.to_string_lossy().into_owned()) {
                    Some(name) => {
                        bad.entry(name).or_insert_with(|| without_advice(error.message()));
                    }
                    None => alien = Some(error),
                }
            }
            Event::Progress { done, .. } => {
                let cells = manifest.tile_limits().nth((done as usize).wrapping_sub(1)).unwrap_or(0);
                progress.advance(cells.saturating_sub(before));
                before = cells;
            }
            _ => {}
        }
        ControlFlow::<std::convert::Infallible>::Continue(())
    });
    alien.map_or(Ok(bad), |error| Err(error.into()))
}

/// The options of the conversion.
fn original(
    dataset: &Dataset,
    record: &Record,
    options: &RepairOptions,
    bad: &BTreeMap<String, String>,
) -> Result<Options> {
    let order = match (record.options.gene_order, &options.gene_order) {
        (Order::File, Some(list)) => Some(GeneOrder::File(list.clone())),
        (Order::File, None) if !bad.contains_key(GENE_ORDER) => {
            let order = dataset.gene_order()?.unwrap_or_default();
            Some(GeneOrder::Columns(order.iter().map(|gene| gene.unsigned_abs()).collect()))
        }
        (Order::File, None) => {
            let message = "gene_order.npy is damaged, and genes were ordered by a list: name it with --gene-order";
            return Err(Error::new(ErrorKind::Missing, message));
        }
        (_, Some(_)) => {
            let message = "genes were not ordered by a list; leave --gene-order out";
            return Err(Error::new(ErrorKind::Inconsistent, message));
        }
        (_, None) => None,
    };
    let recorded = record.options(dataset.manifest().tile_size())?;
    let gene_order = order.unwrap_or(recorded.gene_order.clone());
    Ok(Options { gene_order, threads: options.threads, memory: options.memory, ..recorded })
}

/// A dataset and what is wrong with it.
struct Task<'a> {
    root: &'a Path,
    /// As it was given.
    output: &'a Path,
    dataset: &'a Dataset,
    record: &'a Record,
    bad: &'a BTreeMap<String, String>,
}

impl Task<'_> {
    fn run(&self, conversion: &mut Conversion<'_>, dry_run: bool) -> Result<Repaired> {
        self.check_shape(conversion)?;
        let files = |bad: &BTreeMap<String, String>| {
            let file = |(name, fault): (&String, &String)| Repair { name: name.clone(), fault: fault.clone() };
            bad.iter().map(file).collect()
        };
        if dry_run {
            return Ok(Repaired { files: files(self.bad), notes: Vec::new() });
        }
        let stage = conversion.stage;
        // Where all tiles are there, or on their way into the dataset, this moves them back.
        stage.dataset()?;
        let counted = match stage.json::<Counted>(&counts_name(0))? {
            Some(counted) => counted,
            None => conversion.count(conversion.shard)?,
        };
        let (found, expected) = (counted.nnz, self.manifest().nnz());
        if found != expected {
            return Err(self.other(format!("{found} nonzeros, the dataset {expected}")));
        }
        let plan = conversion.plan(1)?;
        self.tiles(conversion, &plan)?;
        let summary = conversion.assemble(&plan, self.output)?;
        let made = stage.dataset_path();
        let replaced = self.compare(&made)?;
        conversion.progress.complete(&mut || self.replace(&made, replaced.keys()))?;
        Ok(Repaired { files: files(&replaced), notes: summary.notes })
    }

    fn manifest(&self) -> &Manifest {
        self.dataset.manifest()
    }

    /// The inputs come to something else.
    fn other(&self, what: String) -> Error {
        let message = format!(
            "these are not the inputs of which it was converted, or they have changed: they come to {what}; nothing was \
             replaced"
        );
        Error::new(ErrorKind::Inconsistent, message).in_path(self.output)
    }

    /// The inputs have the cells and genes of the dataset.
    fn check_shape(&self, conversion: &Conversion<'_>) -> Result<()> {
        for ((input, now), before) in conversion.inputs.iter().zip(&conversion.record).zip(&self.record.inputs) {
            if now.n_cells != before.n_cells {
                let (path, found, expected) = (input.path().display(), now.n_cells, before.n_cells);
                return Err(self.other(format!("{found} cells in {path}, the dataset has {expected} of it")));
            }
        }
        let (found, expected) = (conversion.n_cells(), self.manifest().n_cells());
        if found != expected {
            return Err(self.other(format!("{found} cells, the dataset has {expected}")));
        }
        let (found, expected) = (conversion.genes.count() as u64, u64::from(self.manifest().n_genes()));
        if found != expected {
            return Err(self.other(format!("{found} genes, the dataset has {expected}")));
        }
        Ok(())
    }

    /// Puts all tiles together: those that are sound by a link, the others of the inputs.
    fn tiles(&self, conversion: &mut Conversion<'_>, plan: &Plan) -> Result<()> {
        let stage = conversion.stage;
        let is_bad = |tile: u32| self.bad.contains_key(&tile_name(tile.into()));
        let n_tiles = self.manifest().n_tiles();
        for tile in 0..n_tiles {
            let made = stage.tile(tile.into());
            if is_bad(tile) {
                continue; // one of an attempt that was interrupted is of use if it is whole
            }
            remove(&made)?;
            let sound = fs::canonicalize(self.dataset.tile_path(tile));
            // Not every file system has links.
            let taken =
                sound.and_then(|sound| fs::hard_link(&sound, &made).or_else(|_| fs::copy(&sound, &made).map(drop)));
            taken.map_err(|error| Error::io(error, &made))?;
        }
        conversion.write(plan, 0..n_tiles.into()).map(drop)
    }

    /// The files to be replaced, each with what is wrong with it, once it is certain that the dataset that was made is the
    /// same otherwise.
    fn compare(&self, made: &Path) -> Result<BTreeMap<String, String>> {
        let new = Dataset::open(made)?;
        let same_writer = self.record.by == WRITER;
        let (old, new_manifest) = (self.manifest(), new.manifest());
        let (before, now) = (old.tile_nnz(), new_manifest.tile_nnz());
        if before != now {
            let tile = before.iter().zip(now).position(|(before, now)| before != now).unwrap_or(0);
            let (found, expected) = (now[tile], before[tile]);
            return Err(self.other(format!("{found} nonzeros in tile {tile}, the dataset has {expected}")));
        }
        // Files that pass, but that others which vouch for them speak against.
        let suspects = [(MANIFEST, "obs/schema.json"), ("var.parquet", "var_names.txt")];
        let mut replaced = BTreeMap::new();
        for name in files(made)? {
            let (old, new) = (self.root.join(&name), made.join(&name));
            if name == MANIFEST && without_digests(&old)? == without_digests(&new)? {
                replaced.extend(self.wrong_digest(made, new_manifest)?.map(|fault| (name, fault)));
                continue;
            }
            let known = self.bad.get(&name).filter(|_| name != MANIFEST);
            // Tiles that are not bad are the same file.
            if name.starts_with("tiles/") && known.is_none() || same_bytes(&old, &new)? {
                continue;
            }
            let suspect = suspects.iter().find(|(_, suspect)| name == *suspect);
            if let Some(fault) = known.or_else(|| self.bad.get(suspect?.0)) {
                replaced.insert(name, fault.clone());
                continue;
            }
            if !same_writer && !FIXED.contains(&&*name) {
                replaced.insert(name, format!("this version writes it with other bytes than {}", self.record.by));
                continue;
            }
            let why = match &*name {
                MANIFEST => format!("another manifest: {}", first_difference(&old, &new)),
                _ => format!(
                    "another {name}, though the one that is there passes its verification; if that is the wrong one \
                     all the same, remove it and repair again"
                ),
            };
            return Err(self.other(why));
        }
        Ok(replaced)
    }

    /// What is wrong with the digests in the manifest, whose text is the same otherwise: a file that they speak against came
    /// out as it is. Where there are none, as from versions that did not write them, nothing is.
    fn wrong_digest(&self, made: &Path, new: &Manifest) -> Result<Option<String>> {
        for name in DIGESTED {
            let Some(stated) = self.manifest().file_sha256(name).filter(|stated| new.file_sha256(name) != Some(stated))
            else {
                continue;
            };
            if same_bytes(&self.root.join(name), &made.join(name))? {
                return Ok(Some(format!("its digest of {name} is not that of the file, which is sound")));
            }
            if self.record.by == WRITER || FIXED.contains(&name) {
                return Err(self.other(format!("another {name}, of SHA-256 other than {}", hex(stated))));
            }
            return Ok(Some(format!("this version writes {name} with other bytes than {}", self.record.by)));
        }
        Ok(None)
    }

    /// Moves files over, the manifest last.
    fn replace<'n>(&self, made: &Path, names: impl Iterator<Item = &'n String> + Clone) -> Result<()> {
        let is_manifest = |name: &&String| *name == MANIFEST;
        for name in names.clone().filter(|name| !is_manifest(name)).chain(names.clone().filter(is_manifest)) {
            place(&made.join(name), &self.root.join(name))?;
        }
        Ok(())
    }
}

/// The names of all files of a dataset that was made here.
fn files(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in ["", "obs", "tiles"] {
        let entries = match fs::read_dir(root.join(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(|error| Error::io(error, root.join(folder)))?,
        };
        for entry in entries {
            let path = entry.map_err(|error| Error::io(error, root))?.path();
            if path.is_file()
                && let Ok(name) = path.strip_prefix(root)
            {
                found.push(name.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What is wrong with a file, without the advice to fetch it again: that is what is being done.
fn without_advice(message: String) -> String {
    match message.split_once("; fetch the object again") {
        Some((wrong, rest)) => format!("{wrong}{rest}"),
        None => message,
    }
}

/// Whether two files are the same; where there is no file, nothing is.
fn same_bytes(old: &Path, new: &Path) -> Result<bool> {
    let read = |path: &Path| fs::read(path).map_err(|error| Error::io(error, path));
    match read(old) {
        Err(error) if error.kind() == ErrorKind::Io && !old.is_file() => Ok(false),
        old => Ok(old? == read(new)?),
    }
}

/// The text of a manifest without the digests of files that this library adds, which have a line of their own.
fn without_digests(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).map_err(|error| Error::io(error, path))?;
    Ok(text.lines().filter(|line| !line.trim_start().starts_with("\"tilekern_sha256\"")).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether it is a directory with something in it, and not a link to one.
fn is_filled(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
        && !fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// The first line of the second of two texts that the first one does not have there.
fn first_difference(old: &Path, new: &Path) -> String {
    let [old, new] = [old, new].map(|path| fs::read_to_string(path).unwrap_or_default());
    let line = old.lines().zip(new.lines()).find(|(old, new)| old != new).map_or("", |(_, new)| new);
    let line = line.trim().trim_end_matches(',');
    line.chars().take(200).collect()
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(error, path)),
        _ => Ok(()),
    }
}
