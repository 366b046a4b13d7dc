//! `fedbits list`

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};

use super::{DONE, Failure, print, refuse, tables::listings};
use crate::catalogue::nearest;

/// List what a scenario can name: operators, coders, links, methods, models, partitioners, data
#[derive(Args)]
pub struct Arguments {
    /// What to list; everything if absent.
    kind: Option<String>,
}

pub(super) fn list(arguments: &Arguments) -> u8 {
    let listings = listings();
    let wanted = arguments.kind.as_deref();
    let kinds: Vec<&str> = listings.iter().map(|listing| listing.kind).collect();
    // `operator` and `operators` mean the same.
    let matches = |kind: &str| wanted.is_none_or(|wanted| wanted == kind || format!("{wanted}s") == kind);
    let chosen: Vec<_> = listings.iter().filter(|listing| matches(listing.kind)).collect();
    if chosen.is_empty() {
        let wanted = wanted.unwrap_or_default();
        let near =
            nearest(wanted, kinds.iter().copied()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return refuse([
            Failure::input(format!("there is no list of `{wanted}`, only of {}{near}", kinds.join(", "))).refusal
        ]);
    }
    let mut text = String::new();
    for listing in chosen {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        for part in &listing.parts {
            table.add_row([part.name, &part.summary]);
        }
        text += &format!("{}\n{table}\n\n", listing.kind);
    }
    print(&format!("{}\n`fedbits explain NAME` tells more.\n", text.trim_end()));
    DONE
}
