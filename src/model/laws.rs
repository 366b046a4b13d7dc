//! Laws that every model obeys, in one loop over the catalogue.

use rand::Rng;

use super::{Architecture, Batch, CATALOGUE, Engine, Evaluation, Network, start_vector};
use crate::{
    catalogue::Entry,
    rng::{Address, Purpose, unit_f64},
};

fn batch(shape: [usize; 3], n: usize, seed: u64) -> Batch {
    let mut generator = Address::new(seed, Purpose::Data).generator();
    let images =
        (0..n * shape.iter().product::<usize>()).map(|_| unit_f64(generator.next_u64()) as f32 - 0.5).collect();
    Batch { images, shape, labels: (0..n as u8).map(|i| i % 10).collect() }
}

/// The models of images.
fn networks() -> impl Iterator<Item = &'static Entry<dyn Architecture>> {
    let is_network = |entry: &&Entry<dyn Architecture>| entry.build_example().unwrap().part.regression().is_none();
    CATALOGUE.iter().filter(is_network)
}

/// The model of an entry for images it is meant for, on burn.
fn network(name: &str) -> (Box<dyn Network>, [usize; 3]) {
    network_on(name, Engine::Burn)
}

fn network_on(name: &str, engine: Engine) -> (Box<dyn Network>, [usize; 3]) {
    let entry = CATALOGUE.iter().find(|entry| entry.name == name).expect("the model is listed");
    let shape = match name {
        "cifar-small-cnn" | "resnet-20" => [3, 32, 32],
        "cifar-cnn" => [3, 24, 24],
        _ => [1, 28, 28],
    };
    let architecture = entry.build_example().expect("examples are valid").part;
    (super::network(&*architecture, shape, 10, engine).expect("the shape fits"), shape)
}

#[test]
fn parameters_are_counted_as_published() {
    let counts: Vec<(&str, usize)> =
        networks().map(|entry| (entry.name, network(entry.name).0.layout().len())).collect();
    let published = [
        ("softmax", 7_850),
        ("mlp", 199_210),
        ("mcmahan-cnn", 1_663_370),
        ("cifar-small-cnn", 62_006),
        ("cifar-cnn", 1_068_298),
        ("resnet-20", 269_722),
    ];
    assert_eq!(counts, published);
    let small = CATALOGUE.iter().find(|entry| entry.name == "cifar-small-cnn").unwrap().build_example().unwrap().part;
    assert_eq!(small.network([1, 28, 28], 10).unwrap().layout().len(), 44_426);
}

#[test]
fn layers_have_names_and_start_values_from_the_seed() {
    let (mlp, _) = network("mlp");
    let names: Vec<&str> = mlp.layout().layers().iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names[..3], ["layers.0.weight", "layers.0.bias", "layers.1.weight"]);
    let x = start_vector(mlp.layout(), 3);
    assert_eq!(x, start_vector(mlp.layout(), 3));
    assert_ne!(x, start_vector(mlp.layout(), 4));
    let bound = 1.0 / 28.0;
    assert!(x[..784 * 200].iter().all(|v| v.abs() < bound) && x[..784 * 200].iter().any(|v| v.abs() > 0.99 * bound));
    let (resnet, _) = network("resnet-20");
    let x = start_vector(resnet.layout(), 0);
    let gamma = resnet.layout().layers().iter().find(|layer| layer.name == "norm.gamma").expect("there is a gamma");
    assert!(x[gamma.range.clone()].iter().all(|&v| v == 1.0));
}

#[test]
fn gradients_are_the_slopes_of_the_loss() {
    let engines = [Engine::Burn, Engine::Auto];
    for (entry, engine) in networks().flat_map(|entry| engines.map(|engine| (entry, engine))) {
        let (mut network, shape) = network_on(entry.name, engine);
        let batch = batch(shape, 4, 1);
        let x = start_vector(network.layout(), 1);
        let mut gradient = vec![0.0; x.len()];
        let loss = network.gradient(&x, &batch, &mut gradient);
        let evaluation = network.evaluate(&x, &batch);
        assert!((evaluation.loss().unwrap() - loss).abs() < 1e-4, "{}: {loss} and {evaluation:?}", entry.name);
        // Along the gradient itself the slope is its squared norm: every parameter takes part in the check.
        let squared: f64 = gradient.iter().map(|&g| f64::from(g).powi(2)).sum();
        let step = 1e-3 / squared.sqrt();
        let mut loss_at = |sign: f64| {
            let moved: Vec<f32> =
                x.iter().zip(&gradient).map(|(&x, &g)| x + (sign * step * f64::from(g)) as f32).collect();
            network.evaluate(&moved, &batch).loss().unwrap()
        };
        let slope = (loss_at(1.0) - loss_at(-1.0)) / (2.0 * step);
        assert!((slope / squared - 1.0).abs() < 2e-2, "{}: slope {slope}, squared norm {squared}", entry.name);
    }
}

