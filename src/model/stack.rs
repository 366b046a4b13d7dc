//! The accelerated engine: plain stacks of linear layers, convolutions, ReLU and max-pooling on one flat parameter vector.
//!
//! The burn module stays the definition of every model; a stack says the same thing again, without a graph and without a copy of
//! the parameters: gradients are written straight into the flat vector, activations into buffers that are kept. A test holds both to
//! the same gradients.

use ndarray::{ArrayView2, ArrayViewMut2, linalg::general_mat_mul};

use super::{Batch, Evaluation, Network, count, image_columns::Window};
use crate::layout::Layout;

/// One step of a stack. Parameters follow each other in the order of the steps, weight before bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// `y = x W + b` with `W` of shape `[inputs, outputs]`.
    Linear {
        /// Values that come in.
        inputs: usize,
        /// Values that go out.
        outputs: usize,
    },
    /// A convolution of stride 1 with `W` of shape `[channels out, channels in, height, width]`, and a bias.
    Convolution {
        /// Where the filter stands.
        window: Window,
        /// Channels that go out.
        filters: usize,
    },
    /// `max(x, 0)`.
    Relu,
    /// The largest value of each window, channel by channel.
    MaxPool(Window),
}

impl Step {
    /// Number of its parameters.
    fn parameters(self) -> usize {
        match self {
            Self::Linear { inputs, outputs } => inputs * outputs + outputs,
            Self::Convolution { window, filters } => filters * window.rows() + filters,
            Self::Relu | Self::MaxPool(_) => 0,
        }
    }

    /// Values of one image after the step, where `before` went in.
    fn outputs(self, before: usize) -> usize {
        match self {
            Self::Linear { outputs, .. } => outputs,
            Self::Convolution { window, filters } => filters * window.columns(),
            Self::Relu => before,
            Self::MaxPool(window) => window.channels * window.columns(),
        }
    }
}

/// Writes a stack down step by step and keeps track of the shape of an image on its way.
pub(super) struct Steps {
    /// Channels, height, width.
    shape: [usize; 3],
    steps: Vec<Step>,
}

impl Steps {
    /// Nothing yet, for images of `shape` (channels, height, width).
    pub(super) fn of(shape: [usize; 3]) -> Self {
        Self { shape, steps: Vec::new() }
    }

    /// A convolution of stride 1.
    pub(super) fn convolution(mut self, filters: usize, side: usize, padding: usize) -> Self {
        let [channels, height, width] = self.shape;
        let window = Window { channels, height, width, side, stride: 1, padding };
        let [height, width] = window.positions();
        self.shape = [filters, height, width];
        self.then(Step::Convolution { window, filters })
    }

    /// Max-pooling.
    pub(super) fn max_pool(mut self, side: usize, stride: usize, padding: usize) -> Self {
        let [channels, height, width] = self.shape;
        let window = Window { channels, height, width, side, stride, padding };
        let [height, width] = window.positions();
        self.shape = [channels, height, width];
        self.then(Step::MaxPool(window))
    }

    /// A linear layer on all values.
    pub(super) fn linear(mut self, outputs: usize) -> Self {
        let inputs = self.shape.iter().product();
        self.shape = [outputs, 1, 1];
        self.then(Step::Linear { inputs, outputs })
    }

    /// ReLU.
    pub(super) fn relu(self) -> Self {
        self.then(Step::Relu)
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The steps.
    pub(super) fn done(self) -> Vec<Step> {
        self.steps
    }
}

/// A stack on one thread.
pub(super) struct Stack {
    layout: Layout,
    classes: usize,
    steps: Vec<Step>,
    /// Values of one image before each step and after the last.
    widths: Vec<usize>,
    /// Activations before each step and after the last, of all images of the batch.
    values: Vec<Vec<f32>>,
    /// Where each pooled maximum came from.
    origins: Vec<Vec<u32>>,
    /// Gradients of the values before and after the step at hand.
    slopes: [Vec<f32>; 2],
    columns: Vec<f32>,
    column_slopes: Vec<f32>,
}

/// Values of activations that one piece of an evaluation may take.
const PIECE: usize = 1 << 21;

fn view(rows: usize, columns: usize, values: &[f32]) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((rows, columns), values).expect("buffers have the size of their matrices")
}

