//! Filters: which cells have a row that a short text describes.

use std::cmp::Ordering;
use std::collections::HashSet;

use arrow_array::{Array, RecordBatch};

use super::schema::{Category, ObsColumn, ObsKind, ObsSchema, ObsType};
use super::values::{Value, getter};
use crate::error::{Error, ErrorKind, Part, SyntaxFault};

/// Levels of parentheses and `!`.
const MAX_DEPTH: usize = 128;

/// A test that a cell passes or not, by its row of the table of cells.
///
/// ```text
/// cell_type == "B cell" && n_counts > 500
/// !(donor in ["d1", "d2"]) || `percent mito` is null
/// ```
///
/// - `==`, `!=`, `<`, `<=`, `>`, `>=` between a column and a value, on either side
/// - `COLUMN in [VALUE, …]`, `COLUMN not in [VALUE, …]`
/// - `COLUMN is null`, `COLUMN is not null`
/// - a column of booleans alone
/// - `!`, `&&`, `||` in this order of strength, and parentheses
///
/// A column is named by letters, digits, `_` and `.`, or by anything between backquotes, in which two stand for one.
/// Values are numbers, `true`, `false`, and text between `"` or `'`, in which `\` stands before a quote, a `\`, `n` or
/// `t`. Text and booleans are only equal or not.
///
/// A missing value makes a test neither true nor false, and so its negation, as in SQL: only `is null` finds it. NaN is a
/// value that differs from every number. Integers are compared exactly; for a column of floating-point numbers the
/// value is first rounded to the column's type, so that `score == 0.1` finds what was written as 0.1.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Node,
    /// The numbers of the columns that it looks at.
    columns: Vec<usize>,
    /// Texts that are no category of the column by this number.
    absent: Vec<(usize, String)>,
}

#[derive(Clone, Debug)]
enum Node {
    /// One of them is true.
    Any(Vec<Node>),
    /// All of them are.
    All(Vec<Node>),
    Not(Box<Node>),
    Test {
        /// Which of the filter's columns.
        column: usize,
        test: Test,
    },
}

#[derive(Clone, Debug)]
enum Test {
    /// Missing, or not missing; -1 is a missing code.
    Null { codes: bool, wanted: bool },
    /// What holds for each category.
    Codes(Vec<bool>),
    /// What holds for the value.
    Value(Predicate),
}

#[derive(Clone, Debug)]
enum Predicate {
    Compare(Operator, Literal),
    /// One of some values, or none of them.
    In(Set, bool),
}

#[derive(Clone, Debug, Default)]
struct Set {
    texts: HashSet<String>,
    others: Vec<Literal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    const ALL: [(&'static str, Operator); 6] = [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];

    /// The same with its sides exchanged.
    fn flipped(self) -> Operator {
        match self {
            Operator::Less => Operator::Greater,
            Operator::LessOrEqual => Operator::GreaterOrEqual,
            Operator::Greater => Operator::Less,
            Operator::GreaterOrEqual => Operator::LessOrEqual,
            same => same,
        }
    }

    /// Whether it holds for two values in this order; NaN has none.
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Operator::Equal => order == Some(Ordering::Equal),
            Operator::NotEqual => order != Some(Ordering::Equal),
            Operator::Less => order == Some(Ordering::Less),
            Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Operator::Greater => order == Some(Ordering::Greater),
            Operator::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Text(String),
    Bool(bool),
    Int(i128),
    Float(f64),
}

/// What a literal, and the values of a column, can be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Text,
    Bool,
    Number,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Class::Text => "text",
            Class::Bool => "booleans",
            Class::Number => "numbers",
        }
    }
}

impl Literal {
    fn class(&self) -> Class {
        match self {
            Literal::Text(_) => Class::Text,
            Literal::Bool(_) => Class::Bool,
            Literal::Int(_) | Literal::Float(_) => Class::Number,
        }
    }

    /// The order of a value and this; none where they are of different classes, or NaN.
    fn order(&self, value: Value<'_>) -> Option<Ordering> {
        match (value, self) {
            (Value::String(value), Literal::Text(text)) => Some(value.cmp(text.as_str())),
            (Value::Bool(value), Literal::Bool(other)) => Some(value.cmp(other)),
            (Value::Int(value), Literal::Int(other)) => Some(value.cmp(other)),
            (Value::Int(value), Literal::Float(other)) => Some(int_and_float(value, *other)),
            (Value::Float(value), Literal::Int(other)) => value.partial_cmp(&(*other as f64)),
            (Value::Float(value), Literal::Float(other)) => value.partial_cmp(other),
            _ => None,
        }
    }

