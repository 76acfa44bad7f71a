//! HDF5 files: h5ad of AnnData, 10x feature-barcode matrices, loom.
//!
//! Everything is read in pieces, by a reader without C; `file` is the only part that knows it well.

mod columns;
mod file;
mod filters;
mod frame;
mod h5ad;
mod loom;
mod matrix;
mod table;
mod tenx;

use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use crate::{Error, ErrorKind, Input, InputOptions, Result, RowBlock, Source};
use file::{Container, Folder};
use matrix::Matrix;
use table::Budget;

/// How every HDF5 file begins that has no user block in front.
const MAGIC: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Members of a group that a note names, at most.
const MEMBERS: usize = 5;

/// Bytes that a row of a table takes beside its values.
const BYTES_PER_ROW: usize = 48;

/// An HDF5 file of a kind that is known.
pub struct Hdf5 {
    container: Container,
    kind: Kind,
    slots: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    H5ad,
    /// One group `matrix` with features of all types.
    TenX,
    /// A group for each genome.
    TenXGenomes,
    Loom,
}

impl Hdf5 {
    /// Whether a file that begins with `start` is HDF5.
    pub fn is_file(start: &[u8]) -> bool {
        start.starts_with(MAGIC)
    }

    /// Opens a file, and finds out what it is.
    ///
    /// # Errors
    /// What keeps it from being read; a file of another kind, which is named as far as it is known.
    pub fn open(path: &Path) -> Result<Hdf5> {
        Hdf5::new(Container::open(path)?)
    }

    /// Opens an AnnData store in zarr, which has the same parts as an h5ad file.
    ///
    /// # Errors
    /// As [`Hdf5::open`].
    pub fn open_zarr(path: &Path) -> Result<Hdf5> {
        Hdf5::new(Container::zarr(path))
    }

    /// The same of bytes in memory.
    ///
    /// # Errors
    /// As [`Hdf5::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Hdf5> {
        Hdf5::new(Container::from_bytes(bytes))
    }

    fn new(container: Container) -> Result<Hdf5> {
        let found = container.look().and_then(|root| {
            let kind = recognise(&root)?;
            let slots = match kind {
                Kind::H5ad => h5ad::slots(&root)?,
                Kind::TenX => vec![tenx::SLOT.to_owned()],
                Kind::TenXGenomes => tenx::genomes(&root)?,
                Kind::Loom => loom::slots(&root)?,
            };
            Ok((kind, slots))
        });
        let (kind, slots) = found.map_err(|error| error.in_path(&container.path))?;
        Ok(Hdf5 { container, kind, slots })
    }

    fn open_slot(&self, slot: &str, options: &InputOptions) -> Result<Opened> {
        if !self.slots.iter().any(|known| known == slot) {
            let message = format!("it has no matrix {slot:?}; it has {}", list(&self.slots));
            return Err(Error::new(ErrorKind::Missing, message));
        }
        if options.feature_type.is_some() && self.kind != Kind::TenX {
            let message = "only 10x files of Cell Ranger 3 and later have types of features";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let root = self.container.root(options.memory)?;
        let (mut opened, others): (_, &[&str]) = match self.kind {
            Kind::H5ad => (h5ad::open(&root, slot, options)?, &["obsm", "varm", "obsp", "varp", "uns"]),
            Kind::TenX | Kind::TenXGenomes => (tenx::open(&root, slot, options)?, &[]),
            Kind::Loom => (loom::open(&root, slot, options)?, &["col_graphs", "row_graphs"]),
        };
        opened.notes.extend(self.not_converted(&root, slot, others));
        Ok(opened)
    }

    /// What the file holds beside a matrix and its tables: other matrices, and what is in some groups.
    fn not_converted(&self, root: &Folder, slot: &str, groups: &[&str]) -> Option<String> {
        let mut found: Vec<String> = self.slots.iter().filter(|other| *other != slot).cloned().collect();
        for group in groups {
            match root.folder(group).and_then(|folder| folder.map(|folder| folder.names()).transpose()) {
                Ok(Some((folders, arrays))) => {
                    let mut names = [folders, arrays].concat();
                    // Old files have the categories of columns there, which are converted.
                    names.retain(|name| !(*group == "uns" && name.ends_with("_categories")));
                    names.sort();
                    let more = names.len().saturating_sub(MEMBERS);
                    names.truncate(MEMBERS);
                    if more > 0 {
                        names.push(format!("{more} more"));
                    }
                    if !names.is_empty() {
                        found.push(format!("{group} ({})", names.join(", ")));
                    }
                }
                Ok(None) => found.extend(matches!(root.array(group), Ok(Some(_))).then(|| (*group).to_owned())),
                // It need not be readable to be left out.
                Err(_) => found.push((*group).to_owned()),
            }
        }
        let path = self.container.path.display();
        (!found.is_empty()).then(|| format!("of {path} {slot} is converted, not {}", found.join(", ")))
    }
}

/// Names, or that there are none.
fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl Source for Hdf5 {
    fn slots(&self) -> Vec<String> {
        self.slots.clone()
    }

    fn open(&self, slot: &str, options: &InputOptions) -> Result<Box<dyn Input>> {
        let opened = self.open_slot(slot, options).map_err(|error| error.in_path(&self.container.path))?;
        let (path, slot) = (self.container.path.clone(), slot.to_owned());
        let memory = self.container.memory_for_tables(options.memory);
        Ok(Box::new(Hdf5Input { opened, path, slot, memory }))
    }
}

