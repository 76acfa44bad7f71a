//! Writes a small map tile: a layer of places and one of roads, in version 1, or 2 with `v2` behind the path.
//!
//! ```text
//! cargo run --features mlt,encode --example mlt_write TILE.mlt
//! ```

use tilekern::mlt::encode::{
    Geometry, GeometryCoding, Integers, LayerWriter, Presence, Shape, Strings, Truths, Values, Version, Vertices, Words,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("where to?")?;
    let v2 = arguments.next().as_deref() == Some("v2");
    let (version, truths) = if v2 { (Version::V2, Truths::Bitmap) } else { (Version::V1, Truths::ByteRuns) };
    let mut tile = Vec::new();

    let places = [Shape::Point([1170, 900]), Shape::Point([2310, 2040]), Shape::Point([64, 3999])];
    let mut layer = LayerWriter::new(version, "place", 4096, places.len())?;
    layer.ids(Presence::All, Values::UInt64(&[17, 18, 19], Integers::Delta(Words::VarInt)))?;
    layer.geometry(&Geometry::new(&places)?, &GeometryCoding::default())?;
    layer.column("name", Presence::All, Values::Strings(&["Oslo", "Bergen", "Bodø"], Strings::default()))?;
    // A slot for each feature that has a value; the others are null.
    let known = Presence::Own(&[true, true, false], truths);
    layer.column("population", known, Values::UInt32(&[717_710, 291_940], Integers::Values(Words::VarInt)))?;
    layer.finish(&mut tile)?;

    let roads = [
        Shape::LineString(vec![[0, 100], [700, 180], [1400, 90]]),
        Shape::MultiLineString(vec![vec![[10, 10], [20, 20]], vec![[30, 30], [40, 50], [60, 50]]]),
    ];
    let mut layer = LayerWriter::new(version, "road", 4096, roads.len())?;
    let coding = GeometryCoding { vertices: Vertices::ComponentwiseDelta(Words::VarInt), ..GeometryCoding::default() };
    layer.geometry(&Geometry::new(&roads)?, &coding)?;
    layer.column("class", Presence::All, Values::Strings(&["primary", "path"], Strings::default()))?;
    layer.finish(&mut tile)?;

    std::fs::write(&path, &tile)?;
    println!("{path}: {} bytes, 2 layers", tile.len());
    Ok(())
}
