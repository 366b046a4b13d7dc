//! A page that needs nothing else: text, tables and figures in one file, readable without network and scripts.

use serde_json::json;

use super::{
    Chart, draw,
    file::MAKER,
    svg::{escape, inline},
};

/// A part of a page under its own heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Heading.
    pub heading: String,
    /// What stands under it, in order.
    pub blocks: Vec<Block>,
}

/// Something in a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A figure, whose points say their values when one points at them; its notes stand below it.
    Chart(Box<Chart>),
    /// A table; rows that are short have empty cells.
    Table {
        /// Names of columns, and to which side their cells lean.
        columns: Vec<(String, Align)>,
        /// Cells.
        rows: Vec<Vec<String>>,
    },
    /// A paragraph.
    Text(String),
    /// Text whose line breaks and spaces count, such as a scenario.
    Verbatim(String),
    /// Names and their values, such as those of the machine.
    Pairs(Vec<(String, String)>),
}

/// The side to which the cells of a column lean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// The text of an HTML file: a title, the question that the page answers, and sections.
///
/// The same arguments give the same bytes. Whatever they hold is shown as text; nothing is fetched or run.
pub fn page(title: &str, question: &str, sections: &[Section]) -> String {
    let charts = sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
        Block::Chart(chart) => Some(chart.as_ref()),
        _ => None,
    });
    let mut sources: Vec<&String> = charts.flat_map(|chart| &chart.sources).collect();
    sources.sort();
    sources.dedup();
    let about = json!({ "made_by": MAKER, "sources": sources }).to_string();
    let question = match question.is_empty() {
        true => String::new(),
        false => format!("<p class=\"question\">{}</p>\n", escape(question)),
    };
    let parts: String = sections.iter().enumerate().map(|(i, section)| part(i + 1, section)).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"{MAKER}\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"about\" content=\"{}\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<header>\n<h1>{title}</h1>\n{question}{}</header>\n<main>\n{parts}</main>\n\
         <footer>Made by {MAKER}</footer>\n</body>\n</html>\n",
        escape(&about),
        contents(sections),
        title = escape(title),
    )
}

/// Links to the sections, where there are several.
fn contents(sections: &[Section]) -> String {
    if sections.len() < 3 {
        return String::new();
    }
    let link = |(i, section): (usize, &Section)| {
        format!("<li><a href=\"#section-{}\">{}</a></li>\n", i + 1, escape(&section.heading))
    };
    let links: String = sections.iter().enumerate().map(link).collect();
    format!("<nav aria-label=\"Contents\">\n<ul>\n{links}</ul>\n</nav>\n")
}

fn part(number: usize, section: &Section) -> String {
    let blocks: String = section.blocks.iter().map(block).collect();
    format!("<section id=\"section-{number}\">\n<h2>{}</h2>\n{blocks}</section>\n", escape(&section.heading))
}

fn block(block: &Block) -> String {
    match block {
        Block::Chart(chart) => figure(chart),
        Block::Table { columns, rows } => table(columns, rows),
        Block::Text(text) => format!("<p>{}</p>\n", escape(text)),
        Block::Verbatim(text) => {
            // Signs that a page cannot hold become question marks; line breaks and tabs are none of them.
            let lines: Vec<String> = text.lines().map(|line| escape(&line.replace('\t', "    "))).collect();
            format!("<pre tabindex=\"0\">{}</pre>\n", lines.join("\n"))
        }
        Block::Pairs(pairs) => {
            let pair = |(name, value): &(String, String)| {
                format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value))
            };
            format!("<dl>\n{}</dl>\n", pairs.iter().map(pair).collect::<String>())
        }
    }
}

fn figure(chart: &Chart) -> String {
    let drawing = inline(&draw(chart, None), &chart.title);
    let notes: Vec<String> = chart.notes.iter().map(|note| format!("<p>{}</p>\n", escape(note))).collect();
    let notes = notes.concat();
    let caption = if notes.is_empty() { notes } else { format!("<figcaption>\n{notes}</figcaption>\n") };
    format!("<figure>\n<div class=\"card\" tabindex=\"0\">\n{drawing}</div>\n{caption}</figure>\n")
}

