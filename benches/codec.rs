//! Operators with their coders, encode and decode, on a vector of the size of the 2NN: values a second.

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fedbits::{
    catalogue, compress,
    compress::Granularity,
    layout::Layout,
    link::Codec,
    rng::{Address, Purpose, Streams},
    wire,
};
use rand_distr::{Distribution, StandardNormal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const N: usize = 199_210;

fn codecs(c: &mut Criterion) {
    let mut generator = Address::new(0, Purpose::Data).generator();
    let x: Vec<f32> = (0..N).map(|_| StandardNormal.sample(&mut generator)).collect();
    let mut group = c.benchmark_group("codec");
    group.throughput(Throughput::Elements(N as u64)).sample_size(20).measurement_time(Duration::from_secs(2));
    for (operator, settings, coder) in [
        ("identity", "", "fixed"),
        ("top-k", "ratio = 0.01", "fixed"),
        ("top-k", "ratio = 0.01", "enumerative"),
        ("rand-k", "ratio = 0.01", "fixed"),
        ("qsgd", "levels = 7\nnorm = \"linf\"\nbucket = 512", "fixed"),
        ("qsgd", "levels = 7\nnorm = \"linf\"\nbucket = 512", "adaptive"),
        ("qsgd", "levels = 7\nnorm = \"linf\"\nbucket = 512", "mixture"),
        ("terngrad", "", "fixed"),
        ("sign", "", "fixed"),
        ("natural", "", "fixed"),
        ("natural", "", "adaptive"),
    ] {
        let entry = catalogue::find(compress::CATALOGUE, operator).expect("the operator is listed");
        let built = (entry.build)(toml::from_str(settings).expect("TOML")).expect("settings are valid").part;
        let writer =
            catalogue::find(wire::CATALOGUE, coder).expect("the coder is listed").build_example().expect("valid").part;
        let codec = Codec::new(built, writer, Arc::new(Layout::flat(N)), Granularity::Model).expect("they fit");
        let streams = Streams::message(0, 1, 2, 3, 0);
        let mut out = vec![0.0; N];
        group.bench_function(format!("{operator}, {coder}"), |b| {
            b.iter(|| {
                let packet =
                    codec.encode(black_box(&x), None, streams, &mut Vec::new()).expect("the vector can be sent");
                codec.decode(&packet, None, streams, &mut out).expect("the packet can be read");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, codecs);
criterion_main!(benches);