    /// Rounded to the type of a column of floating-point numbers.
    #[allow(clippy::cast_possible_truncation)] // that is what is asked for
    fn rounded(self, stored: ObsType) -> Literal {
        let value = match self {
            Literal::Int(value) => value as f64,
            Literal::Float(value) => value,
            other => return other,
        };
        match stored {
            ObsType::HalfFloat => Literal::Float(super::values::to_half(value)),
            ObsType::Float => Literal::Float(f64::from(value as f32)),
            ObsType::Double => Literal::Float(value),
            _ => self,
        }
    }
}

/// The exact order of an integer of 64 bits and a finite number.
#[allow(clippy::cast_possible_truncation)] // saturates far beyond any such integer
fn int_and_float(value: i128, other: f64) -> Ordering {
    let below = other.floor();
    value.cmp(&(below as i128)).then(if other > below { Ordering::Less } else { Ordering::Equal })
}

impl Predicate {
    /// The texts that it looks for.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, list) = match self {
            Predicate::Compare(_, Literal::Text(text)) => (Some(text), None),
            Predicate::Compare(..) => (None, None),
            Predicate::In(set, _) => (None, Some(&set.texts)),
        };
        one.into_iter().chain(list.into_iter().flatten()).map(String::as_str)
    }

    fn holds(&self, value: Value<'_>) -> bool {
        match self {
            Predicate::Compare(operator, literal) => operator.holds(literal.order(value)),
            Predicate::In(set, wanted) => {
                let found = match value {
                    Value::String(text) => set.texts.contains(text),
                    value => set.others.iter().any(|literal| literal.order(value) == Some(Ordering::Equal)),
                };
                found == *wanted
            }
        }
    }
}

/// True, false, or neither: the value is missing.
type Truth = Option<bool>;

impl Filter {
    /// Reads a filter on tables of this schema.
    ///
    /// # Errors
    /// In [`Part::Filter`] with the byte offset in the text: [`SyntaxFault::Filter`], [`SyntaxFault::Depth`],
    /// [`ErrorKind::Missing`] for a column that there is not, [`ErrorKind::WrongType`] for a value that the column
    /// cannot have.
    pub fn parse(schema: &ObsSchema, text: &str) -> Result<Filter, Error> {
        let mut parser = Parser { schema, text, at: 0, columns: Vec::new(), absent: Vec::new() };
        let root = parser.any(0)?;
        parser.blank();
        if parser.at < text.len() {
            return Err(parser.expected("&&, || or the end"));
        }
        Ok(Filter { root, columns: parser.columns, absent: parser.absent })
    }

    /// The numbers of the columns that it looks at.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Texts that the filter looks for among the categories of a column, given by its number, which does not have them:
    /// no cell has such a value.
    pub fn absent_categories(&self) -> &[(usize, String)] {
        &self.absent
    }

    /// Which of some rows pass; they have at least the columns of the filter, as they are stored.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`], [`ErrorKind::WrongType`]: the rows are not of the schema.
    pub fn matches(&self, schema: &ObsSchema, rows: &RecordBatch) -> Result<Vec<bool>, Error> {
        let missing = || Error::new(ErrorKind::Missing, Part::Option("obs"));
        let column = |&n: &usize| {
            let column = schema.columns.get(n).ok_or_else(missing)?;
            let array = rows.column_by_name(&column.name).ok_or_else(missing)?;
            super::shards::check_values(column, array).map_err(|error| error.in_part(Part::Option("obs")))?;
            Ok(&**array)
        };
        let arrays = self.columns.iter().map(column).collect::<Result<Vec<_>, Error>>()?;
        Ok(self.passing(&arrays, rows.num_rows()))
    }

    /// Which of some rows pass, by the stored and checked values of [`Filter::columns`].
    pub(super) fn passing(&self, arrays: &[&dyn Array], rows: usize) -> Vec<bool> {
        eval(&self.root, arrays, rows).into_iter().map(|truth| truth == Some(true)).collect()
    }
}

