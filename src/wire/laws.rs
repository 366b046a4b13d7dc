//! Laws that every coder obeys, in one loop over the catalogue.

use half::f16;
use proptest::prelude::*;

use super::{CATALOGUE, Coder, bits::fixed_width};
use crate::payload::{Corrupt, Kind, Section, Source, Trellis};

const FOUR_STATES: Trellis = Trellis { next: &[[0, 2], [2, 0], [1, 3], [3, 1]], second: &[false, false, true, true] };

fn coders() -> Vec<(&'static str, Box<dyn Coder>)> {
    CATALOGUE.iter().map(|entry| (entry.name, entry.build_example().expect("examples are valid").part)).collect()
}

fn subset() -> impl Strategy<Value = Section> {
    prop::collection::vec(any::<bool>(), 0..80).prop_map(|set| Section::Positions {
        at: (0..set.len() as u32).filter(|&i| set[i as usize]).collect(),
        n: set.len() as u32,
    })
}

fn section() -> impl Strategy<Value = Section> {
    prop_oneof![
        prop::collection::vec(any::<f32>().prop_filter("comparable", |x| !x.is_nan()), 0..20).prop_map(Section::Floats),
        subset(),
        prop::collection::vec(any::<bool>(), 0..80).prop_map(Section::Signs),
        (1u32..600).prop_flat_map(|alphabet| prop::collection::vec(0..alphabet as u16, 0..60)
            .prop_map(move |values| Section::Symbols { values, alphabet })),
        (1i32..40).prop_flat_map(|largest| prop::collection::vec(-largest..=largest, 0..80)
            .prop_map(move |values| Section::Levels { values, largest: Some(largest as u32), trellis: None })),
        prop::collection::vec(prop_oneof![Just(0), -3..=3, -60..=60], 0..80).prop_map(|values| Section::Levels {
            values,
            largest: None,
            trellis: None
        }),
        prop::collection::vec(prop_oneof![Just(0), -3..=3], 0..80).prop_map(|values| Section::Levels {
            values,
            largest: None,
            trellis: Some(FOUR_STATES)
        }),
        prop::collection::vec((-9.0f32..9.0).prop_map(f16::from_f32), 0..20).prop_map(Section::Halves),
        (0u32..5, 5u32..10_000).prop_map(|(value, below)| Section::Number { value, below }),
        (prop::collection::vec(1u64..200, 0..20), 0.001f64..=1.0)
            .prop_map(|(values, success)| Section::Waits { values, success }),
    ]
}

fn writes(coder: &dyn Coder, section: &Section) -> bool {
    coder.kinds().contains(&section.kind())
}

/// Reads a section of the same description as `like`.
fn read(source: &mut dyn Source, like: &Section) -> Result<Section, Corrupt> {
    Ok(match like {
        Section::Floats(values) => {
            let mut out = vec![0.0; values.len()];
            source.floats(&mut out)?;
            Section::Floats(out)
        }
        Section::Positions { at, n } => Section::Positions { at: source.positions(at.len(), *n)?, n: *n },
        Section::Signs(values) => Section::Signs(source.signs(values.len())?),
        Section::Symbols { values, alphabet } => {
            Section::Symbols { values: source.symbols(values.len(), *alphabet)?, alphabet: *alphabet }
        }
        Section::Halves(values) => {
            let mut out = vec![f16::ZERO; values.len()];
            source.halves(&mut out)?;
            Section::Halves(out)
        }
        Section::Number { below, .. } => Section::Number { value: source.number(*below)?, below: *below },
        Section::Waits { values, success } => {
            Section::Waits { values: source.waits(values.len(), *success, 200)?, success: *success }
        }
        Section::Levels { values, largest, trellis } => {
            let read = match trellis {
                Some(trellis) => source.walk(values.len(), *trellis)?,
                None => source.levels(values.len(), *largest)?,
            };
            Section::Levels { values: read, largest: *largest, trellis: *trellis }
        }
    })
}

