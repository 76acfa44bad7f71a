//! Earlier places of a stream where the same bytes stand.

use std::ops::Range;

/// Matches are looked for this far back at most: farther ones leave a decoder's cache, and the tree would grow.
pub(super) const WINDOW: usize = 4 << 20;

/// A match of this length is as good as any longer one.
pub(super) const LONG: usize = 128;

const NOWHERE: u32 = u32::MAX;

/// A place from which bytes can be copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) length: u32,
    pub(super) offset: u32,
}

/// Finds at each position the nearest match of every length.
///
/// The strings that start at earlier positions are kept in a binary tree for each hash of their first bytes, sorted by
/// what follows, the latest at the root. A new string takes the root's place: on its way down it splits the tree into
/// the smaller and the greater ones, and meets its longest matches.
#[derive(Default)]
pub(super) struct Tree {
    roots: Vec<u32>,
    /// For each position, modulo the window, its smaller and its greater branch.
    branches: Vec<[u32; 2]>,
    /// The next position to search; those before it that are not in the tree lie inside a long match.
    next: usize,
    found: Vec<Match>,
    /// Where the matches of each position of the block start in `found`, and where the last ones end.
    starts: Vec<u32>,
}

/// How much a search does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    /// The shortest match that is looked for: 4 to 8 bytes.
    pub(crate) shortest: usize,
    /// Strings that each one is compared with, at most.
    pub(crate) strings: u32,
}

impl Tree {
    const HASH_LOG: u32 = 17;

    /// Starts on content of such a length, below 4 GiB.
    pub(super) fn clear(&mut self, len: usize) {
        self.roots.clear();
        self.roots.resize(1 << Self::HASH_LOG, NOWHERE);
        self.branches.resize(len.next_power_of_two().min(WINDOW), [NOWHERE; 2]);
        self.next = 0;
    }

    /// Finds the matches of all positions of a block. Blocks come in order.
    pub(super) fn search(&mut self, content: &[u8], block: Range<usize>, depth: Depth) {
        self.found.clear();
        self.starts.clear();
        for position in block {
            self.starts.push(number(self.found.len()));
            if position >= self.next {
                self.next = position + 1;
                self.insert(content, position, depth);
            }
        }
        self.starts.push(number(self.found.len()));
    }

    /// The matches of a position of the last block, longer and longer. They may go past the block's end.
    pub(super) fn at(&self, position: usize) -> &[Match] {
        &self.found[self.starts[position] as usize..self.starts[position + 1] as usize]
    }

    fn insert(&mut self, content: &[u8], position: usize, depth: Depth) {
        let Some(head) = content[position..].first_chunk() else { return };
        let hash = hash(u64::from_le_bytes(*head) << (64 - 8 * depth.shortest), Self::HASH_LOG);
        let mut earlier = std::mem::replace(&mut self.roots[hash], number(position));
        let mask = self.branches.len() - 1;
        // Where the next smaller and the next greater string go, and how much those so far share with the new one.
        let mut open = [(position & mask, 0), (position & mask, 1)];
        let mut shared = [0, 0];
        let mut longest = depth.shortest - 1;
        for _ in 0..depth.strings {
            let at = earlier as usize;
            if earlier == NOWHERE || position - at >= self.branches.len() {
                break;
            }
            let length = common(content, at, position, shared[0].min(shared[1]));
            let [smaller, greater] = self.branches[at & mask];
            if length > longest {
                longest = length;
                self.found.push(Match { length: number(length), offset: number(position - at) });
            }
            if length >= LONG || position + length == content.len() {
                // As good as equal: the new one takes its place.
                self.branches[open[0].0][open[0].1] = smaller;
                self.branches[open[1].0][open[1].1] = greater;
                self.next = self.next.max((position + length).saturating_sub(LONG));
                return;
            }
            let side = usize::from(content[at + length] > content[position + length]);
            shared[side] = length;
            self.branches[open[side].0][open[side].1] = earlier;
            open[side] = (at & mask, 1 - side);
            earlier = [greater, smaller][side];
        }
        for (at, side) in open {
            self.branches[at][side] = NOWHERE;
        }
    }
}

/// Finds at each position the longest of the latest matches of 16 bytes and more; far cheaper than the tree.
#[derive(Default)]
pub(super) struct Latest {
    /// For each hash the latest positions, newest first.
    positions: Vec<[u32; 8]>,
}

impl Latest {
    pub(super) const SHORTEST: usize = 16;
    const HASH_LOG: u32 = 15;

    /// Starts on another content, below 4 GiB.
    pub(super) fn clear(&mut self) {
        self.positions.clear();
        self.positions.resize(1 << Self::HASH_LOG, [NOWHERE; 8]);
    }

