//! `fedbits explain`

use clap::Args;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

use super::{
    DONE, Failure, print, refuse,
    tables::{Listed, listings},
};
use crate::{catalogue::nearest, run::slots};

/// Explain one operator, coder, link, method, model, partitioner or data set, with its settings
#[derive(Args)]
pub struct Arguments {
    /// Its name in a scenario, such as `top-k`.
    name: String,
}

pub(super) fn explain(arguments: &Arguments) -> u8 {
    let listings = listings();
    let found: Vec<_> = listings
        .iter()
        .flat_map(|listing| listing.parts.iter().map(move |part| (listing.kind, part)))
        .filter(|(_, part)| part.name == arguments.name)
        .collect();
    if found.is_empty() {
        let names = listings.iter().flat_map(|listing| listing.parts.iter().map(|part| part.name));
        let near = nearest(&arguments.name, names).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return refuse([Failure::input(format!("nothing is called `{}`{near}", arguments.name)).refusal]);
    }
    let text: Vec<String> = found.into_iter().map(|(kind, part)| describe(kind, part)).collect();
    print(&text.join("\n"));
    DONE
}

fn describe(kind: &str, part: &Listed) -> String {
    let mut text = format!("{} ({})\n\n{}\n", part.name, kind.strip_suffix('s').unwrap_or(kind), part.doc);
    let mut settings = part.settings();
    let slots = slots();
    let slot = slots.iter().find(|slot| slot.listing == kind);
    // What every part of the section can be given, such as the coder of an operator.
    if let Some(slot) = slot {
        let common =
            Listed { name: "", summary: String::new(), doc: String::new(), example: "", schema: slot.common.clone() };
        settings.extend(common.settings());
    }
    if !settings.is_empty() {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["setting", "allowed", "default", "meaning"]);
        table.add_rows(settings);
        // Keys are for copying: they are never broken.
        if let Some(column) = table.column_mut(0) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        text += &format!("\n# Settings\n{table}\n");
    }
    if let Some(slot) = slot {
        text += &format!(
            "\n# In a scenario\n[{}]\n{} = \"{}\"\n{}\n",
            slot.section, slot.selector, part.name, part.example
        );
    }
    format!("{}\n", text.trim_end())
}
