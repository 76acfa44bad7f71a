//! Parses of a stream into literals and matches that weigh bytes against the time of the decoder.
//!
//! zstd's own parse at its high levels counts bits alone. In the byte planes of counts it finds a match of a few bytes
//! everywhere, which saves almost nothing and costs a decoder as much time as two dozen literals.

use super::Sequence;
use super::matches::{Depth, LONG, Latest, Tree, common, number};
use super::prices::{FIRST_RECENT, Nanosecond, Prices, Recent, Statistics, offset_code};

/// No block holds more content than this.
const BLOCK_MAX: usize = 128 << 10;

/// A match at one of the last three offsets is worth a look from this length on.
const SHORTEST_REPEAT: usize = 4;

/// The end of a block.
const END: Sequence = Sequence { offset: 0, litLength: 0, matchLength: 0, rep: 0 };

/// How a stream is parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parse {
    /// Block by block, the cheapest way over all matches.
    Cheapest {
        depth: Depth,
        /// How often each block is parsed, each time with the statistics of the time before.
        passes: u32,
        nanosecond: Nanosecond,
    },
    /// The next long match, or the one a byte later if that is longer.
    Greedy,
}

/// Parses streams; keeps its memory.
#[derive(Default)]
pub(crate) struct Parser {
    tree: Tree,
    latest: Latest,
    nodes: Vec<Node>,
    steps: Vec<Sequence>,
}

/// The cheapest way found so far to a place in a block.
#[derive(Clone, Copy)]
struct Node {
    price: i32,
    /// The match that ends here; a length of 0 stands for a literal.
    length: u32,
    offset: u32,
    /// Literals since the last match.
    run: u32,
    recent: Recent,
}

const UNREACHED: Node = Node { price: i32::MAX, length: 0, offset: 0, run: 0, recent: [0; 3] };

impl Parser {
    /// Parses `content` in blocks, none of which holds bytes from both sides of `border`.
    ///
    /// None for 4 GiB and more.
    pub(crate) fn parse(&mut self, content: &[u8], border: usize, parse: Parse) -> Option<&[Sequence]> {
        u32::try_from(content.len()).ok()?;
        self.steps.clear();
        match parse {
            Parse::Cheapest { .. } => self.tree.clear(content.len()),
            Parse::Greedy => self.latest.clear(),
        }
        let mut recent = FIRST_RECENT;
        for plane in [0..border, border..content.len()] {
            let n_blocks = plane.len().div_ceil(BLOCK_MAX);
            let mut seen = Statistics::default();
            for i in 0..n_blocks {
                let [start, end] = [i, i + 1].map(|i| plane.start + plane.len() * i / n_blocks);
                // Matches end with their block.
                let upto = &content[..end];
                match parse {
                    Parse::Greedy => self.greedy(upto, start),
                    Parse::Cheapest { depth, passes, nanosecond } => {
                        self.tree.search(content, start..end, depth);
                        // The first block has no block before it to learn from.
                        let passes = if i == 0 { passes + 2 } else { passes };
                        let (first, before) = (self.steps.len(), recent);
                        for _ in 0..passes {
                            recent = self.cheapest(upto, start, before, &Prices::of(&seen, nanosecond));
                            self.steps.truncate(first);
                            self.collect();
                            seen = Statistics::of(&self.steps[first..], &upto[start..], before);
                        }
                    }
                }
            }
        }
        Some(&self.steps)
    }

    /// Finds the cheapest way from `start` to the end of `content`, step by step to each place in between.
    fn cheapest(&mut self, content: &[u8], start: usize, recent: Recent, prices: &Prices) -> Recent {
        let len = content.len() - start;
        self.nodes.clear();
        self.nodes.resize(len + 1, UNREACHED);
        self.nodes[0] = Node { price: 0, recent, ..UNREACHED };
        let mut at = 0;
        while at < len {
            let from = self.nodes[at];
            let price = from.price + prices.literal(content[start + at], from.run);
            if price < self.nodes[at + 1].price {
                self.nodes[at + 1] = Node { price, run: from.run + 1, recent: from.recent, ..UNREACHED };
            }
            let mut longest = 0;
            let mut offer = |offset: u32, shortest: usize, length: usize| {
                let length = length.min(len - at);
                let (code, recent) = offset_code(offset, from.recent, from.run == 0);
                let price = from.price + prices.offset(code);
                // Who has a long match takes the whole of it.
                let shortest = if length >= LONG { length } else { shortest };
                for length in shortest..=length {
                    let price = price + prices.match_length(length);
                    let to = &mut self.nodes[at + length];
                    if price < to.price {
                        *to = Node { price, length: number(length), offset, run: 0, recent };
                    }
                }
                longest = longest.max(length);
            };
            for offset in from.recent {
                if let Some(source) = (start + at).checked_sub(offset as usize) {
                    offer(offset, SHORTEST_REPEAT, common(content, source, start + at, 0));
                }
            }
            let mut shortest = SHORTEST_REPEAT;
            for found in self.tree.at(at) {
                offer(found.offset, shortest, found.length as usize);
                shortest = found.length as usize + 1;
            }
            at += if longest >= LONG { longest } else { 1 };
        }
        self.nodes[len].recent
    }

    /// Appends the steps of the way that ends in the last node.
    fn collect(&mut self) {
        let first = self.steps.len();
        let mut at = self.nodes.len() - 1;
        let mut step = END;
        loop {
            let run = self.nodes[at].run;
            self.steps.push(Sequence { litLength: run, ..step });
            at -= run as usize;
            if at == 0 {
                break;
            }
            let Node { length, offset, .. } = self.nodes[at];
            step = Sequence { offset, matchLength: length, ..END };
            at -= length as usize;
        }
        self.steps[first..].reverse();
    }