    /// Notes a position.
    pub(super) fn insert(&mut self, content: &[u8], position: usize) {
        if let Some(positions) = self.bucket(content, position) {
            positions.rotate_right(1);
            positions[0] = number(position);
        }
    }

    /// Notes a position and gives its longest match; of length 0 if there is none.
    pub(super) fn search(&mut self, content: &[u8], position: usize) -> Match {
        let mut longest = Match::default();
        if let Some(positions) = self.bucket(content, position) {
            for &at in positions.iter().take_while(|&&at| at != NOWHERE && position - (at as usize) < WINDOW) {
                let length = number(common(content, at as usize, position, 0));
                if length > longest.length {
                    longest = Match { length, offset: number(position - at as usize) };
                }
            }
        }
        self.insert(content, position);
        longest
    }

    fn bucket(&mut self, content: &[u8], position: usize) -> Option<&mut [u32; 8]> {
        let [head, tail] = *content[position..].first_chunk::<16>()?.as_chunks::<8>().0 else { return None };
        let (head, tail) = (u64::from_le_bytes(head), u64::from_le_bytes(tail));
        Some(&mut self.positions[hash(head.wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(31) ^ tail, Self::HASH_LOG)])
    }
}

/// How many bytes two places of `content` have in common, `known` or more; `a` lies before `b`.
pub(super) fn common(content: &[u8], a: usize, b: usize, known: usize) -> usize {
    let (one, other) = (&content[a + known..], &content[b + known..]);
    let mut length = known;
    for (one, other) in one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0) {
        let difference = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if difference != 0 {
            return length + (difference.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    length + content[a + length..].iter().zip(&content[b + length..]).take_while(|(one, other)| one == other).count()
}

fn hash(bytes: u64, log: u32) -> usize {
    #[allow(clippy::cast_possible_truncation)] // `log` bits are left
    let hash = (bytes.wrapping_mul(0x9E37_79B1_85EB_CA87) >> (64 - log)) as usize;
    hash
}

/// A position or length in content below 4 GiB.
pub(super) fn number(n: usize) -> u32 {
    #[allow(clippy::cast_possible_truncation)]
    let n = n as u32;
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few different bytes, with runs and copies.
    fn content(len: usize) -> Vec<u8> {
        let mut state = 7u32;
        let mut content: Vec<u8> = Vec::new();
        while content.len() < len {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [a, b, c, d] = state.to_le_bytes();
            match d % 8 {
                0 => content.extend(vec![b & 1; usize::from(c)]),
                1 | 2 if content.len() > 1000 => {
                    let from = content.len() - 1 - usize::from(a) * 3;
                    content.extend_from_within(from..(from + usize::from(c) / 4).min(content.len()));
                }
                _ => content.push(c & 3),
            }
        }
        content
    }

    #[test]
    fn the_tree_finds_the_nearest_match_of_every_length() {
        let content = content(3000);
        let mut tree = Tree::default();
        tree.clear(content.len());
        let depth = Depth { shortest: 5, strings: u32::MAX };
        let mut searched = 0;
        for block in [0..1700, 1700..content.len()] {
            tree.search(&content, block.clone(), depth);
            for position in block.clone() {
                let found = tree.at(position - block.start);
                let mut last = Match { length: 4, offset: 0 };
                for &one in found {
                    assert!(one.length > last.length && one.offset > last.offset);
                    assert_eq!(common(&content, position - one.offset as usize, position, 0), one.length as usize);
                    last = one;
                }
                // Inside long matches and at the very end nothing is looked for.
                if found.is_empty() || last.length as usize >= LONG {
                    continue;
                }
                searched += 1;
                let longest = (0..position).map(|at| common(&content, at, position, 0)).max().unwrap_or(0);
                assert!(longest == last.length as usize || longest >= LONG, "{position}: {longest}, {last:?}");
            }
        }
        assert!(searched > 500, "{searched}");
    }

    #[test]
    fn the_latest_finds_long_matches() {
        let content = content(20_000);
        let mut latest = Latest::default();
        latest.clear();
        let mut matches = 0;
        for position in 0..content.len() {
            let found = latest.search(&content, position);
            if found.length > 0 {
                let source = position - found.offset as usize;
                assert_eq!(common(&content, source, position, 0), found.length as usize);
                matches += usize::from(found.length as usize >= Latest::SHORTEST);
            }
        }
        assert!(matches > 1000, "{matches}");
    }

    #[test]
    fn common_bytes() {
        let content: Vec<u8> = [[7; 40], [7; 40]].concat();
        for b in 1..80 {
            for a in 0..b {
                for known in [0, 1, 80 - b] {
                    assert_eq!(common(&content, a, b, known), 80 - b);
                }
            }
        }
        for differ in 40..80 {
            let mut content = content.clone();
            content[differ] = 8;
            assert_eq!(common(&content, 0, 40, 0), differ - 40);
        }
    }
}
