//! Every fault of a map tile.

use tilekern::Error;
use tilekern::mlt::{Kind, Options, Tile};

use super::{Item, Reader};

/// All faults: of the headers, else of each layer's ids, geometry and columns, of which each is tried by itself.
pub fn check(bytes: &[u8], options: &Options) -> Vec<Error> {
    let tile = match Tile::open(bytes, options) {
        Ok(tile) => tile,
        Err(error) => return vec![error],
    };
    let mut reader = Reader::new(*options);
    let mut faults: Vec<Error> = Vec::new();
    for layer in tile.layers() {
        let columns = layer.columns().filter(|column| !matches!(column.kind(), Kind::Id | Kind::Geometry));
        let items = [Item::Ids, Item::Geometry].into_iter().chain(columns.map(Item::Column));
        // Most are sound, and take one look.
        if reader.layer(layer).is_ok() {
            continue;
        }
        let before = faults.len();
        for item in items {
            if let Err(error) = reader.some(layer, &[item]) {
                // The children of a shared dictionary, and what shares a presence field, have their faults in common.
                let told = |told: &Error| told.kind() == error.kind() && told.offset() == error.offset();
                if !faults[before..].iter().any(told) {
                    faults.push(error);
                }
            }
        }
    }
    faults
}
