use super::*;
use crate::rng::Purpose;

/// A data set of one training image of the given shape whose bytes are 1, 2, 3, ..; the test image has bytes 101, 102,
/// ..
fn dataset(shape: [usize; 3]) -> Dataset {
    let size: usize = shape.iter().product();
    let split = |first: usize| Split { images: (first..first + size).map(|i| i as u8).collect(), labels: vec![0] };
    Dataset {
        name: "tiny".to_owned(),
        shape,
        classes: 1,
        train: split(1),
        test: split(101),
        table: None,
        mean: (0..shape[0]).map(|channel| 0.1 * (channel + 1) as f32).collect(),
        deviation: (0..shape[0]).map(|channel| 0.2 * (channel + 1) as f32).collect(),
        digest: String::new(),
        warnings: Vec::new(),
    }
}

fn unit_options() -> Options {
    Options { normalisation: Normalisation::Unit, ..Options::default() }
}

fn noise() -> Address {
    Address::new(0, Purpose::Noise).node(3)
}

fn augment() -> Address {
    Address::new(0, Purpose::Augmentation)
}

fn gather_with(
    dataset: &Dataset,
    options: &Options,
    indices: &[u32],
    transform: Transform,
    augment: Option<Address>,
) -> Vec<f32> {
    let mut out = vec![9.0];
    Pixels::new(dataset, options).unwrap().gather(&dataset.train, indices, &transform, noise(), augment, &mut out);
    out
}

/// The only training image under the options, with values on the scale of bytes.
fn bytes_of(dataset: &Dataset, options: &Options, transform: Transform) -> Vec<f32> {
    let out = gather_with(dataset, options, &[0], transform, None);
    out.iter().map(|value| (value * 255.0).round()).collect()
}

#[test]
fn every_planted_byte_has_the_documented_value_at_its_place() {
    let dataset = dataset([3, 2, 2]);
    let cases =
        [(Normalisation::Unit, [0.0; 3], [1.0; 3]), (Normalisation::Standard, [0.1, 0.2, 0.3], [0.2, 0.4, 0.6])];
    for (normalisation, mean, deviation) in cases {
        let pixels = Pixels::new(&dataset, &Options { normalisation, ..Options::default() }).unwrap();
        assert_eq!(pixels.shape(), [3, 2, 2]);
        for (split, first) in [(&dataset.train, 1.0), (&dataset.test, 101.0)] {
            let mut out = Vec::new();
            pixels.gather(split, &[0, 0], &Transform::default(), noise(), None, &mut out);
            assert_eq!(out.len(), 24);
            for (at, value) in out.iter().enumerate() {
                let (channel, byte) = (at % 12 / 4, first + (at % 12) as f32);
                assert!((value - (byte / 255.0 - mean[channel]) / deviation[channel]).abs() < 1e-6, "{at}");
            }
        }
    }
    // Exact values of the ends of the scale.
    let ends = Dataset { train: Split { images: vec![0, 255], labels: vec![0] }, ..self::dataset([1, 1, 2]) };
    assert_eq!(gather_with(&ends, &unit_options(), &[0], Transform::default(), None), [0.0, 1.0]);
    assert_eq!(gather_with(&ends, &Options::default(), &[0], Transform::default(), None), [-0.5, 4.5]);
}

#[test]
fn indices_choose_the_images_in_their_order() {
    let mut dataset = dataset([1, 1, 2]);
    dataset.train = Split { images: vec![0, 51, 102, 153, 204, 255], labels: vec![0; 3] };
    let out = gather_with(&dataset, &unit_options(), &[2, 0], Transform::default(), None);
    assert_eq!(out, [0.8, 1.0, 0.0, 0.2]);
}

