//! `fedbits check`

use std::fmt::Write;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};

use super::{DONE, Scenarios, print, refuse};
use crate::{
    run::{DataCache, Plan, Sampling},
    scenario::Document,
    sweep::{SECTION, Sweep, is_axis},
    units::{Bits, Bytes, thousands},
};

/// Check scenarios and say what a run will do, without running it
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    scenarios: Scenarios,
}

pub(super) fn check(arguments: &Arguments) -> u8 {
    let mut cache = DataCache::default();
    let (files, overrides) = match arguments.scenarios.split() {
        Ok(split) => split,
        Err(failure) => return refuse([failure.refusal]),
    };
    if let [file] = files.as_slice()
        && let Ok(document) = Document::load(file, &[])
        && (document.get(SECTION).is_some() || overrides.iter().any(|text| is_axis(text)))
    {
        return check_sweep(document, &overrides, &mut cache);
    }
    let documents = match arguments.scenarios.load(&[]) {
        Ok(documents) => documents,
        Err(refusals) => return refuse(refusals),
    };
    let (mut refusals, mut text) = (Vec::new(), String::new());
    for document in &documents {
        match Plan::new(document, &mut cache) {
            Ok(plan) => text += &describe(&plan),
            Err(refusal) => refusals.push(refusal),
        }
    }
    print(&text);
    if refusals.is_empty() { DONE } else { refuse(refusals) }
}

/// Checks every cell of a sweep.
fn check_sweep(document: Document, overrides: &[String], cache: &mut DataCache) -> u8 {
    let sweep = match Sweep::new(document, overrides) {
        Ok(sweep) => sweep,
        Err(refusal) => return refuse([refusal]),
    };
    let cells = sweep.cells(cache);
    print(&format!(
        "{}: {} cells can run, {} cannot; `fedbits sweep --dry-run` says what they cost\n",
        sweep.shape(),
        cells.cells.len(),
        cells.invalid.len()
    ));
    match cells.reasons() {
        reasons if reasons.is_empty() => DONE,
        reasons => refuse(reasons.into_iter().map(|(_, refusal)| refusal.clone())),
    }
}

fn describe(plan: &Plan) -> String {
    let mut text = String::new();
    let shares = &plan.shards.partition.shares;
    let sizes: Vec<usize> = plan.holders.iter().map(|&client| shares[client as usize].samples.len()).collect();
    let drawn = plan.participation.count(plan.holders.len()) as u64;
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key:<18}{value}");
    };
    line("scenario", plan.scenario.clone());
    line("run", plan.run.clone());
    let [channels, height, width] = plan.shards.pixels.shape();
    let (train, test) = (sizes.iter().sum::<usize>() as u64, plan.shards.dataset.test.len() as u64);
    let name = &plan.shards.dataset.name;
    line(
        "data",
        match &plan.shards.dataset.table {
            Some(_) => format!("{name}: {} rows of {width} features", thousands(train)),
            None => format!(
                "{name}: {} training and {} test images of {channels}x{height}x{width}",
                thousands(train),
                thousands(test)
            ),
        },
    );
    if let Some(problem) = &plan.problem {
        let (mu, smoothness) = problem.convexity_and_smoothness();
        let (condition, step) = (smoothness / mu, 1.0 / smoothness);
        line(
            "problem",
            format!(
                "smoothness L = {smoothness:.6}, strong convexity {mu:.6}, condition {condition:.1}, 1/L = {step:.6}"
            ),
        );
    }
    let (least, most) = (sizes.iter().min().unwrap_or(&0), sizes.iter().max().unwrap_or(&0));
    line(
        "clients",
        format!("{} with {least} to {most} samples, {} without", plan.holders.len(), shares.len() - sizes.len()),
    );
    let average = if plan.participation.sampling == Sampling::Bernoulli { " on average" } else { "" };
    line("rounds", format!("{} with {drawn} clients each{average}", plan.general.rounds));
    let names = ["uplink", "downlink"];
    let links = [&plan.setup.uplink, &plan.setup.downlink];
    let (bits, vary) = (plan.message_bits(), plan.bits_vary());
    for i in 0..2 {
        let about = if vary[i] { "about " } else { "" };
        line(
            names[i],
            format!(
                "{about}{} a message in {} part{}, {about}{} a round, {about}{} in all; {}",
                Bits(bits[i]),
                links[i].codec.parts().len(),
                if links[i].codec.parts().len() == 1 { "" } else { "s" },
                Bits(bits[i] * drawn),
                Bits(bits[i] * drawn * u64::from(plan.general.rounds)),
                links[i].codec.class()
            ),
        );
    }
    for i in 0..2 {
        if let Some(kept) = links[i].codec.kept() {
            let parts: Vec<String> =
                kept.iter().map(|(k, n)| format!("{} of {}", thousands(*k as u64), thousands(*n as u64))).collect();
            line("", format!("{} keeps {}", names[i], parts.join(", ")));
        }
    }
    line("memory", memory(plan, drawn));
    for note in &plan.notes {
        line("note", note.clone());
    }
    let layout = &plan.setup.layout;
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["layer", "shape", "parameters"]);
    for layer in layout.layers() {
        let shape = layer.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
        table.add_row([layer.name.clone(), shape, thousands(layer.len() as u64)]);
    }
    table.add_row(["in all".to_owned(), String::new(), thousands(layout.len() as u64)]);
    if let Some(column) = table.column_mut(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let _ = writeln!(text, "\n{table}\n");
    text
}

/// What a run keeps in memory: data, models at work, and what clients remember at most.
fn memory(plan: &Plan, drawn: u64) -> String {
    let dataset = &plan.shards.dataset;
    let table = dataset.table.as_ref().map_or(0, |table| 8 * (table.features.len() + table.targets.len()));
    let data = (dataset.train.images.len() + dataset.test.images.len() + table) as u64;
    let model = 4 * plan.setup.layout.len() as u64;
    let remembered = if plan.setup.uplink.rule.remembers() { model * plan.holders.len() as u64 } else { 0 };
    format!(
        "{} of data, {} for each client at work ({drawn} a round), up to {} that clients remember",
        Bytes(data),
        Bytes(4 * model),
        Bytes(remembered)
    )
}
