//! Triangles of polygons: corners as they are stored in version 1, trees in version 2.
//!
//! Source: version 1 container, section 6.4; version 2 container, section 4.2.

use super::MltFault;
use super::decoder::{Core, Memory, counted};
use super::encoding::fault;
use super::geometry::{Geometry, POLYGONS};
use super::outline::GeometryOutline;
use super::stream::Stream;
use super::tile::Layer;
use crate::error::{Error, Part};

const TRIANGLES: Part = Part::Values("", "triangles");

/// Bits of a tree's symbols.
const LEFT: u32 = 1;
const RIGHT: u32 = 2;

impl Core {
    /// The triangles of a layer, if it has any.
    pub(crate) fn triangles(
        &mut self,
        layer: Layer<'_>,
        of: &GeometryOutline,
        memory: &mut Memory,
        out: &mut Geometry,
    ) -> Result<(), Error> {
        let corners = of.indices.or(of.tree_symbols).map(|stream| layer.stream(stream));
        let Some(stream) = of.triangles.map(|stream| layer.stream(stream)) else {
            return match corners {
                Some(corners) if corners.count > 0 => Err(wrong(corners, corners.count.into(), 0)),
                _ => Ok(()),
            };
        };
        let polygons = out.types.get().iter().filter(|&&code| POLYGONS >> code & 1 == 1).count();
        counted(stream, polygons)?;
        let lengths = self.all_words(layer, stream, &mut memory.words)?;
        let offsets = out.triangles.make(polygons + 1, &mut self.budget)?;
        offsets[0] = 0;
        let total = self.options.kernels.offsets_u32(lengths, 0, &mut offsets[1..]).total;
        let corners = match corners {
            Some(corners) => corners,
            None if total == 0 => return Ok(()),
            None => return Err(wrong(stream, total, 0)),
        };
        let per_triangle = if of.indices.is_some() { 3 } else { 1 };
        if total.checked_mul(per_triangle) != Some(corners.count.into()) {
            return Err(wrong(corners, corners.count.into(), total.saturating_mul(per_triangle)));
        }
        // Three corners for each have to fit the offsets of those that read them.
        let Some(triangles) = usize::try_from(total).ok().filter(|_| total <= u64::from(u32::MAX / 3)) else {
            return Err(wrong(stream, total, (u32::MAX / 3).into()));
        };
        out.tessellated = true;
        if of.indices.is_some() {
            self.enough(layer, corners)?;
            let to = out.corners.make(3 * triangles, &mut self.budget)?;
            self.words(layer, corners, false, to)?;
            return from_features(corners, out);
        }
        let Some(cycles) = of.tree_cycles.map(|stream| layer.stream(stream)) else {
            return Err(wrong(corners, total, 0));
        };
        let symbols = self.all_words(layer, corners, &mut memory.words)?;
        // Two more than triangles for each tree, and a tree has a triangle.
        if u64::from(cycles.count) > 3 * total || u64::from(cycles.count) < total {
            return Err(wrong(cycles, cycles.count.into(), 3 * total));
        }
        let ring = self.all_words(layer, cycles, &mut memory.more_words)?;
        let vertices = out.vertices.get().len();
        if let Some(i) = ring.iter().position(|&corner| corner as usize >= vertices) {
            return Err(wrong(cycles, ring[i].into(), vertices as u64).index(i as u64));
        }
        let stack = memory.symbols.scratch(3 * triangles, &self.budget)?;
        let to = out.corners.make(3 * triangles, &mut self.budget)?;
        trees(symbols, ring, stack, to).map_err(|fault| fault.of(corners, cycles))
    }
}

#[cold]
fn wrong(stream: &Stream, found: u64, expected: u64) -> Error {
    let error = fault(MltFault::Triangles { found, expected }, TRIANGLES);
    error.at(stream.header.0).in_stream(stream.role.name())
}