fn eval(node: &Node, arrays: &[&dyn Array], rows: usize) -> Vec<Truth> {
    let combine = |nodes: &[Node], decisive: bool| {
        let mut all = vec![Some(!decisive); rows];
        for node in nodes {
            for (so_far, truth) in all.iter_mut().zip(eval(node, arrays, rows)) {
                *so_far = match (*so_far, truth) {
                    (Some(a), Some(b)) => Some(if decisive { a || b } else { a && b }),
                    (Some(known), None) | (None, Some(known)) if known == decisive => Some(decisive),
                    _ => None,
                };
            }
        }
        all
    };
    match node {
        Node::Any(nodes) => combine(nodes, true),
        Node::All(nodes) => combine(nodes, false),
        Node::Not(node) => eval(node, arrays, rows).into_iter().map(|truth| truth.map(|truth| !truth)).collect(),
        Node::Test { column, test } => {
            // The schema has no type whose values cannot be got.
            let Some(get) = arrays.get(*column).and_then(|array| getter(*array)) else { return vec![None; rows] };
            let truth = |row| match (test, get(row)) {
                (Test::Null { codes, wanted }, value) => {
                    let missing = value == Value::Null || *codes && value == Value::Int(-1);
                    Some(missing == *wanted)
                }
                (_, Value::Null) => None,
                (Test::Codes(truths), Value::Int(code)) => {
                    usize::try_from(code).ok().and_then(|code| truths.get(code).copied())
                }
                (Test::Codes(_), _) => None,
                (Test::Value(predicate), value) => Some(predicate.holds(value)),
            };
            (0..rows).map(truth).collect()
        }
    }
}

struct Parser<'a> {
    schema: &'a ObsSchema,
    text: &'a str,
    at: usize,
    columns: Vec<usize>,
    absent: Vec<(usize, String)>,
}

/// One side of a comparison.
enum Operand {
    /// The number of a column.
    Column(usize),
    Literal(Literal),
}

impl<'a> Parser<'a> {
    fn error(&self, kind: ErrorKind, at: usize) -> Error {
        Error::new(kind, Part::Filter).at(at as u64)
    }

    fn expected(&self, what: &str) -> Error {
        let hint = self.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        self.error(ErrorKind::Syntax(SyntaxFault::Filter), self.at).caused_by(format!("expected {what}{hint}"))
    }