    /// Appends steps from `start` to the end of `content`.
    fn greedy(&mut self, content: &[u8], start: usize) {
        let mut literals = start;
        let mut at = start;
        while at < content.len() {
            let mut found = self.latest.search(content, at);
            if (found.length as usize) < Latest::SHORTEST {
                at += 1;
                continue;
            }
            while (found.length as usize) < LONG / 2 && at + 1 < content.len() {
                let next = self.latest.search(content, at + 1);
                if next.length <= found.length + 1 {
                    break;
                }
                (found, at) = (next, at + 1);
            }
            let end = at + found.length as usize;
            let offset = found.offset as usize;
            while at > literals.max(offset) && content[at - 1] == content[at - 1 - offset] {
                at -= 1;
            }
            let (literal, length) = (number(at - literals), number(end - at));
            self.steps.push(Sequence { offset: found.offset, litLength: literal, matchLength: length, rep: 0 });
            // Every other position inside is enough for later ones to be found.
            let inside = if end - at < 4 * LONG { at + 2..end } else { end..end };
            inside.step_by(2).for_each(|at| self.latest.insert(content, at));
            (at, literals) = (end, end);
        }
        self.steps.push(Sequence { litLength: number(at - literals), ..END });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn byte(n: u32) -> u8 {
        n.to_le_bytes()[0]
    }

    fn cheapest(shortest: usize, strings: u32, passes: u32, nanosecond: i32) -> Parse {
        Parse::Cheapest { depth: Depth { shortest, strings }, passes, nanosecond: Nanosecond(nanosecond) }
    }

    /// What the steps make of the literals that they take from `content`.
    fn apply(steps: &[Sequence], content: &[u8]) -> Vec<u8> {
        let mut made: Vec<u8> = Vec::new();
        for step in steps {
            made.extend_from_slice(&content[made.len()..made.len() + step.litLength as usize]);
            for _ in 0..step.matchLength {
                made.push(made[made.len() - step.offset as usize]);
            }
        }
        made
    }

    /// Where blocks end.
    fn ends(steps: &[Sequence]) -> Vec<usize> {
        let mut at = 0;
        steps
            .iter()
            .filter_map(|step| {
                at += (step.litLength + step.matchLength) as usize;
                (step.offset == 0).then_some(at)
            })
            .collect()
    }

    fn content() -> impl Strategy<Value = Vec<u8>> {
        // Few different bytes, and copies of earlier parts, so that matches of all kinds occur.
        let piece = prop_oneof![
            prop::collection::vec(0u8..3, 0..40).prop_map(|bytes| (bytes, 0, 0)),
            prop::collection::vec(any::<u8>(), 0..10).prop_map(|bytes| (bytes, 0, 0)),
            (1usize..400, 1usize..700).prop_map(|(back, length)| (Vec::new(), back, length)),
        ];
        prop::collection::vec(piece, 0..25).prop_map(|pieces| {
            let mut content: Vec<u8> = Vec::new();
            for (bytes, back, length) in pieces {
                content.extend(bytes);
                if back <= content.len() {
                    (0..length).for_each(|_| content.push(content[content.len() - back]));
                }
            }
            content
        })
    }

    proptest! {
        #[test]
        fn steps_make_the_content(
            content in content(),
            border in any::<prop::sample::Index>(),
            (shortest, strings, passes, nanosecond) in (4usize..9, 0u32..40, 1u32..4, 0i32..3000),
        ) {
            let border = border.index(content.len() + 1);
            let mut parser = Parser::default();
            for parse in [cheapest(shortest, strings, passes, nanosecond), Parse::Greedy] {
                let steps = parser.parse(&content, border, parse).unwrap().to_vec();
                prop_assert_eq!(apply(&steps, &content), &content[..]);
                prop_assert!([border, content.len()].iter().all(|&at| at == 0 || ends(&steps).contains(&at)));
                prop_assert_eq!(steps.is_empty(), content.is_empty());
                let again = parser.parse(&content, border, parse).unwrap();
                prop_assert!(again.iter().map(raw).eq(steps.iter().map(raw)), "another parse the second time");
            }
        }
    }

    fn raw(step: &Sequence) -> [u32; 3] {
        [step.offset, step.litLength, step.matchLength]
    }

    #[test]
    fn blocks_are_equal_and_bounded() {
        let content: Vec<u8> = (0..700_001u32).map(|n| byte(n.wrapping_mul(n) >> 9) & 3).collect();
        let mut parser = Parser::default();
        for parse in [cheapest(6, 8, 1, 300), Parse::Greedy] {
            let steps = parser.parse(&content, 300_000, parse).unwrap();
            assert_eq!(apply(steps, &content), content);
            assert_eq!(ends(steps), [100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_001]);
        }
    }

    #[test]
    fn time_costs_bytes() {
        // Words of 4 to 11 bytes in some order: matches everywhere, none of them long.
        let words: Vec<u8> = (0..60_000).map(|n: u32| byte(n * n / 7 % 251)).collect();
        let mut state = 1u32;
        let mut content = Vec::new();
        while content.len() < 100_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let from = (state >> 20) as usize * 12;
            content.extend_from_slice(&words[from..from + 4 + (state >> 16 & 7) as usize]);
        }
        let mut parser = Parser::default();
        let sequences = [0, 300, 3000]
            .map(|nanosecond| parser.parse(&content, content.len(), cheapest(4, 64, 2, nanosecond)).unwrap().len());
        assert!(sequences[0] > sequences[1] && sequences[1] > sequences[2], "{sequences:?}");
    }
}
