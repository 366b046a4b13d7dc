//! The catalogues as tables: for the terminal and for the README.

use crate::{
    catalogue::Entry,
    compress, data, link, method, model, partition,
    scenario::schema::{allowed, properties},
    wire,
};

/// A catalogue, without the type of its parts.
pub(super) struct Listing {
    /// What the parts are, in the plural.
    pub kind: &'static str,
    /// The parts.
    pub parts: Vec<Listed>,
}

/// One part of a catalogue.
pub(super) struct Listed {
    pub name: &'static str,
    pub summary: String,
    pub doc: String,
    pub example: &'static str,
    pub schema: serde_json::Value,
}

fn listing<P: ?Sized>(kind: &'static str, entries: &'static [Entry<P>]) -> Listing {
    let listed = |entry: &Entry<P>| Listed {
        name: entry.name,
        summary: entry.summary(),
        doc: entry.doc(),
        example: entry.example,
        schema: (entry.schema)(),
    };
    Listing { kind, parts: entries.iter().map(listed).collect() }
}

/// All catalogues.
pub(super) fn listings() -> Vec<Listing> {
    vec![
        listing("operators", compress::CATALOGUE),
        listing("coders", wire::CATALOGUE),
        listing("links", link::CATALOGUE),
        listing("methods", method::CATALOGUE),
        listing("models", model::CATALOGUE),
        listing("partitioners", partition::CATALOGUE),
        listing("data", data::CATALOGUE),
    ]
}

impl Listed {
    /// A section of the doc comment on one line: the text under `# heading`.
    pub fn section(&self, heading: &str) -> String {
        let lines = self.doc.lines().skip_while(|line| line.trim() != format!("# {heading}"));
        let lines = lines.skip(1).take_while(|line| !line.starts_with("# "));
        lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Settings with what they allow, their default and their meaning.
    pub fn settings(&self) -> Vec<[String; 4]> {
        let row = |(name, of): (&str, &serde_json::Value)| {
            let default = of.get("default").filter(|default| !default.is_null()).map(ToString::to_string);
            let description =
                of.get("description").and_then(serde_json::Value::as_str).unwrap_or("").replace('\n', " ");
            [name.to_owned(), allowed(of), default.unwrap_or_default(), description]
        };
        properties(&self.schema).map(row).collect()
    }
}

/// The tables of the README, by the name of their markers.
pub fn markdown() -> Vec<(&'static str, String)> {
    listings()
        .into_iter()
        .map(|listing| {
            let columns: &[&str] = match listing.kind {
                "operators" => &["Bits", "Bound", "Source"],
                "coders" => &["Bits"],
                "models" => &["Layers"],
                "partitioners" => &["Sizes"],
                _ => &["Source"],
            };
            let mut table = format!("| name | what it does | {} |\n", columns.join(" | ").to_lowercase());
            table += &format!("|---|---|{}\n", "---|".repeat(columns.len()));
            for part in &listing.parts {
                let cells: Vec<String> = columns.iter().map(|column| first_sentences(&part.section(column))).collect();
                table += &format!("| `{}` | {} | {} |\n", part.name, cell(&part.summary), cells.join(" | "));
            }
            (listing.kind, table)
        })
        .collect()
}

/// The text up to the end of its second sentence, fit for a cell.
fn first_sentences(text: &str) -> String {
    let end = text.match_indices(". ").nth(1).map_or(text.len(), |(at, _)| at + 1);
    cell(&text[..end])
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
