//! Figures from small tables.

use std::{fs, path::Path};

use crate::support::{Place, SMALL, errors, refuse};

/// A table of rounds, as a run writes it; the accuracy grows with the seed.
fn rounds(place: &Place, folder: &str, operator: &str, seed: u32, bits: u64) {
    let mut text = "run,scenario,method,operator,seed,round,test_accuracy,test_loss,cumulative_uplink_bits,cumulative_downlink_bits,cumulative_peer_bits\n".to_owned();
    for round in 1..=6u64 {
        let accuracy =
            if round == 2 { String::new() } else { format!("{}", 1.0 - 0.5 / (round + u64::from(seed)) as f64) };
        let sum = bits * round;
        text += &format!(
            "{folder},tiny,fedavg,{operator},{seed},{round},{accuracy},0.{round},{sum},{},0\n",
            64_000 * round
        );
    }
    fs::create_dir_all(place.path().join("results").join(folder)).expect("a folder can be made");
    place.file(&format!("results/{folder}/rounds.csv"), &text);
}

fn four_runs() -> Place {
    let place = Place::new();
    for seed in 0..3 {
        rounds(&place, &format!("a-seed{seed}"), "top-k", seed, 80_000 + 800 * u64::from(seed));
    }
    rounds(&place, "b-seed0", "identity", 0, 8_000_000);
    place
}

const LABORATORY: &str =
    "operator,settings,vector,dimension,wire_bits_per_coordinate,nmse,nmse_standard_error,lower_bound
qsgd,levels=1,gaussian,100,1.5,0.9,0.01,0.125
qsgd,levels=7,gaussian,100,3.2,0.08,0.001,0.0118
sign,,gaussian,100,1.3,0.36,0.002,0.165
identity,,gaussian,100,32,0,0,5.4e-20
";

fn text(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path().join(name)).expect("the figure is there")
}

