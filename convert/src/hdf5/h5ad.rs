//! h5ad: AnnData in HDF5, as anndata 0.5 to 0.13, R and others write it.

use super::Opened;
use super::file::{Array, Attributes, Folder, Node};
use super::frame::Frame;
use super::matrix::Matrix;
use crate::{Error, ErrorKind, InputOptions, Result};

/// Groups that are searched for layers, at most: links can make a file a maze without an end.
const MAX_GROUPS: usize = 1000;

/// The names of its matrices.
pub(super) fn slots(root: &Folder) -> Result<Vec<String>> {
    let mut slots = Vec::new();
    if root.get("X")?.is_some() {
        slots.push("X".to_owned());
    }
    if raw(root)?.is_some() {
        slots.push("raw/X".to_owned());
    }
    if let Some(layers) = root.folder("layers")? {
        let mut names = layer_names(&layers)?;
        names.sort();
        slots.extend(names.iter().map(|name| format!("layers/{name}")));
    }
    if slots.is_empty() {
        return Err(Error::new(ErrorKind::Missing, "it has no matrix: neither X nor raw/X nor layers"));
    }
    Ok(slots)
}

/// The names of layers. Those with a slash lie in groups that are no matrices themselves.
fn layer_names(layers: &Folder) -> Result<Vec<String>> {
    let (mut names, mut groups, mut searched) = (Vec::new(), vec![(String::new(), layers.clone())], 0);
    while let Some((prefix, group)) = groups.pop() {
        let (folders, arrays) = group.names()?;
        names.extend(arrays.iter().map(|name| format!("{prefix}{name}")));
        for name in folders {
            let path = format!("{prefix}{name}");
            searched += 1;
            match group.folder(&name)? {
                Some(inner) if searched <= MAX_GROUPS && is_plain(&inner)? => groups.push((format!("{path}/"), inner)),
                _ => names.push(path),
            }
        }
    }
    Ok(names)
}

/// Whether a group is of no encoding, and so only a part of a path.
fn is_plain(folder: &Folder) -> Result<bool> {
    let attributes = folder.attributes()?;
    Ok(!["encoding-type", "h5sparse_format"].iter().any(|name| attributes.has(name)))
}

/// The matrix of `raw`, and the name of the table of its genes. anndata 0.6 and earlier had them at the top.
fn raw(root: &Folder) -> Result<Option<(Node, Folder, &'static str)>> {
    if let Some(raw) = root.folder("raw")?
        && let Some(node) = raw.get("X")?
    {
        return Ok(Some((node, raw, "var")));
    }
    Ok(root.get("raw.X")?.map(|node| (node, root.clone(), "raw.var")))
}

/// Opens one of its matrices with the tables that belong to it.
pub(super) fn open(root: &Folder, slot: &str, options: &InputOptions) -> Result<Opened> {
    let absent = || Error::new(ErrorKind::Missing, "there is no such matrix").in_part(slot);
    let (node, var_at, var_name) = match slot {
        "X" => (root.get("X")?.ok_or_else(absent)?, root.clone(), "var"),
        "raw/X" => raw(root)?.ok_or_else(absent)?,
        _ => {
            let layers = root.folder("layers")?.ok_or_else(absent)?;
            let name = slot.strip_prefix("layers/").ok_or_else(absent)?;
            (layers.get(name)?.ok_or_else(absent)?, root.clone(), "var")
        }
    };
    // A table that cannot be read is no hindrance where none is asked for.
    let obs = match Frame::open(root, "obs") {
        Err(_) if !options.tables => None,
        found => Some(found?),
    };
    let var = Frame::open(&var_at, var_name)?;
    let notes: Vec<String> = absent_chunks(&node, slot)?.into_iter().collect();
    let matrix = matrix(node, options)?;
    if let Some(obs) = &obs {
        check(slot, "cells", matrix.n_cells, "obs", obs.length()?)?;
    }
    check(slot, "genes", matrix.n_genes, if slot == "raw/X" { "raw/var" } else { "var" }, var.length()?)?;
    let no_obs = || Error::new(ErrorKind::Missing, "the table of cells cannot be read").in_part("obs");
    Ok(Opened {
        matrix,
        obs: Box::new(move |budget, notes| obs.as_ref().ok_or_else(no_obs)?.read(budget, notes)),
        var: Box::new(move |budget, notes| var.read(budget, notes)),
        kept: None,
        notes,
    })
}

/// What chunks mean that a store lacks where it may lack them: of values of sparse matrices it may not.
fn absent_chunks(node: &Node, slot: &str) -> Result<Option<String>> {
    let (absent, what) = match node {
        Node::Array(array) => (array.absent(), "values are the fill value, 0 in most stores".to_owned()),
        Node::Folder(folder) => {
            let first = if format(&node.attributes()?).is_some_and(|(format, _)| format.starts_with("csc")) {
                "the first cell"
            } else {
                "the first gene"
            };
            (folder.array("indices")?.map_or(0, |array| array.absent()), format!("entries are of {first}"))
        }
    };
    let files = match absent {
        0 => return Ok(None),
        1 => "the file of a chunk is absent, which means that all its".to_owned(),
        _ => format!("the files of {absent} chunks are absent, which means that all their"),
    };
    Ok(Some(format!("{slot}: {files} {what}; if that cannot be, copy the store again")))
}

/// Whether a matrix and a table fit each other.
fn check(slot: &str, what: &str, matrix: u64, table: &str, rows: u64) -> Result<()> {
    if matrix == rows {
        return Ok(());
    }
    let message = format!("the matrix has {matrix} {what}, but {table} has {rows} rows");
    Err(Error::new(ErrorKind::Inconsistent, message).in_part(slot))
}

fn matrix(node: Node, options: &InputOptions) -> Result<Matrix> {
    let attributes = node.attributes()?;
    match node {
        Node::Array(array) => dense(array),
        Node::Folder(folder) => {
            let error = |kind, message: String| Err(Error::new(kind, message).in_part(folder.name.as_str()));
            let (format, shape) = match format(&attributes) {
                Some(found) => found,
                None => return error(ErrorKind::Unsupported, "it is neither csr nor csc nor dense".into()),
            };
            let scratch = match format.as_str() {
                "csr" | "csr_matrix" => None,
                "csc" | "csc_matrix" => Some((options.scratch.as_path(), options.memory)),
                other => return error(ErrorKind::Unsupported, format!("its encoding {other:?} is not supported")),
            };
            match attributes.integers(shape)?.as_deref() {
                Some(&[cells, genes]) => Matrix::compressed(&folder, cells, genes, scratch),
                Some(shape) => error(ErrorKind::WrongType, format!("its shape is {shape:?}, not cells and genes")),
                None => error(ErrorKind::Missing, format!("it has no attribute {shape:?}")),
            }
        }
    }
}

/// How a sparse matrix is compressed, and the attribute with its shape; under other names until anndata 0.6.
fn format(attributes: &Attributes) -> Option<(String, &'static str)> {
    let new = attributes.text("encoding-type").map(|format| (format, "shape"));
    new.or_else(|| attributes.text("h5sparse_format").map(|format| (format, "h5sparse_shape")))
}

fn dense(array: Array) -> Result<Matrix> {
    Matrix::dense(array, false)
}
