//! Every fault of a Parquet file.

use indicatif::ProgressBar;
use tilekern::parquet::file::{Buffers, File, PageKind, Pages, RawPage};
use tilekern::parquet::{Encoding, Options, Values};
use tilekern::{Error, ErrorKind, PagePlace, Part};

use super::open;

/// Pages whose headers could be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    pub pages: u64,
    /// Those that store no checksum: a value that changed shows in nothing there.
    pub without_checksum: u64,
}

/// All faults, and what is odd: the footer, then each column chunk's headers, checksums, levels and values.
pub fn check(bytes: &[u8], options: &Options, progress: &ProgressBar) -> (Vec<Error>, Vec<Error>, Counted) {
    let mut counted = Counted::default();
    let file = match open(bytes, options) {
        Ok(file) => file,
        Err(error) => return (vec![error], Vec::new(), counted),
    };
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    let metadata = file.metadata();
    let rows = metadata.row_groups.iter().map(|group| group.num_rows).fold(0, i64::saturating_add);
    if rows != metadata.num_rows {
        faults.push(differs(metadata.num_rows, rows, Part::Footer("num_rows")).at(metadata.span.start));
    }
    let columns = metadata.schema.columns.len();
    progress.inc_length((metadata.row_groups.len() * columns) as u64);
    let mut buffers = Buffers::new();
    for group in 0..metadata.row_groups.len() {
        for column in 0..columns {
            check_chunk(&file, group, column, &mut buffers, (&mut faults, &mut warnings), &mut counted);
            progress.inc(1);
        }
    }
    (faults, warnings, counted)
}

fn differs(found: impl Into<i128>, expected: impl Into<i128>, part: Part) -> Error {
    Error::new(ErrorKind::Inconsistent { found: found.into(), expected: expected.into() }, part)
}

fn check_chunk(
    file: &File<'_>,
    group: usize,
    column: usize,
    buffers: &mut Buffers,
    (faults, warnings): (&mut Vec<Error>, &mut Vec<Error>),
    counted: &mut Counted,
) {
    let (chunk, mut reader) = match file.chunk(group, column).map(|(chunk, _)| chunk) {
        Ok(chunk) => match file.column(group, column, buffers) {
            Ok(reader) => (chunk, reader),
            Err(error) => return faults.push(error),
        },
        Err(error) => return faults.push(error),
    };
    // Up to the first header that cannot be read, whose fault the reader tells.
    let pages: Vec<RawPage<'_>> = Pages::new(chunk).map_while(Result::ok).collect();
    counted.pages += pages.len() as u64;
    counted.without_checksum += pages.iter().filter(|page| page.header.crc.is_none()).count() as u64;
    let before = faults.len();
    let mut values = Values::new(reader.column().physical_type);
    loop {
        let mut page = match reader.next_page() {
            Ok(None) => break,
            Ok(Some(page)) => page,
            Err(error) => {
                let number = error.page().and_then(|page| page.page);
                let raw = number.and_then(|number| pages.get(usize::try_from(number).ok()?));
                // Pages without their dictionary, and sums over pages of which one is amiss, are no faults of their own.
                let follows = faults.len() > before && number.is_none();
                let ends = raw.is_none_or(|page| matches!(page.header.kind, PageKind::Dictionary(_)));
                if !follows {
                    faults.push(error);
                }
                if ends {
                    break;
                }
                continue;
            }
        };
        let info = page.info().clone();
        let at = PagePlace { row_group: number(group), column: number(column), page: Some(info.number) };
        if let PageKind::DataV2(header) = info.header.kind {
            let nulls = info.num_values.saturating_sub(info.non_null.unwrap_or(0));
            let rows = info.rows.unwrap_or(0);
            for (stated, found, field) in [(header.num_nulls, nulls, "num_nulls"), (header.num_rows, rows, "num_rows")]
            {
                if u64::try_from(stated) != Ok(found) {
                    let error = differs(stated, found, Part::PageHeader(field)).at(info.header_span.start);
                    faults.push(error.in_page(at));
                }
            }
        }
        values.clear();
        let left = page.values_left();
        if let Err(error) = page.append(left, &mut values).and_then(|()| page.finish()) {
            faults.push(error);
        }
    }
    if faults.len() == before {
        check_footer(file, group, column, &pages, warnings);
    }
}

/// What the footer says of a chunk whose pages are sound. Readers do without it.
fn check_footer(file: &File<'_>, group: usize, column: usize, pages: &[RawPage<'_>], warnings: &mut Vec<Error>) {
    let metadata = file.metadata();
    let chunk = &metadata.row_groups[group].columns[column];
    let at = PagePlace { row_group: number(group), column: number(column), page: None };
    let mut warn = |error: Error| warnings.push(error.at(metadata.span.start).in_page(at));
    let size =
        |page: &RawPage<'_>| (page.body.offset() - page.header_start).saturating_add(page.header.uncompressed_size);
    let unpacked = pages.iter().map(size).fold(0, u64::saturating_add);
    // Some writers store a dictionary's page without any value, which is not read.
    if chunk.num_values != 0 && u64::try_from(chunk.uncompressed_size) != Ok(unpacked) {
        warn(differs(chunk.uncompressed_size, unpacked, Part::Footer("total_uncompressed_size")));
    }
    let mut missing: Vec<Encoding> = Vec::new();
    for page in pages {
        let encoding = match page.header.kind {
            PageKind::Data(header) => header.encoding,
            PageKind::DataV2(header) => header.encoding,
            _ => continue,
        };
        if !chunk.encodings.contains(&encoding) && !missing.contains(&encoding) {
            missing.push(encoding);
            let error = Error::new(ErrorKind::Missing, Part::Footer("encodings"));
            warn(error.caused_by(format!("{} is used, but not listed", encoding.name())));
        }
    }
}

fn number(i: usize) -> u32 {
    u32::try_from(i).unwrap_or(u32::MAX)
}