/// What a file is, by what is in it.
fn recognise(root: &Folder) -> Result<Kind> {
    let (folders, arrays) = root.names()?;
    let folder = |name: &str| folders.iter().any(|known| known == name);
    let array = |name: &str| arrays.iter().any(|known| known == name);
    let either = |name: &str| folder(name) || array(name);
    let encoding = root.attributes()?.text("encoding-type");
    let refuse = |message: &str| Err(Error::new(ErrorKind::Unsupported, message));
    if encoding.as_deref() == Some("MuData") || (folder("mod") && !either("X")) {
        return refuse(
            "a MuData file; write the modality that is meant as an h5ad file: mdata.mod[NAME].write_h5ad(PATH)",
        );
    }
    if encoding.as_deref() == Some("anndata") || (either("obs") && either("var")) {
        return Ok(Kind::H5ad);
    }
    if array("matrix") && folder("row_attrs") && folder("col_attrs") {
        return Ok(Kind::Loom);
    }
    if let Some(matrix) = root.folder("matrix")?
        && tenx::is_matrix(&matrix)?
    {
        return Ok(Kind::TenX);
    }
    let molecules = ["barcode_idx", "count", "umi", "feature_idx", "gene", "reads", "barcode"];
    if array("umi") && molecules.iter().filter(|name| array(name)).count() >= 3 {
        return refuse(
            "a 10x molecule_info file, which lists molecules and has no matrix; give the file \
             filtered_feature_bc_matrix.h5 of the same run",
        );
    }
    if folder("assays") && either("cell.names") {
        return refuse("an h5Seurat file; convert it to h5ad first");
    }
    if !tenx::genomes(root)?.is_empty() {
        return Ok(Kind::TenXGenomes);
    }
    let mut names = [folders.clone(), arrays.clone()].concat();
    names.truncate(8);
    let message = format!(
        "HDF5, but neither h5ad nor a 10x matrix nor loom; at its top are {}",
        if names.is_empty() { "no objects".to_owned() } else { names.join(", ") }
    );
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// Reads a table, and notes what is left out of it.
type ReadTable = Box<dyn Fn(&mut Budget, &mut Vec<String>) -> Result<RecordBatch> + Send>;

/// One matrix, and how to get its tables.
struct Opened {
    matrix: Matrix,
    obs: ReadTable,
    var: ReadTable,
    /// For each gene of the file its number among those that are kept, if not all are.
    kept: Option<Vec<Option<u32>>>,
    notes: Vec<String>,
}

struct Hdf5Input {
    opened: Opened,
    path: PathBuf,
    slot: String,
    /// Bytes that a table may take.
    memory: usize,
}

impl Hdf5Input {
    fn table(&mut self, read: fn(&Opened) -> &ReadTable, rows: u64) -> Result<RecordBatch> {
        let mut notes = Vec::new();
        let mut budget = Budget::new(self.memory);
        // Names of rows become text, and are compared: more than a file may store of them.
        let taken = budget.take(usize::try_from(rows).unwrap_or(usize::MAX), BYTES_PER_ROW);
        let found = taken.and_then(|()| read(&self.opened)(&mut budget, &mut notes)).and_then(|table| {
            if u64::try_from(table.num_rows()) == Ok(rows) {
                return Ok(table);
            }
            let message = format!("the table has {} rows, the matrix {rows}", table.num_rows());
            Err(Error::new(ErrorKind::Inconsistent, message))
        });
        notes.retain(|note| !self.opened.notes.contains(note));
        self.opened.notes.append(&mut notes);
        found.map_err(|error| error.in_path(&self.path))
    }
}

impl Input for Hdf5Input {
    fn path(&self) -> &Path {
        &self.path
    }

    fn slot(&self) -> &str {
        &self.slot
    }

    fn n_cells(&self) -> u64 {
        self.opened.matrix.n_cells
    }

    fn n_genes(&self) -> u64 {
        match &self.opened.kept {
            Some(kept) => kept.iter().flatten().count() as u64,
            None => self.opened.matrix.n_genes,
        }
    }

    fn obs(&mut self) -> Result<RecordBatch> {
        self.table(|opened| &opened.obs, self.n_cells())
    }

    fn var(&mut self) -> Result<RecordBatch> {
        self.table(|opened| &opened.var, self.n_genes())
    }

    fn notes(&self) -> Vec<String> {
        self.opened.notes.clone()
    }

    fn rows(&mut self, cells: Range<u64>, memory: usize, visit: &mut dyn FnMut(RowBlock) -> Result<()>) -> Result<()> {
        // Errors of the visitor are none of this file.
        let mut theirs = false;
        let Opened { matrix, kept, .. } = &mut self.opened;
        let found = matrix.rows(cells, memory, &mut |block| {
            let block = match kept {
                Some(kept) => tenx::keep(block, kept),
                None => block,
            };
            visit(block).inspect_err(|_| theirs = true)
        });
        if theirs { found } else { found.map_err(|error| error.in_path(&self.path)) }
    }
}
