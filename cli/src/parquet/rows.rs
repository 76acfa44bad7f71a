//! The rows of a column chunk, page by page.

use tilekern::Error;
use tilekern::parquet::file::{ColumnData, ColumnReader};
use tilekern::parquet::{ByteArrays, Values};

/// Rows of a column chunk, of which about a page is in memory.
pub struct Rows<'a, 'b> {
    reader: ColumnReader<'a, 'b>,
    data: ColumnData,
    /// Levels and values of `data` that are done.
    done: (usize, usize),
    ended: bool,
    /// Rows of which the start is there, and those that are there as a whole.
    started: usize,
    whole: usize,
}

impl<'a, 'b> Rows<'a, 'b> {
    pub fn new(reader: ColumnReader<'a, 'b>) -> Rows<'a, 'b> {
        let data = ColumnData::new(reader.column().physical_type);
        Rows { reader, data, done: (0, 0), ended: false, started: 0, whole: 0 }
    }

    /// Whole rows at hand: one at least, unless there are no more.
    pub fn fill(&mut self) -> Result<usize, Error> {
        while self.whole == 0 && !self.ended {
            self.load()?;
            // Of lists the last row may go on in the next page.
            let open = self.reader.column().max_repetition > 0 && !self.ended;
            self.whole = self.started.saturating_sub(usize::from(open));
        }
        Ok(self.whole)
    }

    /// Levels and values, and how many of each are done.
    pub fn at_hand(&self) -> (&ColumnData, (usize, usize)) {
        (&self.data, self.done)
    }

    /// The level and value behind the next rows.
    pub fn end(&self, rows: usize) -> (usize, usize) {
        let (data, (level, value)) = (&self.data, self.done);
        let column = self.reader.column();
        let end = if column.max_repetition == 0 {
            level + rows
        } else {
            let starts = data.repetitions[level..].iter().enumerate().filter(|(_, level)| **level == 0);
            starts.map(|(i, _)| level + i).nth(rows).unwrap_or(data.len)
        };
        let values = if column.max_definition == 0 {
            end - level
        } else {
            data.definitions[level..end].iter().filter(|&&level| level == column.max_definition).count()
        };
        (end, value + values)
    }

    /// Passes over rows that end before this level and value.
    pub fn advance(&mut self, rows: usize, to: (usize, usize)) {
        self.done = to;
        self.whole -= rows;
        self.started -= rows;
    }

    fn load(&mut self) -> Result<(), Error> {
        let (level, value) = std::mem::take(&mut self.done);
        if level == self.data.len {
            self.data.clear();
        } else if level > 0 {
            // The start of a row that goes on.
            let data = &mut self.data;
            data.len -= level;
            data.definitions.drain(..level.min(data.definitions.len()));
            data.repetitions.drain(..level.min(data.repetitions.len()));
            data.values = tail(&data.values, value);
        }
        let column = self.reader.column();
        let Some(mut page) = self.reader.next_page()? else {
            self.ended = true;
            return Ok(());
        };
        let batch = page.take(page.remaining());
        if column.max_definition > 0 {
            batch.definitions.append_to(&mut self.data.definitions);
        }
        if column.max_repetition > 0 {
            batch.repetitions.append_to(&mut self.data.repetitions);
        }
        self.started += batch.repetitions.count(0);
        page.append(batch.values, &mut self.data.values)?;
        self.data.len += batch.definitions.len();
        page.finish()
    }
}

/// The values from one on.
fn tail(values: &Values, from: usize) -> Values {
    match values {
        Values::Booleans(values) => Values::Booleans(values[from..].to_vec()),
        Values::Int32(values) => Values::Int32(values[from..].to_vec()),
        Values::Int64(values) => Values::Int64(values[from..].to_vec()),
        Values::Float(values) => Values::Float(values[from..].to_vec()),
        Values::Double(values) => Values::Double(values[from..].to_vec()),
        Values::Fixed { width, bytes } => Values::Fixed { width: *width, bytes: bytes[from * width..].to_vec() },
        Values::ByteArrays(values) => Values::ByteArrays(ByteArrays::from_values(values.iter().skip(from))),
        Values::Numbers(values) => Values::Numbers(values[from..].to_vec()),
        other => other.clone(),
    }
}