    /// How that is written which stands here in the way of other languages.
    fn hint(&self) -> Option<&'static str> {
        let rest = self.rest();
        let sign = [('&', "write &&"), ('|', "write ||"), ('=', "write ==")];
        let word = [("and", "write && for and"), ("or", "write || for or"), ("not", "write ! for not")];
        let known = |name: &str| rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(in_name));
        let sign = sign.into_iter().find(|(sign, _)| rest.starts_with(*sign)).map(|(_, hint)| hint);
        sign.or_else(|| word.into_iter().find(|(word, _)| known(word)).map(|(_, hint)| hint))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blank(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Passes a sign, if it is next.
    fn sign(&mut self, sign: &str) -> bool {
        self.blank();
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// Passes a word, if it is next and ends there.
    fn word(&mut self, word: &str) -> bool {
        self.blank();
        let found = self.rest().strip_prefix(word).is_some_and(|rest| !rest.starts_with(in_name));
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn deeper(&self, depth: usize) -> Result<usize, Error> {
        match depth < MAX_DEPTH {
            true => Ok(depth + 1),
            false => Err(self.error(ErrorKind::Syntax(SyntaxFault::Depth), self.at)),
        }
    }

    fn any(&mut self, depth: usize) -> Result<Node, Error> {
        let first = self.all(depth)?;
        let mut nodes = vec![first];
        while self.sign("||") {
            nodes.push(self.all(depth)?);
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::Any(nodes) })
    }

    fn all(&mut self, depth: usize) -> Result<Node, Error> {
        let first = self.one(depth)?;
        let mut nodes = vec![first];
        while self.sign("&&") {
            nodes.push(self.one(depth)?);
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::All(nodes) })
    }

    fn one(&mut self, depth: usize) -> Result<Node, Error> {
        if self.sign("!") {
            return Ok(Node::Not(Box::new(self.one(self.deeper(depth)?)?)));
        }
        if !self.sign("(") {
            return self.test();
        }
        let inner = self.any(self.deeper(depth)?)?;
        if self.sign(")") { Ok(inner) } else { Err(self.expected("&&, || or )")) }
    }

    fn test(&mut self) -> Result<Node, Error> {
        self.blank();
        let left_at = self.at;
        let left = self.operand("a column, a value, ! or (")?;
        self.blank();
        let operator_at = self.at;
        if let Operand::Column(column) = left {
            if self.word("is") {
                let wanted = !self.word("not");
                return match self.word("null") {
                    true => Ok(self.node(column, |of| Test::Null { codes: of.kind == ObsKind::Category, wanted })),
                    false => Err(self.expected("null")),
                };
            }
            let negated = self.word("not");
            if self.word("in") {
                return self.list(column, !negated);
            }
            if negated {
                return Err(self.expected("in"));
            }
        }
        let operator = Operator::ALL.into_iter().find(|(sign, _)| self.sign(sign)).map(|(_, operator)| operator);
        if operator.is_none()
            && !self.rest().is_empty()
            && !["&&", "||", ")"].iter().any(|next| self.rest().starts_with(next))
        {
            return Err(self.expected("==, !=, <, <=, > or >="));
        }
        let (column, operator, literal, at) = match (left, operator) {
            (Operand::Column(column), None) => (column, Operator::Equal, Literal::Bool(true), left_at),
            (Operand::Literal(_), None) => return Err(self.expected("==, !=, <, <=, > or >=")),
            (left, Some(operator)) => {
                self.blank();
                let right_at = self.at;
                let right = match left {
                    Operand::Column(_) => self.value("a column or a value")?,
                    Operand::Literal(_) => self.operand("a column or a value")?,
                };
                match (left, right) {
                    (Operand::Column(column), Operand::Literal(literal)) => (column, operator, literal, right_at),
                    (Operand::Literal(literal), Operand::Column(column)) => {
                        (column, operator.flipped(), literal, left_at)
                    }
                    (Operand::Column(_), Operand::Column(_)) => {
                        self.at = right_at;
                        return Err(self.expected("a value: a column is compared with values only"));
                    }
                    (Operand::Literal(_), Operand::Literal(_)) => {
                        self.at = left_at;
                        return Err(self.expected("a column on one side"));
                    }
                }
            }
        };
        self.check_class(column, &literal, at)?;
        if !matches!(operator, Operator::Equal | Operator::NotEqual) && literal.class() != Class::Number {
            let why = format!("{} have no order here; use == or !=", literal.class().name());
            return Err(self.error(ErrorKind::WrongType, operator_at).caused_by(why));
        }
        let literal = literal.rounded(self.schema.columns[column].arrow_type);
        Ok(self.value_node(column, Predicate::Compare(operator, literal)))
    }

    fn list(&mut self, column: usize, wanted: bool) -> Result<Node, Error> {
        if !self.sign("[") {
            return Err(self.expected("a list in brackets, as in [1, 2]"));
        }
        let mut set = Set::default();
        let mut more = !self.sign("]");
        while more {
            self.blank();
            let at = self.at;
            let Operand::Literal(literal) = self.value("a value or ]")? else {
                self.at = at;
                return Err(self.expected("a value"));
            };
            self.check_class(column, &literal, at)?;
            match literal.rounded(self.schema.columns[column].arrow_type) {
                Literal::Text(text) => drop(set.texts.insert(text)),
                other => set.others.push(other),
            }
            more = self.sign(",");
            if !more && !self.sign("]") {
                return Err(self.expected(", or ]"));
            }
        }
        Ok(self.value_node(column, Predicate::In(set, wanted)))
    }

    fn node(&mut self, column: usize, test: impl FnOnce(&ObsColumn) -> Test) -> Node {
        let test = test(&self.schema.columns[column]);
        let column = self.columns.iter().position(|&known| known == column).unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        });
        Node::Test { column, test }
    }

    fn value_node(&mut self, column: usize, predicate: Predicate) -> Node {
        let of = &self.schema.columns[column];
        if of.kind == ObsKind::Category {
            let absent = predicate.texts().filter(|text| {
                !of.categories.iter().any(|known| matches!(known, Category::String(known) if *known == **text))
            });
            let mut absent: Vec<_> = absent.map(|text| (column, text.to_owned())).collect();
            absent.sort_unstable();
            self.absent.append(&mut absent);
        }
        self.node(column, |of| match of.kind {
            ObsKind::Category => {
                Test::Codes(of.categories.iter().map(|category| predicate.holds(category.into())).collect())
            }
            _ => Test::Value(predicate),
        })
    }

    /// A literal can be compared with the values of a column.
    fn check_class(&self, column: usize, literal: &Literal, at: usize) -> Result<(), Error> {
        let column = &self.schema.columns[column];
        let class_of = |category: &Category| match category {
            Category::String(_) => Class::Text,
            Category::Bool(_) => Class::Bool,
            Category::Int(_) | Category::Float(_) => Class::Number,
        };
        let class = match column.kind {
            ObsKind::String => Class::Text,
            ObsKind::Bool => Class::Bool,
            ObsKind::Numeric => Class::Number,
            // A column without categories has no class, and any literal finds nothing.
            ObsKind::Category => match column.categories.first().map(class_of) {
                Some(first) if !column.categories.iter().any(|category| class_of(category) == literal.class()) => first,
                _ => return Ok(()),
            },
        };
        if class == literal.class() {
            return Ok(());
        }
        let (name, found) = (&column.name, class.name());
        let why = format!("column {name:?} holds {found}, which are not compared with {}", literal.class().name());
        Err(self.error(ErrorKind::WrongType, at).caused_by(why))
    }

    /// An operand where a value is meant: a word that is no column is a text without its quotes.
    fn value(&mut self, expected: &str) -> Result<Operand, Error> {
        self.blank();
        let at = self.at;
        self.operand(expected).map_err(|error| {
            let word = &self.text[at..self.at];
            match (error.kind(), std::error::Error::source(&error)) {
                (ErrorKind::Missing, Some(why)) if !word.starts_with('`') => {
                    let why = format!("{why}; text stands in quotes: {word:?}");
                    error.caused_by(why)
                }
                _ => error,
            }
        })
    }

    fn operand(&mut self, expected: &str) -> Result<Operand, Error> {
        self.blank();
        match self.rest().chars().next() {
            Some('`') => self.quoted_column(),
            Some('"' | '\'') => self.string().map(|text| Operand::Literal(Literal::Text(text))),
            Some('+' | '-' | '0'..='9') => self.number().map(Operand::Literal),
            Some(c) if c.is_alphabetic() || c == '_' => {
                let name = &self.rest()[..self.rest().find(|c| !in_name(c)).unwrap_or(self.rest().len())];
                let at = self.at;
                self.at += name.len();
                match name {
                    "true" => Ok(Operand::Literal(Literal::Bool(true))),
                    "false" => Ok(Operand::Literal(Literal::Bool(false))),
                    "is" | "in" | "not" | "null" => {
                        self.at = at;
                        Err(self.expected(expected))
                    }
                    name => self.column(name, at),
                }
            }
            _ => Err(self.expected(expected)),
        }
    }

    fn column(&self, name: &str, at: usize) -> Result<Operand, Error> {
        self.schema.position(name).map(Operand::Column).ok_or_else(|| {
            let why = super::no_such_column(self.schema, name);
            self.error(ErrorKind::Missing, at).caused_by(why)
        })
    }

    fn quoted_column(&mut self) -> Result<Operand, Error> {
        let at = self.at;
        let mut name = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((i, c)) = chars.next() {
            match c {
                '`' if chars.next_if(|next| next.1 == '`').is_some() => name.push('`'),
                '`' => {
                    self.at += i + 1;
                    return self.column(&name, at);
                }
                other => name.push(other),
            }
        }
        self.at = self.text.len();
        Err(self.expected("` at the end of a name"))
    }

    fn string(&mut self) -> Result<String, Error> {
        let mut chars = self.rest().char_indices();
        let quote = chars.next().map(|(_, c)| c);
        let mut text = String::new();
        while let Some((i, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, c @ ('\\' | '"' | '\''))) => text.push(c),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    _ => {
                        self.at += i + 1;
                        return Err(self.expected("a quote, \\, n or t behind \\"));
                    }
                },
                c if Some(c) == quote => {
                    self.at += i + 1;
                    return Ok(text);
                }
                other => text.push(other),
            }
        }
        self.at = self.text.len();
        Err(self.expected("a quote at the end of a text"))
    }

    fn number(&mut self) -> Result<Literal, Error> {
        let start = self.at;
        self.at += usize::from(self.rest().starts_with(['+', '-']));
        let digits = |parser: &mut Self| {
            let n = parser.rest().len() - parser.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
            parser.at += n;
            if n == 0 { Err(parser.expected("a digit")) } else { Ok(()) }
        };
        digits(self)?;
        let mut integer = true;
        if self.rest().starts_with('.') {
            (self.at, integer) = (self.at + 1, false);
            digits(self)?;
        }
        if self.rest().starts_with(['e', 'E']) {
            (self.at, integer) = (self.at + 1, false);
            self.at += usize::from(self.rest().starts_with(['+', '-']));
            digits(self)?;
        }
        if self.rest().starts_with(in_name) {
            return Err(self.expected("the end of a number"));
        }
        let text = &self.text[start..self.at];
        let literal = match integer {
            true => text.parse().ok().map(Literal::Int),
            false => text.parse().ok().filter(|value: &f64| value.is_finite()).map(Literal::Float),
        };
        literal.ok_or_else(|| {
            self.error(ErrorKind::Syntax(SyntaxFault::Filter), start).caused_by("the number is too large")
        })
    }
}

/// Whether a name without backquotes can go on with this.
fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}
