//! How a flat vector is cut into the parts that are compressed one by one.

use std::ops::Range;

use crate::layout::{Layer, Layout};

/// What one compressed part is: each part has its own norm, its own count of kept values and its own index width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Granularity {
    /// The whole vector at once.
    #[default]
    Model,
    /// Every tensor by itself.
    Layer,
    /// Runs of neighbouring tensors, as many as this, of sizes as equal as whole tensors allow.
    Groups(usize),
    /// Runs of neighbouring tensors, filled from the last one on until they hold at least so many values.
    Size(usize),
    /// Runs of exactly so many values, whatever tensor they belong to; the last one may be shorter.
    Blocks(usize),
}

/// A part: its values and its layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where its values lie in the vector.
    pub values: Range<usize>,
    /// The layers in it; of a layer that does not lie in it as a whole, the piece, as a vector.
    pub layers: Vec<Layer>,
}

/// The parts of a vector, in order and without gaps. Parts without values are left out.
pub fn cut(layout: &Layout, granularity: Granularity) -> Vec<Cut> {
    let layers = layout.layers();
    let runs: Vec<Range<usize>> = match granularity {
        _ if layers.is_empty() => Vec::new(),
        Granularity::Model => std::iter::once(0..layers.len()).collect(),
        Granularity::Layer => (0..layers.len()).map(|i| i..i + 1).collect(),
        Granularity::Groups(groups) => equal_groups(layout, groups),
        Granularity::Size(least) => filled_groups(layers, least),
        Granularity::Blocks(length) => return blocks(layout, length.max(1)),
    };
    runs.into_iter()
        .map(|run| Cut {
            values: layers[run.start].range.start..layers[run.end - 1].range.end,
            layers: layers[run].to_vec(),
        })
        .filter(|part| !part.values.is_empty())
        .collect()
}

fn equal_groups(layout: &Layout, groups: usize) -> Vec<Range<usize>> {
    let layers = layout.layers();
    // From the last layer on, as gradients become ready: a group ends at the layer boundary nearest to its share.
    let (n, groups) = (layout.len(), groups.clamp(1, layers.len()));
    let mut bounds = vec![layers.len()];
    for group in 1..groups {
        let target = n - n * group / groups;
        let last = *bounds.last().expect("bounds start with one entry");
        // Leave a layer for this group and one for each that follows.
        let choices = (groups - group)..last;
        let nearest = choices.min_by_key(|&i| layers[i].range.start.abs_diff(target));
        bounds.push(nearest.expect("there are at least as many layers as groups"));
    }
    bounds.push(0);
    bounds.windows(2).rev().map(|pair| pair[1]..pair[0]).collect()
}

fn filled_groups(layers: &[Layer], least: usize) -> Vec<Range<usize>> {
    let mut bounds = vec![layers.len()];
    let mut held = 0;
    for (i, layer) in layers.iter().enumerate().rev() {
        held += layer.len();
        if held >= least && i > 0 {
            bounds.push(i);
            held = 0;
        }
    }
    bounds.push(0);
    bounds.windows(2).rev().map(|pair| pair[1]..pair[0]).collect()
}

fn blocks(layout: &Layout, length: usize) -> Vec<Cut> {
    let one = |start: usize| {
        let values = start..(start + length).min(layout.len());
        let inside = |layer: &&Layer| layer.range.start < values.end && layer.range.end > values.start;
        let piece = |layer: &Layer| {
            let range = layer.range.start.max(values.start)..layer.range.end.min(values.end);
            let shape = if range == layer.range { layer.shape.clone() } else { vec![range.len()] };
            Layer { name: layer.name.clone(), shape, range }
        };
        Cut { layers: layout.layers().iter().filter(inside).map(piece).collect(), values }
    };
    (0..layout.len()).step_by(length).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sizes: &[usize]) -> Layout {
        Layout::new(sizes.iter().enumerate().map(|(i, &n)| (format!("layer{i}"), vec![n])))
    }

    fn lengths(sizes: &[usize], granularity: Granularity) -> Vec<usize> {
        cut(&layout(sizes), granularity).iter().map(|part| part.values.len()).collect()
    }

    #[test]
    fn parts_cover_all_values_once() {
        for sizes in [&[784 * 200, 200, 200 * 200, 200, 2000, 10][..], &[5], &[1, 1, 1], &[0, 3, 0], &[]] {
            let mut all = vec![Granularity::Model, Granularity::Layer];
            for n in 1..8 {
                all.extend([Granularity::Groups(n), Granularity::Size(10 * n), Granularity::Blocks(1000 * n)]);
            }
            for granularity in all {
                let parts = cut(&layout(sizes), granularity);
                let mut at = 0;
                for part in &parts {
                    assert_eq!(part.values.start, at, "{granularity:?} {sizes:?}");
                    at = part.values.end;
                    let inside: usize = part.layers.iter().map(Layer::len).sum();
                    assert_eq!(inside, part.values.len(), "{granularity:?} {sizes:?}");
                }
                assert_eq!(at, sizes.iter().sum::<usize>());
            }
        }
    }

    #[test]
    fn groups_are_as_equal_as_layers_allow() {
        assert_eq!(lengths(&[10, 10, 10, 10], Granularity::Groups(2)), [20, 20]);
        assert_eq!(lengths(&[100, 1, 1, 1], Granularity::Groups(2)), [100, 3]);
        assert_eq!(lengths(&[1, 1, 1, 100], Granularity::Groups(3)).len(), 3);
        assert_eq!(lengths(&[7, 7], Granularity::Groups(1)), [14]);
    }

    #[test]
    fn sizes_are_filled_from_the_end_and_blocks_cut_through_layers() {
        assert_eq!(lengths(&[4, 4, 4, 4, 4], Granularity::Size(8)), [4, 8, 8]);
        assert_eq!(lengths(&[100, 1, 1], Granularity::Size(8)), [102]);
        let parts = cut(&layout(&[5, 5]), Granularity::Blocks(4));
        assert_eq!(parts.iter().map(|part| part.values.clone()).collect::<Vec<_>>(), [0..4, 4..8, 8..10]);
        assert_eq!(parts[1].layers[0].range, 4..5);
        assert_eq!(parts[1].layers[1].range, 5..8);
    }
}