fn table(columns: &[(String, Align)], rows: &[Vec<String>]) -> String {
    let class = |align: Align| if align == Align::Right { " class=\"number\"" } else { "" };
    let head = |(name, align): &(String, Align)| format!("<th scope=\"col\"{}>{}</th>", class(*align), escape(name));
    let heads: String = columns.iter().map(head).collect();
    let row = |row: &Vec<String>| {
        let cell = |(i, (_, align)): (usize, &(String, Align))| {
            format!("<td{}>{}</td>", class(*align), escape(row.get(i).map_or("", |cell| cell)))
        };
        format!("<tr>{}</tr>\n", columns.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead>\n<tr>{heads}</tr>\n</thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )
}

/// How the page looks: as wide as the screen allows, dark where the reader prefers it, figures on white always.
const STYLE: &str = "\
:root { color-scheme: light dark;
  --ink: #222222; --faint: #5c5c5c; --ground: #ffffff; --soft: #f4f5f6; --line: #dcdfe2; --link: #0060a0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --faint: #a6a6a6; --ground: #16181a; --soft: #212427; --line: #3a3f44; --link: #7cc4f5; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 60rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, 'Noto Sans', Arial, Helvetica, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.25rem 0 .75rem; }
a { color: var(--link); }
p { margin: .5rem 0; max-width: 44rem; }
.question { font-size: 1.1rem; color: var(--faint); }
nav ul { list-style: none; margin: 1rem 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; }
figure { margin: .75rem 0 1.5rem; }
.card { background: #ffffff; border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; padding: .25rem; }
.card svg { display: block; width: 100%; min-width: 38rem; height: auto; }
figcaption { color: var(--faint); font-size: .875rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; margin: .75rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .35rem .75rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { background: var(--soft); font-weight: 600; }
tbody tr:last-child td { border-bottom: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .75rem 1rem;
  overflow-x: auto; overflow-wrap: normal;
  font: .85rem/1.45 ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
dl { margin: .75rem 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(16rem, 1fr)); gap: .5rem 1.5rem; }
dl div { border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
dt { color: var(--faint); font-size: .85rem; }
dd { margin: 0; overflow-wrap: anywhere; }
footer { margin-top: 3rem; padding-top: .75rem; border-top: 1px solid var(--line);
  color: var(--faint); font-size: .85rem; }
.hints > g { outline: none; }
.hints > g > circle { fill: transparent; }
.hints > g > g { visibility: hidden; pointer-events: none; }
.hints > g:hover > g, .hints > g:focus > g { visibility: visible; }
.hints g g circle { fill: #ffffff; stroke-width: 2; }
.hints rect { fill: #ffffff; stroke: #8a8f94; stroke-width: .8; }
.hints text { fill: #222222; font-size: 11.5px; }
@media print {
  :root { --ink: #000000; --faint: #444444; --ground: #ffffff; --soft: #ffffff; --line: #bbbbbb; --link: #000000; }
  body { max-width: none; padding: 0; }
  nav { display: none; }
  .card, .scroll, pre { overflow: visible; }
  .card svg { min-width: 0; }
  pre { white-space: pre-wrap; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
}
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::plot::{Axis, Line, Panel, Point, Unit};

    fn chart() -> Chart {
        let axis = |label: &str, unit| Axis { label: label.to_owned(), unit, log: false };
        let point = |i: usize| {
            let y = 0.1234 + 0.05 * i as f64;
            Point { x: 798_560.0 * i as f64, y, low: y - 0.01, high: y + 0.01 }
        };
        let line = |name| Line { name, points: (0..12).map(|i| point(i + name)).collect() };
        Chart {
            title: "accuracy < \"bits\" & more".to_owned(),
            subtitle: String::new(),
            x: axis("uplink traffic", Unit::Bits),
            y: axis("test accuracy", Unit::Percent),
            names: vec!["top-k".to_owned(), "<script>".to_owned()],
            families: vec![0, 1],
            front: Vec::new(),
            reference: None,
            panels: vec![Panel { lines: vec![line(0), line(1)], ..Panel::default() }],
            sources: vec!["run-b".to_owned(), "run-a".to_owned()],
            notes: vec!["1 row is left out".to_owned()],
        }
    }

    fn sections() -> Vec<Section> {
        let section = |heading: &str, block| Section { heading: heading.to_owned(), blocks: vec![block] };
        vec![
            section("Accuracy", Block::Chart(Box::new(chart()))),
            section("Accuracy again", Block::Chart(Box::new(chart()))),
            section(
                "Runs",
                Block::Table {
                    columns: vec![("run".to_owned(), Align::Left), ("bits".to_owned(), Align::Right)],
                    rows: vec![vec!["a & b".to_owned(), "64".to_owned()], vec!["short".to_owned()]],
                },
            ),
            section("Scenario", Block::Verbatim("[uplink]\n\tratio = 0.1 # <&>\n".to_owned())),
            section("Machine", Block::Pairs(vec![("system".to_owned(), "Linux".to_owned())])),
            section("End", Block::Text("That is all.".to_owned())),
        ]
    }

    fn sample() -> String {
        page("quick start", "How much accuracy does a bit buy?", &sections())
    }

    /// Every tag is closed by its own name; what HTML never closes apart.
    fn check_tags(text: &str) {
        let text = text.replace("<!DOCTYPE html>", "");
        let mut open: Vec<&str> = Vec::new();
        let mut rest = text.as_str();
        while let Some((_, after)) = rest.split_once('<') {
            let (tag, after) = after.split_once('>').expect("a tag ends");
            assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "<{tag}>");
            let name = tag.split_whitespace().next().expect("a tag has a name");
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "</{name}>"),
                None if tag.ends_with('/') || name == "meta" => {}
                None => open.push(name),
            }
            rest = after;
        }
        assert!(open.is_empty(), "{open:?} stay open");
    }

    #[test]
    fn a_page_needs_nothing_else() {
        let page = sample();
        for forbidden in ["http:", "https:", "<script", "src=", "@import", "url(", "<link", "javascript"] {
            assert!(!page.contains(forbidden), "`{forbidden}` is in the page");
        }
        assert!(page.contains("&lt;script&gt;") && page.contains("prefers-color-scheme: dark"));
        assert!(page.contains("content=\"fedbits plot ") && page.contains("[&quot;run-a&quot;,&quot;run-b&quot;]"));
    }

    #[test]
    fn every_tag_is_closed_and_every_name_is_there_once() {
        let page = sample();
        check_tags(&page);
        let ids: Vec<&str> =
            page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
        for rest in page.split("href=\"#").skip(1) {
            let name = rest.split('"').next().unwrap_or_default();
            assert!(ids.contains(&name), "{name}");
        }
    }

    #[test]
    fn points_say_their_exact_values() {
        let page = sample();
        for wanted in [
            ">top-k</tspan>",
            ">uplink traffic: 9,582,720 bits (1.2 MB)</tspan>",
            ">test accuracy: 72.34 %</tspan>",
            ">band: 71.34 % to 73.34 %</tspan>",
        ] {
            assert!(page.contains(wanted), "`{wanted}` is not in the page");
        }
        assert!(page.contains(".hints > g:hover > g"));
    }

    #[test]
    fn the_same_tables_give_the_same_bytes() {
        assert_eq!(sample(), sample());
    }

    #[test]
    fn tables_texts_and_pairs_are_shown_as_they_are() {
        let page = sample();
        for wanted in [
            "<th scope=\"col\" class=\"number\">bits</th>",
            "<tr><td>a &amp; b</td><td class=\"number\">64</td></tr>",
            "<tr><td>short</td><td class=\"number\"></td></tr>",
            "[uplink]\n    ratio = 0.1 # &lt;&amp;&gt;</pre>",
            "<dt>system</dt><dd>Linux</dd>",
            "<p>That is all.</p>",
            "<figcaption>\n<p>1 row is left out</p>",
        ] {
            assert!(page.contains(wanted), "`{wanted}` is not in the page");
        }
    }
}
