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

    /// Columns that the lines take at most.
    pub fn width(&self) -> usize {
        self.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// The lines, all of the same length.
    pub fn padded(&self) -> Vec<String> {
        self.painted(&[])
    }

    /// The same with the columns in colours, given by the numbers that a terminal takes.
    pub fn painted(&self, colours: &[&str]) -> Vec<String> {
        let (widths, all) = (self.widths(), self.width());
        let paint = |line: String| {
            let (mut painted, mut rest) = (String::new(), line.as_str());
            for (colour, width) in colours.iter().zip(&widths) {
                // A cell with the blanks before the next one.
                let at = rest.char_indices().nth(width + 2).map_or(rest.len(), |(at, _)| at);
                let (cell, after) = rest.split_at(at);
                rest = after;
                let text = cell.trim();
                let (before, behind) = cell.split_once(text).unwrap_or(("", cell));
                match text {
                    "" => painted.push_str(cell),
                    text => painted.push_str(&format!("{before}\x1b[{colour}m{text}\x1b[0m{behind}")),
                }
            }
            let padding = " ".repeat(all - line.chars().count());
            painted + rest + &padding
        };
        self.lines().map(paint).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        (0..self.align.len()).map(width).collect()
    }

    fn lines_without(&self, columns: &[usize]) -> impl Iterator<Item = String> {
        let widths = self.widths();
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
        assert_eq!((table.width(), table.padded()[2].as_str()), (19, "abcdef      1      "));
        let painted = table.painted(&["1", "36"]);
        assert_eq!(painted[0], "\x1b[1mname\x1b[0m        \x1b[36mn\x1b[0m  note");
        assert_eq!(painted[1], "\x1b[1ma\x1b[0m       \x1b[36m1,000\x1b[0m  …   ");
        assert_eq!(painted[2], "\x1b[1mabcdef\x1b[0m      \x1b[36m1\x1b[0m      ");
    }
}