fn view_mut(rows: usize, columns: usize, values: &mut [f32]) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((rows, columns), values).expect("buffers have the size of their matrices")
}

impl Stack {
    /// A stack for images of `pixels` values whose parameters have the layout of the burn module.
    pub(super) fn new(layout: Layout, pixels: usize, classes: usize, steps: Vec<Step>) -> Self {
        let mut widths = vec![pixels];
        for step in &steps {
            widths.push(step.outputs(widths[widths.len() - 1]));
        }
        let parameters: usize = steps.iter().map(|step| step.parameters()).sum();
        assert_eq!(parameters, layout.len(), "a stack has the parameters of its module");
        assert_eq!(widths.last(), Some(&classes), "a stack ends in the classes");
        let (values, origins) = (vec![Vec::new(); steps.len() + 1], vec![Vec::new(); steps.len()]);
        let (slopes, columns, column_slopes) = Default::default();
        Self { layout, classes, steps, widths, values, origins, slopes, columns, column_slopes }
    }

    /// Computes all activations for `n` images; the first ones are in `values[0]`.
    fn forward(&mut self, x: &[f32], n: usize) {
        let mut at = 0;
        for (i, &step) in self.steps.iter().enumerate() {
            let parameters = &x[at..at + step.parameters()];
            at += step.parameters();
            let (before, after) = self.values.split_at_mut(i + 1);
            let (before, after) = (&before[i], &mut after[0]);
            after.resize(n * self.widths[i + 1], 0.0);
            match step {
                Step::Linear { inputs, outputs } => {
                    let (weight, bias) = parameters.split_at(inputs * outputs);
                    after.chunks_exact_mut(outputs).for_each(|row| row.copy_from_slice(bias));
                    let mut after = view_mut(n, outputs, after);
                    general_mat_mul(1.0, &view(n, inputs, before), &view(inputs, outputs, weight), 1.0, &mut after);
                }
                Step::Convolution { window, filters } => {
                    let (weight, bias) = parameters.split_at(filters * window.rows());
                    let weight = view(filters, window.rows(), weight);
                    let images = before.chunks_exact(self.widths[i]).zip(after.chunks_exact_mut(self.widths[i + 1]));
                    for (image, after) in images {
                        window.to_columns(image, &mut self.columns);
                        let positions = window.columns();
                        after.chunks_exact_mut(positions).zip(bias).for_each(|(channel, &bias)| channel.fill(bias));
                        let columns = view(window.rows(), positions, &self.columns);
                        general_mat_mul(1.0, &weight, &columns, 1.0, &mut view_mut(filters, positions, after));
                    }
                }
                // `max` would turn NaN into zero and hide it.
                Step::Relu => after.iter_mut().zip(before).for_each(|(y, &x)| *y = if x < 0.0 { 0.0 } else { x }),
                Step::MaxPool(window) => {
                    let origins = &mut self.origins[i];
                    origins.resize(after.len(), 0);
                    let images = before.chunks_exact(self.widths[i]).zip(after.chunks_exact_mut(self.widths[i + 1]));
                    for ((image, after), origins) in images.zip(origins.chunks_exact_mut(self.widths[i + 1])) {
                        window.maxima(image, after, origins);
                    }
                }
            }
        }
    }