/// Corners that are counted from the first vertex of their feature, to corners of the layer.
fn from_features(stream: &Stream, out: &mut Geometry) -> Result<(), Error> {
    let mut corners = std::mem::take(&mut out.corners);
    let mut rest = corners.get_mut();
    let (offsets, mut polygon) = (out.triangles.get(), 0);
    // The levels that every layer of polygons has.
    let (items, parts, rings) = (out.geometry_offsets(), out.parts.get(), out.rings.get());
    let start = |i: usize| rings[parts[items.map_or(i, |items| items[i] as usize)] as usize];
    let mut result = Ok(());
    for (i, &code) in out.types.get().iter().enumerate() {
        if POLYGONS >> code & 1 == 0 {
            continue;
        }
        let n = 3 * (offsets[polygon + 1] - offsets[polygon]) as usize;
        polygon += 1;
        let these = rest.split_off_mut(..n).unwrap_or_default();
        let (first, vertices) = (start(i), start(i + 1) - start(i));
        // Once over them; what wraps is not kept.
        let mut largest = 0;
        for corner in these {
            largest = largest.max(*corner);
            *corner = corner.wrapping_add(first);
        }
        if n > 0 && largest >= vertices {
            result = Err(wrong(stream, largest.into(), vertices.into()).index(i as u64));
            break;
        }
    }
    out.corners = corners;
    result
}

/// What is wrong with trees.
#[derive(Debug, PartialEq, Eq)]
enum TreeFault {
    /// A symbol that is none, or the last tree lacks some.
    Symbol {
        i: usize,
        found: u32,
    },
    Unfinished {
        symbols: usize,
    },
    /// Trees take so many entries of the cycles.
    Cycles {
        taken: usize,
        entries: usize,
    },
}

impl TreeFault {
    #[cold]
    fn of(self, symbols: &Stream, cycles: &Stream) -> Error {
        match self {
            TreeFault::Symbol { i, found } => wrong(symbols, found.into(), 4).index(i as u64),
            TreeFault::Unfinished { symbols: n } => wrong(symbols, n as u64, n as u64 + 1),
            TreeFault::Cycles { taken, entries } => wrong(cycles, entries as u64, taken as u64),
        }
    }
}

/// Trees to triangles. `stack` has room for three words of each symbol.
///
/// A tree of n triangles has n symbols in preorder, and in `cycles` the edge over which it is entered, then n apexes in
/// order: those of the left subtree, the triangle's, those of the right one. So the place of each apex is found first, and
/// the edges in a second pass.
fn trees(symbols: &[u32], cycles: &[u32], stack: &mut [u32], out: &mut [u32]) -> Result<(), TreeFault> {
    if let Some(i) = symbols.iter().position(|&symbol| symbol > LEFT | RIGHT) {
        return Err(TreeFault::Symbol { i, found: symbols[i] });
    }
    let (places, stack) = stack.split_at_mut(symbols.len());
    let (mut start, mut taken) = (0, 0);
    while start < symbols.len() {
        let entries = cycles.get(taken + 2..).unwrap_or_default();
        let n = in_order(&symbols[start..], &mut places[start..], stack);
        let n = n.ok_or(TreeFault::Unfinished { symbols: symbols.len() })?;
        let Some(apexes) = entries.get(..n) else {
            return Err(TreeFault::Cycles { taken: taken + 2 + n, entries: cycles.len() });
        };
        let (mut a, mut b, mut depth) = (cycles[taken], cycles[taken + 1], 0);
        let tree = start..start + n;
        for ((&symbol, &place), triangle) in symbols[tree.clone()]
            .iter()
            .zip(&places[tree.clone()])
            .zip(out[3 * tree.start..3 * tree.end].as_chunks_mut().0)
        {
            let c = apexes[place as usize];
            *triangle = [a, b, c];
            // The right child waits until the left one and all below it are done.
            if symbol == LEFT | RIGHT {
                (stack[depth], stack[depth + 1]) = (a, c);
                depth += 2;
            }
            match symbol {
                0 if depth > 0 => {
                    depth -= 2;
                    (a, b) = (stack[depth], stack[depth + 1]);
                }
                0 => {}
                RIGHT => b = c,
                _ => a = c,
            }
        }
        (start, taken) = (tree.end, taken + 2 + n);
    }
    if taken == cycles.len() { Ok(()) } else { Err(TreeFault::Cycles { taken, entries: cycles.len() }) }
}

