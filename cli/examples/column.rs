//! What the README says of Parquet: a column, the trace of its pages, a section of values alone.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    use tilekern::parquet::file::{Buffers, ColumnData, File};
    use tilekern::parquet::{Encoding, Input, Options, Payload, PhysicalType, Values};

    let bytes = std::fs::read("orders.parquet")?;
    let options = Options::new()?; // strict; this CPU's kernels; limits
    let file = File::open(&bytes, &options)?;
    let mut buffers = Buffers::new(); // keep it, and `column`: they grow once
    let mut column = ColumnData::new(PhysicalType::Int64);
    file.column(0, 0, &mut buffers)?.read(&mut column)?; // row group 0, column 0: levels and values
    if let Values::Int64(ids) = &column.values {
        println!("{} rows, the first ids {:?}", column.len, &ids[..3]);
    }

    for page in file.trace(0, 0, &mut buffers)? {
        for step in page.steps {
            println!("{:?} {}: {}", step.span, step.label, step.detail); // header, blocks, miniblocks, runs, …
        }
    }

    let section = std::fs::read("ids.bin")?; // the values of a page alone: no header, no levels, not compressed
    let (encoding, physical_type) = (Encoding::DeltaBinaryPacked, PhysicalType::Int64);
    let payload = Payload { encoding, physical_type, count: 5, bit_width: 0, dictionary: None };
    println!("{:?}", payload.decode(Input::new(&section), &options)?.values);
    Ok(())
}