#[test]
fn quarter_turns_are_counter_clockwise_and_exact() {
    let dataset = dataset([1, 3, 3]);
    let turned = |quarter_turns| bytes_of(&dataset, &unit_options(), Transform { quarter_turns, noise_deviation: 0.0 });
    // 1 2 3
    // 4 5 6
    // 7 8 9
    assert_eq!(turned(1), [3.0, 6.0, 9.0, 2.0, 5.0, 8.0, 1.0, 4.0, 7.0]);
    assert_eq!(turned(2), [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    assert_eq!(turned(3), [7.0, 4.0, 1.0, 8.0, 5.0, 2.0, 9.0, 6.0, 3.0]);
    assert_eq!(turned(4), turned(0));
    let wide = self::dataset([1, 1, 3]);
    let half = Transform { quarter_turns: 2, noise_deviation: 0.0 };
    assert_eq!(bytes_of(&wide, &unit_options(), half), [3.0, 2.0, 1.0]);
}

#[test]
fn a_crop_is_central_without_augmentation_and_padding_is_byte_zero() {
    let dataset = dataset([1, 4, 4]);
    let options = |crop, padding| Options { crop: Some(crop), padding: Some(padding), ..unit_options() };
    let shown = |crop, padding| bytes_of(&dataset, &options(crop, padding), Transform::default());
    assert_eq!(shown(2, 0), [6.0, 7.0, 10.0, 11.0]);
    assert_eq!(shown(3, 0), [1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 9.0, 10.0, 11.0]);
    let padded = shown(6, 1);
    assert_eq!(padded[..12], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0]);
    assert_eq!(padded[30..], [0.0; 6]);

    // Padding is a pixel of byte 0 also after normalisation.
    let standard = Options { normalisation: Normalisation::Standard, ..options(6, 1) };
    assert_eq!(gather_with(&dataset, &standard, &[0], Transform::default(), None)[0], -0.5);
    assert_eq!(Pixels::new(&dataset, &standard).unwrap().shape(), [1, 6, 6]);
    for crop in [0, 7] {
        let message = Pixels::new(&dataset, &options(crop, 1)).unwrap_err().to_string();
        assert!(message.starts_with(&format!("`crop` is {crop}, but must be in 1..=6")), "{message}");
    }
}

#[test]
fn augmentation_shows_every_window_and_flip_and_only_in_training() {
    let dataset = dataset([1, 3, 3]);
    let options = Options { augmentation: Augmentation::CropFlip, crop: Some(2), ..unit_options() };
    assert_eq!(bytes_of(&dataset, &options, Transform::default()), [1.0, 2.0, 4.0, 5.0]);

    let images = gather_with(&dataset, &options, &[0; 800], Transform::default(), Some(augment()));
    let mut counts = std::collections::BTreeMap::new();
    for image in images.chunks(4) {
        *counts.entry([0, 1, 2, 3].map(|at| (image[at] * 255.0).round() as u8)).or_insert(0) += 1;
    }
    // 4 positions, each flipped or not: 100 expected each, standard deviation 9.4; the seed is fixed.
    assert_eq!(counts.len(), 8);
    assert!(counts.values().all(|count| (65..135).contains(count)), "{counts:?}");
    for window in [[1, 2, 4, 5], [2, 1, 5, 4], [5, 6, 8, 9], [6, 5, 9, 8]] {
        assert!(counts.contains_key(&window), "{window:?}");
    }

    let without = Options { augmentation: Augmentation::None, ..options };
    let images = gather_with(&dataset, &without, &[0, 0], Transform::default(), Some(augment()));
    assert_eq!(images[..4], images[4..]);
}

#[test]
fn the_usual_augmentation_pads_by_four_and_keeps_the_size() {
    let dataset = dataset([3, 8, 8]);
    let options = Options { augmentation: Augmentation::CropFlip, ..unit_options() };
    let evaluated = gather_with(&dataset, &options, &[0], Transform::default(), None);
    assert_eq!(evaluated, gather_with(&dataset, &unit_options(), &[0], Transform::default(), None));

    let trained = gather_with(&dataset, &options, &[0, 0], Transform::default(), Some(augment()));
    assert_eq!(trained.len(), 2 * 192);
    assert_eq!(trained, gather_with(&dataset, &options, &[0, 0], Transform::default(), Some(augment())));
    assert_ne!(trained[..192], trained[192..]);
    // Literal values: which part of the first row of each image is seen is a promise.
    let row = |image: usize| -> Vec<u32> {
        trained[192 * image + 32..][..8].iter().map(|x| (x * 255.0).round() as u32).collect()
    };
    assert_eq!(row(0), [0, 64, 63, 62, 61, 60, 59, 58]);
    assert_eq!(row(1), [0, 0, 16, 15, 14, 13, 12, 11]);
}

#[test]
fn noise_belongs_to_the_sample_and_the_client_and_keeps_its_values() {
    let mut dataset = dataset([1, 2, 2]);
    dataset.train = Split { images: vec![100; 8], labels: vec![0; 2] };
    let pixels = Pixels::new(&dataset, &unit_options()).unwrap();
    let transform = Transform { quarter_turns: 0, noise_deviation: 0.5 };
    let draw = |indices: &[u32], client| {
        let mut out = Vec::new();
        pixels.gather(&dataset.train, indices, &transform, noise().node(client), None, &mut out);
        out
    };
    let both = draw(&[0, 1], 3);
    assert_eq!(draw(&[1, 0], 3), [&both[4..], &both[..4]].concat());
    assert_ne!(both[..4], both[4..]);
    assert_ne!(draw(&[0], 4), both[..4]);
    assert_eq!(both[..4], [0.4324091, 0.5170193, 0.53013474, 0.76805794]);
}

#[test]
fn noise_has_the_stated_deviation_before_normalisation() {
    let mut dataset = dataset([1, 100, 100]);
    dataset.train.images = vec![128; 10_000];
    let transform = Transform { quarter_turns: 1, noise_deviation: 0.1 };
    let out = gather_with(&dataset, &Options::default(), &[0], transform, None);
    let mean = out.iter().sum::<f32>() / 1e4;
    let deviation = (out.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 1e4).sqrt();
    // Deviation 0.2 of this data set turns 0.1 into 0.5; 10,000 values know it within 0.7 %, the mean within 0.005.
    assert!((deviation - 0.5).abs() < 0.02, "{deviation}");
    assert!((mean - (128.0 / 255.0 - 0.1) / 0.2).abs() < 0.02, "{mean}");
}

#[test]
fn constants_that_do_not_suit_the_channels_are_refused() {
    let mut dataset = dataset([3, 2, 2]);
    dataset.deviation[1] = 0.0;
    assert!(Pixels::new(&dataset, &Options::default()).is_err());
    dataset.deviation.pop();
    assert!(Pixels::new(&dataset, &Options::default()).is_err());
}
