//! The bridge between a burn module and a flat vector.

use burn::{
    backend::Flex,
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Device, Gradients, Tensor, TensorData, activation::log_softmax},
};

use super::{Batch, Evaluation, Network, count};
use crate::layout::Layout;

/// A burn module that maps images to one output a class.
pub(super) trait Forward: Module {
    /// Outputs (logits) of shape `[images, classes]` for images of shape `[images, channels, height, width]`.
    fn forward(&self, images: Tensor<4>) -> Tensor<2>;
}

/// A module with its two devices: one that records operations for gradients, one that does not.
pub(super) struct Bridge<M> {
    layout: Layout,
    classes: usize,
    training: Option<M>,
    plain: Option<M>,
}

/// The CPU. Gradients are recorded only where a backward pass follows: a forward pass that is never followed by one would leave
/// its graph behind.
fn device() -> Device {
    Device::flex()
}

impl<M: Forward> Bridge<M> {
    /// Wraps the module that `build` makes on a device.
    pub(super) fn boxed(classes: usize, build: impl Fn(&Device) -> M) -> Box<dyn Network>
    where
        M: 'static,
    {
        let plain = build(&device());
        let mut visitor = LayoutVisitor::default();
        plain.visit(&mut visitor);
        let layout = Layout::new(visitor.tensors);
        Box::new(Self { layout, classes, training: Some(build(&device().autodiff())), plain: Some(plain) })
    }
}

impl<M: Forward> Network for Bridge<M> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn gradient(&mut self, x: &[f32], batch: &Batch, out: &mut [f32]) -> f64 {
        let device = device().autodiff();
        let model = load(&mut self.training, x, true);
        let logits = model.forward(images(batch, &device));
        let n = batch.labels.len();
        let target = one_hot(&batch.labels, self.classes, &device);
        let loss = (log_softmax(logits, 1) * target).sum().mul_scalar(-1.0 / n as f32);
        let mut visitor = GradientVisitor { gradients: loss.backward(), out, at: 0 };
        model.visit(&mut visitor);
        assert_eq!(visitor.at, x.len(), "a module has the parameters of its layout");
        f64::from(floats(loss.inner())[0])
    }

    fn evaluate(&mut self, x: &[f32], batch: &Batch) -> Evaluation {
        let device = device();
        let model = load(&mut self.plain, x, false);
        let logits = floats(model.forward(images(batch, &device)));
        count(&logits, &batch.labels, self.classes)
    }
}

/// Puts the values of `x` into the module and returns it.
fn load<'a, M: Forward>(slot: &'a mut Option<M>, x: &[f32], gradients: bool) -> &'a M {
    let model = slot.take().expect("a module is put back after every use");
    slot.insert(model.map(&mut Loader { x, at: 0, gradients }))
}

fn images(batch: &Batch, device: &Device) -> Tensor<4> {
    let [channels, height, width] = batch.shape;
    let shape = [batch.labels.len(), channels, height, width];
    Tensor::from_data(TensorData::new(batch.images.clone(), shape), device)
}

fn one_hot(labels: &[u8], classes: usize, device: &Device) -> Tensor<2> {
    let mut target = vec![0.0f32; labels.len() * classes];
    for (row, &label) in target.chunks_exact_mut(classes).zip(labels) {
        row[usize::from(label)] = 1.0;
    }
    Tensor::from_data(TensorData::new(target, [labels.len(), classes]), device)
}

/// The values of a tensor in row-major order.
fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("our tensors hold 32-bit floats")
}

#[derive(Default)]
struct LayoutVisitor {
    path: Vec<String>,
    tensors: Vec<(String, Vec<usize>)>,
}

impl ModuleVisitor for LayoutVisitor {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.tensors.push((self.path.join("."), param.lazy_shape().to_vec()));
    }
}

/// Copies values into the tensors that a module has: after a backward pass nothing else holds them, so nothing is allocated.
struct Loader<'a> {
    x: &'a [f32],
    at: usize,
    gradients: bool,
}

/// Why a tensor of ours can always be unwrapped.
const ON_CPU: &str = "our tensors live on the CPU";

impl ModuleMapper for Loader<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = param.consume();
        let mut primitive = tensor.inner().try_into_primitive::<Flex>().expect(ON_CPU);
        let storage = primitive.storage_mut::<f32>();
        let end = self.at + storage.len();
        storage.copy_from_slice(&self.x[self.at..end]);
        self.at = end;
        let tensor = Tensor::from_primitive::<Flex>(primitive);
        Param::from_mapped_value(id, if self.gradients { tensor.autodiff().require_grad() } else { tensor }, mapper)
    }
}

struct GradientVisitor<'a> {
    gradients: Gradients,
    out: &'a mut [f32],
    at: usize,
}

impl ModuleVisitor for GradientVisitor<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let n = param.lazy_shape().num_elements();
        let out = &mut self.out[self.at..self.at + n];
        self.at += n;
        match param.val().grad_remove(&mut self.gradients) {
            Some(gradient) => {
                let primitive = gradient.try_into_primitive::<Flex>().expect(ON_CPU).to_contiguous();
                // A contiguous view may begin inside a larger storage.
                let values = primitive.as_slice::<f32>().expect("a contiguous tensor is a slice");
                out.copy_from_slice(values);
            }
            // A parameter that the loss does not depend on.
            None => out.fill(0.0),
        }
    }
}
