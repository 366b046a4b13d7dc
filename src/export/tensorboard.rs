//! Event files of TensorBoard: one sub-folder a run.
//!
//! Every column of measured numbers is a scalar, whose section is the part of its tag before the slash; TensorBoard keeps
//! scalars as floats of 32 bits, so that large counts of bits are rounded there. The settings are a text, and those in which
//! runs differ are hyperparameters.

use super::{
    ExportError,
    folder::Folder,
    protobuf::Message,
    run::{Run, differing},
};

/// `DT_FLOAT` and `DT_STRING` of TensorFlow's types, and `DATA_CLASS_TENSOR` of its summaries.
const FLOAT: i64 = 1;
const STRING: i64 = 7;
const TENSOR: i64 = 2;

pub(super) fn write(runs: &[Run], folder: &mut Folder) -> Result<(), ExportError> {
    let differing = differing(runs);
    for run in runs {
        // The name holds `tfevents`, by which TensorBoard knows such files.
        let path = format!("{}/events.out.tfevents.{:010}.fedbits", run.name, run.start);
        folder.write(&path, &file(run, &differing))?;
    }
    Ok(())
}

/// The event file of a run.
fn file(run: &Run, differing: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = run.start as f64;
    record(&mut bytes, &Message::default().double(1, start).text(3, "brain.Event:2"));
    let values = about(run, differing);
    if !values.is_empty() {
        record(&mut bytes, &event(start, 0, &values));
    }
    let mut rows = vec![Vec::new(); run.rounds.len()];
    for series in run.series() {
        let tag = tag(series.column);
        for (row, _, value) in series.points {
            rows[row].push(Message::default().text(1, &tag).float(2, value as f32));
        }
    }
    for ((values, &round), &time) in rows.iter().zip(&run.rounds).zip(&run.times) {
        record(&mut bytes, &event(time, round, values));
    }
    bytes
}

/// `Event` with a `Summary` of values.
fn event(time: f64, step: i64, values: &[Message]) -> Message {
    let summary = values.iter().fold(Message::default(), |summary, value| summary.message(1, value));
    Message::default().double(1, time).number(2, step).message(5, &summary)
}

/// A record of a TFRecord file: length, masked checksum of the length, data, masked checksum of the data.
fn record(file: &mut Vec<u8>, message: &Message) {
    let data = message.bytes();
    let length = (data.len() as u64).to_le_bytes();
    file.extend(length);
    file.extend(masked(&length).to_le_bytes());
    file.extend(data);
    file.extend(masked(data).to_le_bytes());
}

/// CRC-32C, turned and shifted so that checksums of data with checksums in it remain good.
fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The tag of a column: section and name.
fn tag(column: &str) -> String {
    let endings = [("_accuracy", "accuracy"), ("_loss", "loss"), ("_bits", "bits"), ("_seconds", "seconds")];
    let starts = ["clients", "compression", "distance"];
    for (ending, section) in endings {
        if let Some(name) = column.strip_suffix(ending) {
            return format!("{section}/{name}");
        }
    }
    match column.split_once('_') {
        Some((section, name)) if starts.contains(&section) => format!("{section}/{name}"),
        _ => format!("training/{column}"),
    }
}

/// What is known of a run before its rounds: settings as a text, and as hyperparameters.
fn about(run: &Run, differing: &[&str]) -> Vec<Message> {
    let mut values = Vec::new();
    let settings = &run.table.settings;
    if !settings.is_empty() {
        let mut text = "| setting | value |\n|---|---|\n".to_owned();
        for (key, value) in settings {
            text += &format!("| `{key}` | `{}` |\n", value.replace('`', "'").replace('\n', " "));
        }
        let shape = Message::default().message(2, &Message::default().number(1, 1));
        let tensor = Message::default().number(1, STRING).message(2, &shape).text(8, &text);
        values.push(plugin("scenario", "text", &Message::default(), &tensor));
    }
    if !differing.is_empty() {
        let start = Message::default().message(3, &session_start(run, differing));
        let empty = Message::default().message(2, &Message::default().message(2, &Message::default()));
        let tensor = empty.number(1, FLOAT);
        values.push(plugin("_hparams_/session_start_info", "hparams", &start, &tensor));
        // 1 is success, 2 is failure; without an end TensorBoard takes the run for one that is not over.
        let status = match run.state() {
            "finished" => 1,
            "diverged" | "failed" => 2,
            _ => return values,
        };
        let end = Message::default().number(1, status).double(2, run.last());
        let end = Message::default().message(4, &end);
        values.push(plugin("_hparams_/session_end_info", "hparams", &end, &tensor));
    }
    values
}

/// `SessionStartInfo` of the plugin for hyperparameters.
fn session_start(run: &Run, differing: &[&str]) -> Message {
    let pair = |key: &&str| {
        let text = run.table.settings.get(*key)?;
        let value = match (text.parse::<f64>(), text.parse::<bool>()) {
            (Ok(number), _) => Message::default().double(2, number),
            (_, Ok(truth)) => Message::default().number(4, i64::from(truth)),
            _ => Message::default().text(3, text),
        };
        Some(Message::default().text(1, key).message(2, &value))
    };
    let pairs = differing.iter().filter_map(pair);
    pairs.fold(Message::default(), |start, pair| start.message(1, &pair)).double(5, run.start as f64)
}

