//! Named, shaped layers of a flat vector: the only thing that operators, links and methods know about a model.

use std::ops::Range;

/// One tensor of a model inside the flat vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Path of the parameter in the model, such as `conv1.weight`.
    pub name: String,
    /// Shape of the tensor, row-major.
    pub shape: Vec<usize>,
    /// Where its values lie in the flat vector.
    pub range: Range<usize>,
}

impl Layer {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the layer holds no value at all.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
}

/// The layers of a flat vector, in order and without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    layers: Vec<Layer>,
}

impl Layout {
    /// A layout from (name, shape) pairs, laid out one after the other.
    pub fn new(tensors: impl IntoIterator<Item = (String, Vec<usize>)>) -> Self {
        let mut layout = Self::default();
        for (name, shape) in tensors {
            let start = layout.len();
            let range = start..start + shape.iter().product::<usize>();
            layout.layers.push(Layer { name, shape, range });
        }
        layout
    }

    /// One nameless-in-spirit layer called `vector` of `n` values: problems that are not networks.
    pub fn flat(n: usize) -> Self {
        Self::new([("vector".to_owned(), vec![n])])
    }

    /// The layers in order.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Number of values in the whole vector.
    pub fn len(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.range.end)
    }

    /// Whether the vector holds no value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name of the layer that holds value `index`, for messages; `?` past the end.
    pub fn name_at(&self, index: usize) -> &str {
        self.layers.iter().find(|layer| layer.range.contains(&index)).map_or("?", |layer| &layer.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_follow_each_other_without_gaps() {
        let layout = Layout::new([("a".into(), vec![2, 3]), ("b".into(), vec![4])]);
        assert_eq!(layout.len(), 10);
        assert_eq!(layout.layers()[1].range, 6..10);
        assert_eq!(layout.name_at(5), "a");
        assert_eq!(layout.name_at(6), "b");
        assert_eq!(layout.name_at(10), "?");
        assert_eq!(Layout::default().len(), 0);
    }
}
