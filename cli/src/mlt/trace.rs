//! The trace of a map tile: of all of it, of a layer, or of a column.

use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use tilekern::mlt::{Kind, Layer, Options, Tile, Traced, trace};
use tilekern::{Step, Trace};

use super::{GEOMETRY, IDS, Item, choose, items, layers, names, open, told, unopened};
use crate::Verdict;
use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::html::{self, ALL, Data, Page, STEPS, TEXT, first, region};
use crate::source::MLT;
use crate::steps::{self, Placed, StepRecord};
use crate::text::{counted, cut, quoted};

/// Characters of a name in a title.
const NAME: usize = 60;

/// How to see pages that are left out.
const HOW: &str = "choose with LAYER.COLUMN";

/// What is asked for.
pub struct Request<'a> {
    pub path: &'a Path,
    /// `LAYER.COLUMN`, or a layer alone.
    pub part: Option<&'a str>,
    pub html: Option<&'a Path>,
    pub options: Options,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Record<'a> {
    path: &'a str,
    kind: &'static str,
    bytes: u64,
    /// As it was asked for.
    part: Option<&'a str>,
    steps: Vec<StepRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

/// What `--json` prints about a page of HTML that was written.
#[derive(Serialize)]
struct Written<'a> {
    path: &'a str,
    kind: &'static str,
    part: Option<&'a str>,
    output: &'a str,
    n_pages: usize,
    n_left_out: usize,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

pub fn run(bytes: &[u8], request: &Request<'_>, console: &mut Console) -> Result<Verdict, Stop> {
    let path = request.path;
    let traced = match request.part {
        None => Traced::Tile,
        Some(word) => part(&open(bytes, &request.options, path)?, word, path)?,
    };
    let Trace { steps, fault, .. } = trace(bytes, traced, &request.options);
    let fault = fault.map(|error| match Tile::open(bytes, &request.options) {
        Ok(tile) => told(error, &tile, &request.options, path),
        Err(_) => unopened(error, bytes, path),
    });
    let verdict = if fault.is_some() { Verdict::Unsound } else { Verdict::Sound };
    if let Some(output) = request.html {
        page(bytes, request, &steps, fault.as_ref(), output, console)?;
    } else if console.json {
        let steps = steps::records(&steps, Placed::whole(bytes));
        let (path, bytes, error) = (&*path.to_string_lossy(), bytes.len() as u64, fault.as_ref());
        console.record(&Record { path, kind: MLT, bytes, part: request.part, steps, error })?;
    } else {
        steps::print(steps.iter().map(|step| (step, Placed::whole(bytes))), console)?;
    }
    match fault {
        // What was understood comes first.
        Some(fault) if !console.json => console.flush().and(Err(fault.into())),
        _ => Ok(verdict),
    }
}

/// The part of a tile that a word names: a layer, or a layer, a dot and a column.
fn part(tile: &Tile<'_>, word: &str, path: &Path) -> Result<Traced, Fault> {
    let by_name = |name: &str| tile.layers().filter(|layer| layer.name() == name).collect::<Vec<_>>();
    let by_number = |text: &str| text.parse().ok().and_then(|n| tile.layer(n)).into_iter().collect::<Vec<_>>();
    let named = parts(word, by_name);
    let named = if named.is_empty() { parts(word, by_number) } else { named };
    match &named[..] {
        [one] => Ok(*one),
        [] => {
            // The layer may be there, and the column not.
            let layer = splits(word).find_map(|(layer, _)| layers(tile, layer, path).ok()?.first().copied());
            let (what, choice) = match layer {
                Some(layer) => ("columns", choose(names(layer).map(|name| format!("{}.{name}", layer.name())))),
                None => ("layers", choose(tile.layers().map(|layer| layer.name().to_owned()))),
            };
            let message = format!("has no part {word:?}{choice}");
            Err(Fault { part: Some(what.to_owned()), ..Fault::new("missing", path, message) })
        }
        several => {
            let message =
                format!("{word:?} names {} parts: give the layer's number from 0 in place of its name", several.len());
            Err(Fault { part: Some("layers".to_owned()), ..Fault::new("ambiguous", path, message) })
        }
    }
}

/// A word cut at each of its dots: layers and columns may have some in their names.
fn splits(word: &str) -> impl Iterator<Item = (&str, &str)> {
    word.match_indices('.').map(|(dot, _)| (&word[..dot], &word[dot + 1..]))
}

/// What a word can name, with layers looked up in some way.
fn parts<'t>(word: &str, layers: impl Fn(&str) -> Vec<Layer<'t>>) -> Vec<Traced> {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut found: Vec<Traced> = layers(word).into_iter().map(|layer| Traced::Layer(number(layer.number()))).collect();
    for (name, column) in splits(word) {
        for layer in layers(name) {
            let at = number(layer.number());
            found.extend(items(layer, &[column]).into_iter().flatten().filter_map(|item| match item {
                Item::Geometry => Some(Traced::Geometry(at)),
                Item::Ids => layer.ids().map(|column| Traced::Column(at, number(column.index()))),
                Item::Column(column) => Some(Traced::Column(at, number(column.index()))),
            }));
        }
    }
    found
}