    /// Turns the slopes of the outputs, in `slopes[0]`, into the gradient.
    fn backward(&mut self, x: &[f32], n: usize, gradient: &mut [f32]) {
        let mut end = x.len();
        for (i, &step) in self.steps.iter().enumerate().rev() {
            let start = end - step.parameters();
            let (parameters, gradient) = (&x[start..end], &mut gradient[start..end]);
            end = start;
            let [after, before] = &mut self.slopes;
            before.resize(n * self.widths[i], 0.0);
            let values = &self.values[i];
            // Nobody asks for the slope of the pixels.
            let wanted = i > 0;
            match step {
                Step::Linear { inputs, outputs } => {
                    let (by_weight, by_bias) = gradient.split_at_mut(inputs * outputs);
                    let slopes = view(n, outputs, after);
                    let mut by_weight = view_mut(inputs, outputs, by_weight);
                    general_mat_mul(1.0, &view(n, inputs, values).t(), &slopes, 0.0, &mut by_weight);
                    by_bias.fill(0.0);
                    for row in after.chunks_exact(outputs) {
                        by_bias.iter_mut().zip(row).for_each(|(sum, slope)| *sum += slope);
                    }
                    if wanted {
                        let weight = view(inputs, outputs, &parameters[..inputs * outputs]);
                        general_mat_mul(1.0, &slopes, &weight.t(), 0.0, &mut view_mut(n, inputs, before));
                    }
                }
                Step::Convolution { window, filters } => {
                    gradient.fill(0.0);
                    let (by_weight, by_bias) = gradient.split_at_mut(filters * window.rows());
                    let weight = view(filters, window.rows(), &parameters[..filters * window.rows()]);
                    let (rows, positions) = (window.rows(), window.columns());
                    let images = values.chunks_exact(self.widths[i]).zip(after.chunks_exact(self.widths[i + 1]));
                    for ((image, slopes), before) in images.zip(before.chunks_exact_mut(self.widths[i])) {
                        for (sum, channel) in by_bias.iter_mut().zip(slopes.chunks_exact(positions)) {
                            *sum += channel.iter().sum::<f32>();
                        }
                        window.to_columns(image, &mut self.columns);
                        let slopes = view(filters, positions, slopes);
                        let columns = view(rows, positions, &self.columns);
                        general_mat_mul(1.0, &slopes, &columns.t(), 1.0, &mut view_mut(filters, rows, by_weight));
                        if wanted {
                            self.column_slopes.resize(rows * positions, 0.0);
                            let mut by_column = view_mut(rows, positions, &mut self.column_slopes);
                            general_mat_mul(1.0, &weight.t(), &slopes, 0.0, &mut by_column);
                            window.add_columns(&self.column_slopes, before);
                        }
                    }
                }
                Step::Relu => {
                    for ((before, after), &value) in before.iter_mut().zip(after.iter()).zip(values) {
                        *before = if value > 0.0 { *after } else { 0.0 };
                    }
                }
                Step::MaxPool(_) => {
                    before.fill(0.0);
                    let images = after.chunks_exact(self.widths[i + 1]).zip(before.chunks_exact_mut(self.widths[i]));
                    for ((after, before), origins) in images.zip(self.origins[i].chunks_exact(self.widths[i + 1])) {
                        after.iter().zip(origins).for_each(|(slope, &origin)| before[origin as usize] += slope);
                    }
                }
            }
            self.slopes.swap(0, 1);
        }
    }
}

impl Network for Stack {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn gradient(&mut self, x: &[f32], batch: &Batch, out: &mut [f32]) -> f64 {
        let n = batch.labels.len();
        self.values[0].clear();
        self.values[0].extend_from_slice(&batch.images);
        self.forward(x, n);
        let logits = self.values.last().expect("a stack has outputs");
        let slopes = &mut self.slopes[0];
        slopes.resize(n * self.classes, 0.0);
        let mut loss = 0.0;
        let rows = logits.chunks_exact(self.classes).zip(slopes.chunks_exact_mut(self.classes));
        for ((logits, slopes), &label) in rows.zip(&batch.labels) {
            // Softmax against the largest logit: no size of finite logits overflows.
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let label = usize::from(label);
            slopes.iter_mut().zip(logits).for_each(|(slope, &logit)| *slope = (logit - largest).exp());
            let sum: f32 = slopes.iter().sum();
            loss += f64::from(sum.ln()) + f64::from(largest) - f64::from(logits[label]);
            slopes.iter_mut().for_each(|slope| *slope /= sum);
            slopes[label] -= 1.0;
            slopes.iter_mut().for_each(|slope| *slope /= n as f32);
        }
        self.backward(x, n, out);
        loss / n as f64
    }

    fn evaluate(&mut self, x: &[f32], batch: &Batch) -> Evaluation {
        let per_image: usize = self.widths.iter().sum();
        let piece = (PIECE / per_image).max(1);
        let mut evaluation = Evaluation::default();
        for (images, labels) in batch.images.chunks(piece * self.widths[0]).zip(batch.labels.chunks(piece)) {
            self.values[0].clear();
            self.values[0].extend_from_slice(images);
            self.forward(x, labels.len());
            evaluation.add(count(self.values.last().expect("a stack has outputs"), labels, self.classes));
        }
        evaluation
    }
}
