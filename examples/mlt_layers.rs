//! Prints the layers of a map tile and their columns, without decoding any value.
//!
//! ```text
//! cargo run --features mlt --example mlt_layers TILE.mlt
//! ```

use tilekern::mlt::{Options, Tile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which tile?")?;
    let bytes = std::fs::read(path)?;
    let tile = Tile::open(&bytes, &Options::new()?)?;
    for layer in tile.layers() {
        println!(
            "{}: version {}, {} features, extent {}, {} bytes",
            layer.name(),
            layer.version(),
            layer.features(),
            layer.extent(),
            layer.span().end - layer.span().start
        );
        for column in layer.columns() {
            let bytes: u64 = column.streams().iter().map(|stream| stream.end - stream.header.0).sum();
            let data_type = column.data_type().map_or("", |data_type| data_type.name());
            println!(
                "  {:?} {} {data_type}, {} streams, {bytes} bytes",
                column.kind(),
                column.name(),
                column.streams().len()
            );
        }
    }
    Ok(())
}