proptest! {
    #[test]
    fn sections_come_back_in_the_stated_number_of_bits(sections in prop::collection::vec(section(), 0..8)) {
        for (name, coder) in coders() {
            let sections: Vec<_> = sections.iter().filter(|section| writes(&*coder, section)).collect();
            let mut writer = coder.writer();
            sections.iter().for_each(|section| writer.put(section));
            let (bytes, bits) = writer.finish();
            prop_assert_eq!(bits.div_ceil(8), bytes.len() as u64, "{}", name);
            let mut reader = coder.reader(&bytes);
            for section in sections {
                prop_assert_eq!(&read(&mut *reader, section)?, section, "{}", name);
            }
            prop_assert_eq!(reader.finish(), Ok(()), "{}", name);
        }
    }

    #[test]
    fn what_follows_a_message_does_not_change_it(
        sections in prop::collection::vec(section(), 0..5),
        follow in prop_oneof![Just(vec![0; 9]), Just(vec![0xff; 9]), prop::collection::vec(any::<u8>(), 1..12)],
    ) {
        for (name, coder) in coders() {
            let sections: Vec<_> = sections.iter().filter(|section| writes(&*coder, section)).collect();
            let mut writer = coder.writer();
            sections.iter().for_each(|section| writer.put(section));
            let (mut bytes, _) = writer.finish();
            bytes.extend(&follow);
            let mut reader = coder.reader(&bytes);
            for section in sections {
                prop_assert_eq!(&read(&mut *reader, section)?, section, "{}", name);
            }
        }
    }

    #[test]
    fn any_bytes_give_an_error_or_a_valid_section(bytes in prop::collection::vec(any::<u8>(), 0..60), like in section()) {
        for (name, coder) in coders() {
            if !writes(&*coder, &like) {
                continue;
            }
            let mut reader = coder.reader(&bytes);
            match read(&mut *reader, &like) {
                Ok(Section::Positions { at, n }) => {
                    prop_assert!(at.is_sorted_by(|a, b| a < b) && at.iter().all(|&i| i < n), "{}", name);
                }
                Ok(Section::Symbols { values, alphabet }) => {
                    prop_assert!(values.iter().all(|&symbol| u32::from(symbol) < alphabet), "{}", name);
                }
                Ok(Section::Levels { values, largest: Some(largest), .. }) => {
                    prop_assert!(values.iter().all(|level| level.unsigned_abs() <= largest), "{}", name);
                }
                _ => {}
            }
        }
    }
}

fn bits_of(name: &str, section: &Section) -> u64 {
    let coder = coders().into_iter().find(|(other, _)| *other == name).expect("the coder is listed").1;
    let mut writer = coder.writer();
    writer.put(section);
    writer.finish().1
}

#[test]
fn formulas_hold_exactly() {
    let positions = Section::Positions { at: vec![0, 3, 4, 9, 700], n: 1000 };
    assert_eq!(bits_of("fixed", &positions), 5 * 10);
    assert_eq!(bits_of("bitmap", &positions), 1000);
    // gaps 1, 3, 1, 5, 691
    assert_eq!(bits_of("elias-gamma", &positions), 1 + 3 + 1 + 5 + 19);
    assert_eq!(bits_of("elias-delta", &positions), 1 + 4 + 1 + 5 + 16);
    assert_eq!(bits_of("elias-omega", &positions), 1 + 3 + 1 + 6 + 17);
    let levels = Section::Levels { values: vec![0, -1, 0, 3, 0, 0, 0, 0], largest: Some(3), trellis: None };
    assert_eq!(bits_of("fixed", &levels), 8 * 3);
    assert_eq!(bits_of("bitmap", &levels), 4 + 8 + (1 + 1) + (1 + 3));
    // count 2 + 1, gaps 2 and 2, magnitudes 1 and 3
    assert_eq!(bits_of("elias-omega", &levels), 3 + 3 + 1 + 1 + 3 + 1 + 3);
    assert_eq!(bits_of("elias-dense", &levels), 6 + (3 + 1) + (6 + 1));
    // gaps as they are, and magnitudes 1 and 3
    assert_eq!(bits_of("unary", &positions), 701);
    assert_eq!(bits_of("unary", &levels), 4 + 4 + 2 + 4);
    // What a general-purpose compressor makes of anything has no formula.
    for coder in CATALOGUE.iter().filter(|coder| coder.name != "zstd") {
        assert_eq!(bits_of(coder.name, &Section::Floats(vec![1.0; 9])).div_ceil(8), 36, "{}", coder.name);
        assert_eq!(bits_of(coder.name, &Section::Signs(vec![true; 17])).div_ceil(8), 3, "{}", coder.name);
        let full = Section::Positions { at: (0..33).collect(), n: 33 };
        assert_eq!(bits_of(coder.name, &full), 0, "{}: the full set needs no bits", coder.name);
    }
}

#[test]
fn subsets_and_adaptive_levels_reach_their_information() {
    let at: Vec<u32> = (0..1000).filter(|i| i * 7919 % 1000 < 50).collect();
    let section = Section::Positions { at, n: 1000 };
    let bits = bits_of("enumerative", &section) as f64;
    assert!(bits <= section.information_bits() + 16.0, "{bits}");
    let symbols =
        Section::Symbols { values: (0..4000).map(|i| if i % 10 == 0 { i % 7 } else { 3 }).collect(), alphabet: 256 };
    assert!(bits_of("adaptive", &symbols) < 4000, "a skewed alphabet costs below a bit a symbol");
    assert_eq!(bits_of("fixed", &symbols), 4000 * u64::from(fixed_width(256)));
    assert!(CATALOGUE.iter().all(|entry| entry.build_example().unwrap().part.kinds().contains(&Kind::Floats)));
}
