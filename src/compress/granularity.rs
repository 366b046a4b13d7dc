//! How a flat vector is cut into the parts that are compressed one by one.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layout::Layout;

/// What one compressed part is: each part has its own norm, its own count of kept values and its own index width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    /// The whole vector at once.
    #[default]
    Model,
    /// Every tensor by itself.
    Layer,
    /// Runs of neighbouring tensors, as many as `groups` says, of sizes as equal as whole tensors allow.
    Groups,
}

/// The parts of a vector, in order and without gaps: ranges of layer indices.
pub fn cut(layout: &Layout, granularity: Granularity, groups: usize) -> Vec<Range<usize>> {
    let layers = layout.layers();
    match granularity {
        _ if layers.is_empty() => Vec::new(),
        Granularity::Model => std::iter::once(0..layers.len()).collect(),
        Granularity::Layer => (0..layers.len()).map(|i| i..i + 1).collect(),
        Granularity::Groups => {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sizes: &[usize]) -> Layout {
        Layout::new(sizes.iter().enumerate().map(|(i, &n)| (format!("layer{i}"), vec![n])))
    }

    #[test]
    fn parts_cover_all_layers_once() {
        for sizes in [&[784 * 200, 200, 200 * 200, 200, 2000, 10][..], &[5], &[1, 1, 1], &[0, 3, 0]] {
            for groups in 1..8 {
                for granularity in [Granularity::Model, Granularity::Layer, Granularity::Groups] {
                    let parts = cut(&layout(sizes), granularity, groups);
                    let flat: Vec<usize> = parts.iter().cloned().flatten().collect();
                    assert_eq!(flat, (0..sizes.len()).collect::<Vec<_>>(), "{granularity:?} {groups} {sizes:?}");
                    assert!(parts.iter().all(|part| !part.is_empty()));
                }
            }
        }
    }

    #[test]
    fn groups_are_as_equal_as_layers_allow() {
        assert_eq!(cut(&layout(&[10, 10, 10, 10]), Granularity::Groups, 2), [0..2, 2..4]);
        assert_eq!(cut(&layout(&[100, 1, 1, 1]), Granularity::Groups, 2), [0..1, 1..4]);
        assert_eq!(cut(&layout(&[1, 1, 1, 100]), Granularity::Groups, 3).len(), 3);
        assert_eq!(cut(&layout(&[7, 7]), Granularity::Groups, 1).len(), 1);
    }
}
