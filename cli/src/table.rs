//! Tables of text with aligned columns.

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Rows under headings. Columns are as wide as their widest cell and two spaces apart.
#[derive(Debug)]
pub struct Table {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<H: Into<String>>(columns: impl IntoIterator<Item = (H, Align)>) -> Table {
        let (headings, align) = columns.into_iter().map(|(heading, align)| (heading.into(), align)).unzip();
        Table { align, rows: vec![headings] }
    }

    /// Adds a row, which has a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, without line breaks.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.lines_without(&[])
    }

    /// The lines without as many of the dispensable columns, in their order, as must be left out for a width.
    pub fn fitting(&self, width: Option<usize>, dispensable: &[usize]) -> Vec<String> {
        let fits = |line: &String| width.is_none_or(|width| line.chars().count() <= width);
        let fewer = |n: usize| self.lines_without(&dispensable[..n]).collect::<Vec<_>>();
        let some = (0..dispensable.len()).map(fewer).find(|lines| lines.iter().all(fits));
        some.unwrap_or_else(|| fewer(dispensable.len()))
    }

    fn lines_without(&self, columns: &[usize]) -> impl Iterator<Item = String> {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.align.len()).map(width).collect();
        self.rows.iter().map(move |row| {
            let mut line = String::new();
            let kept = (0..row.len()).filter(|column| !columns.contains(column));
            for (cell, width, align) in kept.map(|column| (&row[column], widths[column], self.align[column])) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                let padding = " ".repeat(width - cell.chars().count());
                line.extend(match align {
                    Align::Left => [cell.as_str(), &padding],
                    Align::Right => [padding.as_str(), cell],
                });
            }
            line.truncate(line.trim_end().len());
            line
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new([("name", Align::Left), ("n", Align::Right), ("note", Align::Left)]);
        table.row(["a".into(), "1,000".into(), "…".into()]);
        table.row(["abcdef".into(), "1".into(), String::new()]);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines, ["name        n  note", "a       1,000  …", "abcdef      1"]);
        assert_eq!((table.fitting(None, &[1]), table.fitting(Some(19), &[1, 2])), (lines.clone(), lines));
        assert_eq!(table.fitting(Some(18), &[1, 2]), ["name    note", "a       …", "abcdef"]);
        assert_eq!(table.fitting(Some(3), &[1, 2]), ["name", "a", "abcdef"]);
    }
}
