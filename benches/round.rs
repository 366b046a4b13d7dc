//! One round of the McMahan 2NN on MNIST: 10 clients of 600 samples, batch 10, with evaluation on 10,000 images; and the same with
//! compressed uplinks. Compare the figures of one invocation with each other or with another program in the same minute: shared
//! machines drift.

use std::{path::Path, sync::atomic::AtomicBool, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use fedbits::{
    run::{DataCache, Observer, Plan, RoundRecord, run},
    scenario::Document,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SCENARIO: &str = r#"
rounds = 1
[data]
name = "mnist"
[partition]
clients = 100
[model]
name = "mlp"
[method]
participation = 0.1
local_epochs = 1
batch_size = 10
learning_rate = 0.1
"#;

/// Observes nothing.
struct Quiet;

impl Observer for Quiet {
    fn round(&mut self, _record: &RoundRecord) -> Result<(), String> {
        Ok(())
    }
}

fn rounds(c: &mut Criterion) {
    std::env::set_current_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the project's folder is there");
    let mut cache = DataCache::default();
    let mut group = c.benchmark_group("round of the 2NN");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    for (name, uplink) in [
        ("identity", "{operator=\"identity\"}"),
        ("top-k 1 %", "{operator=\"top-k\",ratio=0.01}"),
        ("qsgd 4 bit", "{operator=\"qsgd\",levels=7,norm=\"linf\",bucket=512,coder=\"fixed\"}"),
        ("qsgd 4 bit, adaptive", "{operator=\"qsgd\",levels=7,norm=\"linf\",bucket=512,coder=\"adaptive\"}"),
    ] {
        let document =
            Document::parse("bench.toml", SCENARIO, &[format!("uplink={uplink}")]).expect("the syntax is right");
        let plan = Plan::new(&document, &mut cache).expect("the scenario can run");
        for threads in [1, 2] {
            group.bench_function(format!("{name}, {threads} threads"), |b| {
                b.iter(|| {
                    run(&plan, threads, None, &mut [&mut Quiet], &AtomicBool::new(false)).expect("the round runs")
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, rounds);
criterion_main!(benches);