fn is_png(path: &Path) -> (u32, u32) {
    let bytes = fs::read(path).expect("the figure is there");
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

#[test]
fn runs_become_figures_of_means_with_bands_beside_them() {
    let place = four_runs();
    let listed = place.succeed(&["plot", "results"]);
    let names: Vec<&str> = listed.lines().collect();
    let figures = ["accuracy-bits", "accuracy-rounds", "loss", "pareto"];
    let wanted: Vec<String> = figures
        .iter()
        .flat_map(|name| ["svg", "png"].map(|ending| Path::new("results/figures").join(format!("{name}.{ending}"))))
        .chain([Path::new("results/figures/report.html").to_path_buf()])
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(names, wanted);
    let svg = text(&place, "results/figures/accuracy-bits.svg");
    for wanted in [
        ">tiny: test accuracy against uplink traffic<",
        ">Means of 1 to 3 seeds; bands: 95 % confidence of the mean",
        ">top-k<",
        ">identity<",
        ">100 kB<",
        ">test accuracy (%)<",
        "fill-opacity",
        "sans-serif",
        "<metadata>{&quot;made_by&quot;:&quot;fedbits plot ",
        "a-seed0&quot;,&quot;a-seed1",
    ] {
        assert!(svg.contains(wanted), "`{wanted}` is not in\n{svg}");
    }
    assert_eq!(is_png(&place.path().join("results/figures/accuracy-bits.png")), (1520, 920));
    // The same tables give the same bytes, over the figures that are there.
    let before = fs::read(place.path().join("results/figures/loss.png")).unwrap();
    place.succeed(&["plot", "results"]);
    assert_eq!(text(&place, "results/figures/accuracy-bits.svg"), svg);
    assert_eq!(fs::read(place.path().join("results/figures/loss.png")).unwrap(), before);
    assert!(before.windows(13).any(|window| window == b"fedbits plot "));
}

#[test]
fn columns_groups_panels_sizes_and_files_can_be_chosen() {
    let place = four_runs();
    let arguments =
        ["plot", "results", "--bits", "total", "--out", "total.svg", "--out", "deep/total.png", "--size", "500x300"];
    let listed = place.succeed(&arguments);
    assert_eq!(listed, "total.svg\ndeep/total.png\n");
    assert!(
        text(&place, "total.svg").contains(">total traffic<") && text(&place, "total.svg").contains("width=\"500\"")
    );
    assert_eq!(is_png(&place.path().join("deep/total.png")), (1000, 600));
    let own = [
        "plot",
        "results/a-seed1",
        "results/b-seed0/rounds.csv",
        "--x",
        "round",
        "--y",
        "test_loss",
        "--facet",
        "operator",
        "--log",
        "y",
        "--title",
        "loss < 1 & falling",
        "--out",
        "own.svg",
    ];
    place.succeed(&own);
    let svg = text(&place, "own.svg");
    assert!(
        svg.contains(">loss &lt; 1 &amp; falling<") && svg.contains(">identity<") && svg.contains(">top-k<"),
        "{svg}"
    );
    place.succeed(&["plot", "results", "--group", "seed", "--figure", "accuracy-rounds", "--out", "seeds.svg"]);
    let svg = text(&place, "seeds.svg");
    assert!(["seed 0", "seed 1", "seed 2"].iter().all(|name| svg.contains(name)), "{svg}");
    place.file("any.csv", "size,time\n1,0.5\n10,3\n100,40\n");
    place.succeed(&["plot", "any.csv", "--x", "size", "--y", "time", "--log", "xy"]);
    assert!(text(&place, "figures/time-size.svg").contains(">Time against size<"));
}

#[test]
fn a_laboratory_shows_operators_above_their_bound() {
    let place = Place::new();
    place.file("operators.csv", LABORATORY);
    place.succeed(&["plot", "operators.csv"]);
    let svg = text(&place, "figures/laboratory.svg");
    for wanted in [">qsgd<", ">sign<", ">lower bound<", ">wire bits per coordinate<", "operators.csv sha256:"] {
        assert!(svg.contains(wanted), "`{wanted}` is not in\n{svg}");
    }
    // Nothing that is exact has a place on a logarithmic axis.
    assert!(!svg.contains(">identity<"));
}

#[test]
fn runs_are_told_apart_by_the_settings_in_which_they_differ() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    for ratio in ["0.01", "0.1"] {
        let uplink = format!("uplink={{operator=\"top-k\",ratio={ratio}}}");
        place.succeed(&["run", "small.toml", &uplink, "--seeds", "0..2", "--quiet"]);
    }
    place.succeed(&[
        "run",
        "small.toml",
        "uplink={operator=\"top-k\",ratio=0.1}",
        "--seeds",
        "0",
        "--quiet",
        "--force",
    ]);
    let output = place.fedbits(&["plot", "results"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("which alone counts"), "{}", errors(&output));
    let svg = text(&place, "results/figures/accuracy-bits.svg");
    assert!(svg.contains(">ratio 0.01<") && svg.contains(">ratio 0.1<"), "{svg}");
    assert!(svg.contains(">Means of 2 seeds; bands from one to the other<"), "{svg}");
    assert!(text(&place, "results/figures/final.svg").contains(">uplink ratio<"));
}

#[test]
fn mistakes_are_explained() {
    let place = four_runs();
    place.file("operators.csv", LABORATORY);
    place.file("empty.csv", "a,b\n");
    place.file("ragged.csv", "a,b\n1,2\n1\n");
    place.file("mine.svg", "<svg>drawn by hand</svg>");
    fs::create_dir(place.path().join("nothing")).unwrap();
    refuse(
        &place,
        &["plot", "results", "--y", "test_acuracy"],
        &["`test_acuracy`", "did you mean `test_accuracy`?", "`round`"],
    );
    refuse(&place, &["plot", "results", "--y", "operator"], &["`operator` holds no numbers", "`top-k`"]);
    refuse(&place, &["plot", "empty.csv"], &["no rows in `empty.csv`"]);
    refuse(&place, &["plot", "ragged.csv"], &["`ragged.csv` is not CSV", "line: 3"]);
    refuse(&place, &["plot", "nothing"], &["no run", "`nothing`"]);
    refuse(&place, &["plot", "absent"], &["no file or folder `absent`"]);
    refuse(&place, &["plot", "results", "operators.csv"], &["measurements of operators", "rounds of a run"]);
    refuse(&place, &["plot", "results", "--out", "mine.svg"], &["`mine.svg` is there", "--force"]);
    refuse(
        &place,
        &["plot", "results", "--out", "figure.pdf"],
        &["`figure.pdf` ends in none of `.svg`, `.png` and `.html`"],
    );
    refuse(&place, &["plot", "results", "--figure", "distance"], &["`distance_to_optimum`"]);
    refuse(&place, &["plot", "results", "--size", "10x10"], &["200 to 8000"]);
    assert_eq!(text(&place, "mine.svg"), "<svg>drawn by hand</svg>");
    place.succeed(&["plot", "results", "--out", "mine.svg", "--force"]);
    assert!(text(&place, "mine.svg").contains("top-k"));
}

#[test]
fn one_page_holds_figures_report_settings_and_environment_and_needs_nothing_else() {
    let place = Place::new();
    let question = "# Question: Does a <page> & its \"title\" survive? Yes.\n# Nobody asks this.\n\n# More.\n";
    place.file("small.toml", &format!("{question}{SMALL}"));
    place.succeed(&["sweep", "small.toml", "seed=0..3", "uplink.operator=identity,sign,natural", "--quiet"]);
    place.succeed(&["plot", "results/small"]);
    let page = text(&place, "results/small/figures/report.html");
    for wanted in [
        "<h1>small</h1>",
        "Does a &lt;page&gt; &amp; its &quot;title&quot; survive?</p>",
        "Accuracy against bits</h2>",
        "In figures</h2>",
        ">group</th>",
        "method.learning_rate = 0.05",
        "uplink.operator",
        "identity, natural, sign",
        "data digest",
        "<dd>9</dd>",
    ] {
        assert!(page.contains(wanted), "`{wanted}` is not in the page");
    }
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    for alien in ["http:", "https:", "<script", "src=", "@import", "url("] {
        assert!(!outside.contains(alien), "`{alien}` is in the page");
    }
    assert!(page.len() < 500_000, "{} bytes", page.len());
    let svg = text(&place, "results/small/figures/accuracy-bits.svg");
    assert!(svg.contains(">Does a &lt;page&gt; &amp; its &quot;title&quot; survive?<"), "the question is the title");
    // The table of the sweep alone says the same, without the folders of its runs.
    let lonely = Place::new();
    let table = fs::read_to_string(place.path().join("results/small/sweep.csv")).unwrap();
    lonely.file("sweep.csv", &table);
    lonely.succeed(&["plot", "sweep.csv", "--out", "page.html", "--out", "one.svg"]);
    let alone = text(&lonely, "page.html");
    assert!(alone.contains("In figures</h2>") && !alone.contains("learning_rate"));
    assert!(text(&lonely, "one.svg").contains(">natural<"));
}
