//! What the manifest of a converted dataset says of its conversion: enough to do it again.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tilekern::deltacel::Chunks;
use tilekern::deltacel::dataset::Manifest;

use super::Options;
use crate::{Changes, Error, ErrorKind, GeneOrder, MatchGenes, Result};

/// This version, as datasets name it.
pub const WRITER: &str = concat!("tilekern ", env!("CARGO_PKG_VERSION"));

/// The value of `converted` in the manifest's metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub by: String,
    pub inputs: Vec<RecordedInput>,
    pub changes: Changes,
    pub shuffle: Option<u64>,
    pub cells: Option<Vec<Range<u64>>>,
    #[serde(rename = "where")]
    pub filter: Option<String>,
    pub options: RecordedOptions,
}

/// An input, as it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedInput {
    pub path: String,
    /// Its size and time, by which it is known again.
    pub state: String,
    pub matrix: String,
    pub n_cells: u64,
}

/// Options as they were given, but for those that the manifest has elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedOptions {
    profile: String,
    /// None where the number was left to the writer.
    chunks: Option<u32>,
    pub gene_order: Order,
    /// Size and time of the list of genes, where they were ordered by one.
    pub list: Option<String>,
    matrix: Option<String>,
    obs: bool,
    obs_tiles_per_file: u64,
    feature_type: Option<String>,
    round: bool,
    match_genes: Option<By>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    Total,
    Source,
    /// A list, which `gene_order.npy` has, too.
    File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Name,
    Id,
}

impl Record {
    /// That of a dataset.
    ///
    /// # Errors
    /// A manifest without one, or with one of another version.
    pub fn read(manifest: &Manifest) -> Result<Record> {
        #[derive(Deserialize)]
        struct Metadata {
            converted: Record,
        }
        let found = serde_json::from_str::<Metadata>(manifest.metadata().unwrap_or("{}"));
        found.map(|metadata| metadata.converted).map_err(|error| {
            let message = "its manifest does not say how it was converted, as those of this version's `tilekern \
                           convert` do; convert the inputs anew";
            Error::new(ErrorKind::Unsupported, message).in_part("manifest, metadata").caused_by(error)
        })
    }

    /// That of a conversion with these options; `list` is the state of the list of genes.
    pub fn of(options: &Options, inputs: Vec<RecordedInput>, list: Option<String>, changes: Changes) -> Record {
        Record {
            by: WRITER.to_owned(),
            inputs,
            changes,
            shuffle: options.shuffle,
            cells: options.cells.clone(),
            filter: options.filter.clone(),
            options: RecordedOptions {
                profile: options.profile.to_string(),
                chunks: match options.chunks {
                    Chunks::Count(n) => Some(n),
                    Chunks::Auto => None,
                },
                gene_order: match options.gene_order {
                    GeneOrder::Total => Order::Total,
                    GeneOrder::Source => Order::Source,
                    GeneOrder::File(_) | GeneOrder::Columns(_) => Order::File,
                },
                list,
                matrix: options.matrix.clone(),
                obs: options.obs,
                obs_tiles_per_file: options.obs_tiles_per_file,
                feature_type: options.feature_type.clone(),
                round: options.round,
                match_genes: options.match_genes.map(|by| match by {
                    MatchGenes::Name => By::Name,
                    MatchGenes::Id => By::Id,
                }),
            },
        }
    }

    /// The options of the conversion; the order of genes is that of their totals where a list was given.
    ///
    /// # Errors
    /// A profile that this version does not have.
    pub fn options(&self, tile_size: u64) -> Result<Options> {
        let found = &self.options;
        let unknown = |error: tilekern::Error| {
            Error::new(ErrorKind::Unsupported, format!("its profile {:?} is not known here", found.profile))
                .caused_by(error)
        };
        Ok(Options {
            tile_size,
            profile: found.profile.parse().map_err(unknown)?,
            chunks: found.chunks.map_or(Chunks::Auto, Chunks::Count),
            gene_order: match found.gene_order {
                Order::Source => GeneOrder::Source,
                Order::Total | Order::File => GeneOrder::Total,
            },
            matrix: found.matrix.clone(),
            obs: found.obs,
            obs_tiles_per_file: found.obs_tiles_per_file,
            feature_type: found.feature_type.clone(),
            cells: self.cells.clone(),
            filter: self.filter.clone(),
            shuffle: self.shuffle,
            round: found.round,
            match_genes: found.match_genes.map(|by| match by {
                By::Name => MatchGenes::Name,
                By::Id => MatchGenes::Id,
            }),
            ..Options::default()
        })
    }
}