/// The places in order of the triangles of one tree; gives how many it has, unless the symbols end inside it.
fn in_order(symbols: &[u32], places: &mut [u32], stack: &mut [u32]) -> Option<usize> {
    let (mut depth, mut next) = (0, 0);
    for (i, &symbol) in symbols.iter().enumerate() {
        if symbol & LEFT != 0 {
            // Its turn is behind its left subtree.
            stack[depth] = u32::try_from(i).ok()?;
            depth += 1;
            continue;
        }
        (places[i], next) = (next, next + 1);
        let mut at = i;
        while symbols[at] & RIGHT == 0 {
            if depth == 0 {
                return Some(i + 1);
            }
            depth -= 1;
            at = stack[depth] as usize;
            (places[at], next) = (next, next + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(symbols: &[u32], cycles: &[u32]) -> Result<Vec<u32>, TreeFault> {
        let (mut stack, mut out) = (vec![0; 3 * symbols.len()], vec![0; 3 * symbols.len()]);
        trees(symbols, cycles, &mut stack, &mut out).map(|()| out)
    }

    /// By the definition, recursively.
    fn expected(symbols: &mut &[u32], apexes: &[u32], edge: (u32, u32), out: &mut Vec<u32>) -> usize {
        fn size(symbols: &[u32]) -> usize {
            let mut n = 1;
            if symbols[0] & LEFT != 0 {
                n += size(&symbols[n..]);
            }
            if symbols[0] & RIGHT != 0 {
                n += size(&symbols[n..]);
            }
            n
        }
        let symbol = symbols[0];
        *symbols = &symbols[1..];
        let left = if symbol & LEFT != 0 { size(symbols) } else { 0 };
        let c = apexes[left];
        out.extend([edge.0, edge.1, c]);
        if symbol & LEFT != 0 {
            expected(symbols, apexes, (c, edge.1), out);
        }
        if symbol & RIGHT == 0 {
            return left + 1;
        }
        left + 1 + expected(symbols, &apexes[left + 1..], (edge.0, c), out)
    }

    #[test]
    fn trees_of_many_forms() {
        let mut state = 1u64;
        for _ in 0..2000 {
            // Trees: a count of open children that ends at 0.
            let (mut symbols, mut cycles, mut triangles) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..3 {
                let (from, mut open) = (symbols.len(), 1u32);
                while open > 0 {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let symbol = if symbols.len() - from > 40 { 0 } else { (state >> 60) as u32 & 3 };
                    symbols.push(symbol);
                    open = open - 1 + symbol.count_ones();
                }
                let tree = &symbols[from..];
                let at = cycles.len();
                cycles.extend((0..tree.len() + 2).map(|i| (at + i) as u32 * 7));
                let n = expected(&mut &*tree, &cycles[at + 2..], (cycles[at], cycles[at + 1]), &mut triangles);
                assert_eq!(n, tree.len());
            }
            assert_eq!(decode(&symbols, &cycles), Ok(triangles));
            assert!(decode(&symbols[..symbols.len() - 1], &cycles).is_err());
            assert!(decode(&symbols, &cycles[..cycles.len() - 1]).is_err());
            cycles.push(0);
            let (taken, entries) = (cycles.len() - 1, cycles.len());
            assert_eq!(decode(&symbols, &cycles), Err(TreeFault::Cycles { taken, entries }));
        }
        assert_eq!(decode(&[4], &[0, 1, 2]), Err(TreeFault::Symbol { i: 0, found: 4 }));
        assert_eq!(decode(&[1], &[0, 1, 2]), Err(TreeFault::Unfinished { symbols: 1 }));
        assert_eq!(decode(&[0], &[0, 1, 2]), Ok(vec![0, 1, 2]));
        assert_eq!(decode(&[], &[]), Ok(vec![]));
    }
}