/// A value of a summary that a plugin of TensorBoard shows.
fn plugin(tag: &str, name: &str, content: &Message, tensor: &Message) -> Message {
    let data = Message::default().text(1, name).message(2, content);
    let metadata = Message::default().message(1, &data).number(4, TENSOR);
    Message::default().text(1, tag).message(8, tensor).message(9, &metadata)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{
        super::run::tests::{TWO_ROUNDS, table},
        *,
    };

    /// The fields of a message: number and content, for numbers and floats their bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let (first, rest) = bytes.split_first().expect("the number goes on");
                *bytes = rest;
                value |= u64::from(first & 0x7f) << shift;
                if first & 0x80 == 0 {
                    break;
                }
            }
            value
        }
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let length = match key & 7 {
                0 => {
                    fields.push((key >> 3, varint(&mut bytes).to_le_bytes().to_vec()));
                    continue;
                }
                1 => 8,
                2 => varint(&mut bytes) as usize,
                5 => 4,
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, bytes[..length].to_vec()));
            bytes = &bytes[length..];
        }
        fields
    }

    /// The records of a file, whose checksums are made bit by bit.
    fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let check = |data: &[u8], stored: &[u8]| {
            let mut crc = !0u32;
            for &byte in data {
                crc ^= u32::from(byte);
                (0..8).for_each(|_| crc = (crc >> 1) ^ (if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }));
            }
            let masked = (!crc).rotate_left(17).wrapping_add(0xa282_ead8);
            assert_eq!(stored, masked.to_le_bytes());
        };
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            check(&bytes[..8], &bytes[8..12]);
            let data = &bytes[12..12 + length];
            check(data, &bytes[12 + length..16 + length]);
            records.push(data.to_vec());
            bytes = &bytes[16 + length..];
        }
        records
    }

    fn scalars(event: &[u8]) -> Vec<(String, f32)> {
        let summary = fields(event).into_iter().find(|(field, _)| *field == 5).expect("a summary").1;
        let scalar = |(_, value): (u64, Vec<u8>)| {
            let value = fields(&value);
            let number = f32::from_le_bytes(value[1].1.clone().try_into().unwrap());
            (String::from_utf8(value[0].1.clone()).unwrap(), number)
        };
        fields(&summary).into_iter().map(scalar).collect()
    }

    #[test]
    fn checksums_are_those_of_the_standard() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        // RFC 3720, B.4: 32 bytes of zeros.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        // The length 24 of the first record that TensorFlow writes: a time and `brain.Event:2`.
        assert_eq!(masked(&24u64.to_le_bytes()).to_le_bytes(), [0xa3, 0x7f, 0x4b, 0x22]);
    }

    #[test]
    fn a_small_file_is_known_byte_by_byte() {
        let tables = [table(Path::new(""), "a", "run,round,test_loss\na,1,0.5\n", &[])];
        let (runs, _) = Run::of(&tables).unwrap();
        let mut wanted = vec![24, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22];
        let version = b"\x09\0\0\0\0\0\0\0\0\x1a\x0dbrain.Event:2";
        wanted.extend(version);
        wanted.extend(masked(version).to_le_bytes());
        let event = b"\x09\0\0\0\0\0\0\0\0\x10\x01\x2a\x12\x0a\x10\x0a\x09loss/test\x15\0\0\0\x3f";
        wanted.extend([event.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
        wanted.extend(masked(&(event.len() as u64).to_le_bytes()).to_le_bytes());
        wanted.extend(event);
        wanted.extend(masked(event).to_le_bytes());
        assert_eq!(file(&runs[0], &[]), wanted);
    }

    #[test]
    fn an_independent_reader_finds_every_value() {
        let settings = [("uplink.operator", "top-k"), ("uplink.ratio", "0.01")];
        let tables = [table(Path::new(""), "a", TWO_ROUNDS, &settings)];
        let (runs, _) = Run::of(&tables).unwrap();
        let events = records(&file(&runs[0], &["uplink.ratio"]));
        assert_eq!(events.len(), 4);
        assert_eq!(fields(&events[0])[1], (3, b"brain.Event:2".to_vec()));
        let text = String::from_utf8_lossy(&events[1]);
        assert!(text.contains("| `uplink.operator` | `top-k` |") && text.contains("_hparams_/session_start_info"));
        let first = scalars(&events[2]);
        let wanted = [("bits/uplink", 63_747_200.0), ("training/learning_rate", 0.1), ("seconds/wall", 0.5)];
        assert_eq!(first, wanted.map(|(tag, value)| (tag.to_owned(), value)));
        let event = fields(&events[3]);
        assert_eq!((event[0].1.clone(), event[1].1[0]), (0.75f64.to_le_bytes().to_vec(), 2));
        let second = scalars(&events[3]);
        assert_eq!(second[0], ("accuracy/test".to_owned(), 0.75));
        assert!(second[2].1.is_nan());
    }

    #[test]
    fn columns_stand_in_neat_sections() {
        let tags = [
            ("test_accuracy", "accuracy/test"),
            ("train_loss", "loss/train"),
            ("cumulative_uplink_bits", "bits/cumulative_uplink"),
            ("clients_reported", "clients/reported"),
            ("distance_to_optimum", "distance/to_optimum"),
            ("compression_error", "compression/error"),
            ("simulated_seconds", "seconds/simulated"),
            ("learning_rate", "training/learning_rate"),
        ];
        for (column, wanted) in tags {
            assert_eq!(tag(column), wanted);
        }
    }
}
