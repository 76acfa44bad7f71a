//! Prints one property of one layer of a map tile. No other column is decoded.
//!
//! ```text
//! cargo run --features mlt --example mlt_property TILE.mlt LAYER PROPERTY
//! ```

use tilekern::mlt::{Decoder, Options, PropertyData, Tile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, layer_name, name] = &arguments[..] else { return Err("which tile, layer and property?".into()) };
    let bytes = std::fs::read(path)?;
    let options = Options::new()?;
    let tile = Tile::open(&bytes, &options)?;
    let layer = tile.layers().find(|layer| layer.name() == layer_name).ok_or("no such layer")?;
    let column = layer.property(name).ok_or("no such property")?;

    let (mut decoder, mut data) = (Decoder::with_options(options), PropertyData::new());
    decoder.property(column, &mut data)?;
    let property = data.get();
    println!(
        "{} {}: {} features, {} without a value",
        property.name,
        property.data_type.name(),
        property.len,
        property.nulls
    );
    for value in property.iter() {
        println!("{value:?}");
    }
    Ok(())
}
