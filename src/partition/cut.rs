//! Cutting lists into pieces of given sizes, and moving samples to clients that got too few.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::rng::below;

/// Sizes of `parts` pieces of `total` that differ by at most one; the first pieces are the larger ones.
pub fn even(total: usize, parts: usize) -> impl Iterator<Item = usize> {
    (0..parts).map(move |part| total / parts + usize::from(part < total % parts))
}

/// Sizes of pieces of `total` in proportion to `weights`, which sum to one: the differences of the rounded cumulative
/// sums.
pub fn weighted(total: usize, weights: &[f64]) -> impl Iterator<Item = usize> {
    let (mut sum, mut before) = (0.0, 0);
    weights.iter().enumerate().map(move |(i, weight)| {
        sum += weight;
        let edge = if i + 1 == weights.len() { total } else { ((sum * total as f64) as usize).clamp(before, total) };
        let size = edge - before;
        before = edge;
        size
    })
}

/// Deals `items` in their order into pieces of the given sizes.
pub fn deal(items: &[u32], sizes: impl Iterator<Item = usize>) -> Vec<Vec<u32>> {
    let mut rest = items;
    let piece = |size: usize| {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        piece.to_vec()
    };
    sizes.map(piece).collect()
}

/// Moves random samples, each from the client that is largest at the time, to the clients with fewer than `least`.
///
/// Clients are served in ascending order; of equally large clients the lower gives. Returns how many samples were moved
/// and how many clients received some.
pub fn top_up(lists: &mut [Vec<u32>], least: usize, generator: &mut impl rand::Rng) -> (usize, usize) {
    let rich = |(i, list): (usize, &Vec<u32>)| (list.len() > least).then_some((list.len(), Reverse(i)));
    let mut givers: BinaryHeap<_> = lists.iter().enumerate().filter_map(rich).collect();
    let (mut moved, mut served) = (0, 0);
    for poor in 0..lists.len() {
        served += usize::from(lists[poor].len() < least);
        while lists[poor].len() < least {
            let Some((size, Reverse(giver))) = givers.pop() else { return (moved, served) };
            let at = below(generator, size as u32) as usize;
            let sample = lists[giver].swap_remove(at);
            lists[poor].push(sample);
            moved += 1;
            if size - 1 > least {
                givers.push((size - 1, Reverse(giver)));
            }
        }
    }
    (moved, served)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Address, Purpose};

    #[test]
    fn even_pieces_differ_by_at_most_one() {
        assert_eq!(even(10, 3).collect::<Vec<_>>(), [4, 3, 3]);
        assert_eq!(even(2, 4).collect::<Vec<_>>(), [1, 1, 0, 0]);
    }

    #[test]
    fn weighted_pieces_sum_to_the_total() {
        assert_eq!(weighted(10, &[0.25, 0.25, 0.5]).collect::<Vec<_>>(), [2, 3, 5]);
        assert_eq!(weighted(7, &[0.0, 1.0, 0.0]).collect::<Vec<_>>(), [0, 7, 0]);
        assert_eq!(weighted(7, &[0.3, 0.3, 0.3]).sum::<usize>(), 7);
    }

    #[test]
    fn the_largest_client_gives_to_the_poor() {
        let mut lists = vec![(0..9).collect(), vec![], vec![9, 10], (11..16).collect()];
        let moved = top_up(&mut lists, 3, &mut Address::new(0, Purpose::Partition).generator());
        assert_eq!(moved, (4, 2));
        assert_eq!(lists.iter().map(Vec::len).collect::<Vec<_>>(), [5, 3, 3, 5]);
        let mut all: Vec<u32> = lists.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..16));
    }
}