#[test]
fn results_do_not_depend_on_what_a_network_did_before() {
    for (name, engine) in
        ["mlp", "cifar-small-cnn"].into_iter().flat_map(|name| [Engine::Burn, Engine::Auto].map(|e| (name, e)))
    {
        let (mut used, shape) = network_on(name, engine);
        let x = start_vector(used.layout(), 2);
        let (mut first, mut second) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        used.gradient(&start_vector(used.layout(), 9), &batch(shape, 7, 3), &mut first);
        used.gradient(&x, &batch(shape, 5, 4), &mut first);
        network_on(name, engine).0.gradient(&x, &batch(shape, 5, 4), &mut second);
        assert_eq!(first, second);
    }
}

#[test]
fn the_loss_is_right_for_logits_of_any_finite_size() {
    for engine in [Engine::Burn, Engine::Auto] {
        check_large_logits(engine);
    }
}

fn check_large_logits(engine: Engine) {
    let (mut softmax, shape) = network_on("softmax", engine);
    let batch = Batch { images: vec![1.0; 784], shape, labels: vec![3] };
    let mut x = vec![0.0; 7850];
    let bias = 7840;
    (x[bias], x[bias + 3]) = (900.0, -900.0);
    let mut gradient = vec![0.0; x.len()];
    assert_eq!(softmax.gradient(&x, &batch, &mut gradient), 1800.0);
    assert_eq!((gradient[bias], gradient[bias + 3]), (1.0, -1.0));
    let evaluation = softmax.evaluate(&x, &batch);
    assert_eq!(evaluation, Evaluation { samples: 1, correct: 0, loss_sum: 1800.0 });
    assert_eq!(evaluation.accuracy(), Some(0.0));
    assert_eq!(Evaluation::default().loss(), None);
}

#[test]
fn images_that_do_not_fit_are_refused() {
    let refused = [
        ("mcmahan-cnn", [1, 30, 30]),
        ("cifar-small-cnn", [1, 8, 8]),
        ("cifar-cnn", [3, 30, 32]),
        ("resnet-20", [1, 2, 2]),
    ];
    for (name, shape) in refused {
        let entry = CATALOGUE.iter().find(|entry| entry.name == name).unwrap();
        assert!(entry.build_example().unwrap().part.network(shape, 10).is_err(), "{name}");
    }
}

#[test]
fn both_engines_walk_the_same_way() {
    for entry in networks() {
        for n in [1, 3, 10] {
            let ((mut burn, shape), (mut fast, _)) =
                (network_on(entry.name, Engine::Burn), network_on(entry.name, Engine::Auto));
            let start = start_vector(burn.layout(), 4);
            let mut ways = [start.clone(), start];
            for step in 0..10 {
                let batch = batch(shape, n, 50 + step);
                let losses: Vec<f64> = [&mut burn, &mut fast]
                    .into_iter()
                    .zip(&mut ways)
                    .map(|(network, x)| {
                        let mut gradient = vec![f32::NAN; x.len()];
                        let loss = network.gradient(x, &batch, &mut gradient);
                        x.iter_mut().zip(&gradient).for_each(|(x, g)| *x -= 0.02 * g);
                        loss
                    })
                    .collect();
                assert!((losses[0] - losses[1]).abs() < 1e-5, "{}: {losses:?}", entry.name);
            }
            let distance: f64 = crate::vector::distance_squared(&ways[0], &ways[1]).sqrt();
            let size = crate::vector::norm_squared(&ways[0]).sqrt();
            assert!(distance < 1e-5 * size, "{} with {n} images: {}", entry.name, distance / size);
            let batch = batch(shape, n, 99);
            let [a, b] = [burn.evaluate(&ways[0], &batch), fast.evaluate(&ways[0], &batch)];
            assert_eq!((a.samples, a.correct), (b.samples, b.correct), "{}", entry.name);
            assert!((a.loss_sum / b.loss_sum - 1.0).abs() < 1e-4, "{}", entry.name);
        }
    }
}