/// Writes a page of HTML.
fn page(
    bytes: &[u8],
    request: &Request<'_>,
    steps: &[Step],
    error: Option<&Fault>,
    output: &Path,
    console: &mut Console,
) -> Result<(), Stop> {
    let (pages, n_left_out) = pages(bytes, &request.options, steps, error);
    let path = request.path.display();
    let data = Data {
        title: request.part.map_or_else(|| path.to_string(), |part| format!("{path}, {part}")),
        subtitle: format!("MLT, {}", counted(bytes.len() as u64, "byte")),
        pages: &pages,
        left_out: n_left_out,
        how: HOW,
    };
    let (output, bytes) = html::write(&data, output, console)?;
    let n_pages = pages.len();
    if console.json {
        let (path, output) = (&*request.path.to_string_lossy(), &*output);
        let part = request.part;
        return console.record(&Written { path, kind: MLT, part, output, n_pages, n_left_out, bytes, error });
    }
    let more = match n_left_out {
        0 => String::new(),
        n => format!("; {} left out: {HOW}", counted(n as u64, "part")),
    };
    console.note(format_args!("{output}: {}, {}{more}", counted(n_pages as u64, "part"), counted(bytes, "byte")));
    Ok(())
}

/// What the parts of a tile are called.
struct Names {
    /// By their numbers.
    layers: Vec<String>,
    /// In the order of their starts: where each is, its layer, and its name.
    parts: Vec<(Range<u64>, usize, String)>,
}

impl Names {
    /// The frames, columns and geometries of a tile that can be opened.
    fn of(bytes: &[u8], options: &Options) -> Names {
        let (mut layers, mut parts) = (Vec::new(), Vec::new());
        if let Ok(tile) = Tile::open(bytes, options) {
            for layer in tile.layers() {
                let name = quoted(&cut(layer.name(), NAME));
                layers.push(format!("layer {}: {name}", layer.number()));
                let mut add = |span: Range<u64>, what: &str| {
                    parts.push((span, layer.number(), format!("{name}{what}")));
                };
                add(layer.span(), "");
                add(layer.geometry_span(), &format!(".{GEOMETRY}"));
                for column in layer.columns() {
                    let what = match column.kind() {
                        Kind::Id => format!(".{IDS}"),
                        Kind::Geometry => format!(".{GEOMETRY}"),
                        _ => format!(".{}", quoted(&cut(&column.name(), NAME))),
                    };
                    add(column.meta_span(), &what);
                    add(column.data_span(), &what);
                }
            }
        }
        parts.sort_by_key(|(span, ..)| span.start);
        Names { layers, parts }
    }

    /// The heading and the title of the part that a step opens.
    fn title(&self, step: &Step) -> (Option<String>, String) {
        let label = match step.detail.as_str() {
            "" => step.label.clone(),
            detail => format!("{}: {detail}", step.label),
        };
        let before = self.parts.partition_point(|(span, ..)| span.start <= step.span.start);
        let Some((_, layer, name)) =
            before.checked_sub(1).map(|n| &self.parts[n]).filter(|(span, ..)| step.span.start < span.end)
        else {
            return (None, label);
        };
        // The name says which column it is.
        let number = ["column ", "geometry, "].iter().any(|start| step.label.starts_with(start));
        let rest = label.split_once([':', ',']).filter(|_| number).map_or(&*label, |(_, rest)| rest.trim_start());
        (self.layers.get(*layer).cloned(), format!("{name}: {rest}"))
    }
}

/// Steps of this depth and above that have steps below them are parts that open and close.
const PARTS: u8 = 1;

/// The parts that there is room for, each with the steps that are not in a smaller part, and how many are left out.
fn pages(bytes: &[u8], options: &Options, steps: &[Step], fault: Option<&Fault>) -> (Vec<Page>, usize) {
    let names = Names::of(bytes, options);
    // Of each part: its step, and those in it.
    let mut parts: Vec<(Option<&Step>, Vec<&Step>)> = vec![(None, Vec::new())];
    let mut within: Vec<usize> = vec![0];
    for (n, step) in steps.iter().enumerate() {
        let depth = usize::from(step.depth.min(PARTS + 1));
        within.truncate(depth + 1);
        let is_part = step.depth <= PARTS && steps.get(n + 1).is_some_and(|next| next.depth > step.depth);
        if is_part {
            within.push(parts.len());
            parts.push((Some(step), Vec::new()));
        } else if let Some(&part) = within.last() {
            parts[part].1.push(step);
        }
    }
    parts.retain(|(_, steps)| !steps.is_empty());
    let all = parts.len();
    let mut spent = 0;
    let mut pages = Vec::new();
    for (n, (part, steps)) in parts.into_iter().enumerate() {
        if spent >= ALL {
            break;
        }
        let fault = fault.filter(|_| n + 1 == all);
        let (heading, title) = part.map_or_else(|| (None, "tile".to_owned()), |part| names.title(part));
        let page = of_part(bytes, heading, title, &steps, fault);
        spent += page.size();
        pages.push(page);
    }
    let left_out = all - pages.len();
    (pages, left_out)
}

fn of_part(bytes: &[u8], heading: Option<String>, title: String, steps: &[&Step], fault: Option<&Fault>) -> Page {
    let mut notes = Vec::new();
    let start = steps.iter().map(|step| step.span.start).min().unwrap_or(0);
    let end = steps.iter().map(|step| step.span.end).max().unwrap_or(0);
    let region = region("bytes of the tile", start..end, Placed::whole(bytes), &mut notes);
    if steps.len() > STEPS {
        notes.push(first(STEPS, steps.len() as u64, "step"));
    }
    let least = steps.iter().map(|step| step.depth).min().unwrap_or(0);
    let shown = steps.iter().take(STEPS).map(|step| html::Step {
        section: "steps",
        label: "\u{2003}".repeat(usize::from(step.depth - least)) + &step.label,
        detail: cut(&step.detail, TEXT).into_owned(),
        at: (0, step.span.start, step.span.end),
    });
    Page {
        group: 0,
        heading,
        title: cut(&title, TEXT).into_owned(),
        steps: shown.collect(),
        bytes: vec![region],
        values: Vec::new(),
        notes,
        fault: fault.map(Fault::to_string),
    }
}
