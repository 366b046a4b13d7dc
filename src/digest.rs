//! SHA-256 in hexadecimal: the names of contents.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// A SHA-256 in the making.
#[derive(Default)]
pub struct Hash(Sha256);

impl Hash {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds the bytes of floats, little-endian.
    pub fn update_floats(&mut self, values: &[f32]) {
        let mut bytes = Vec::with_capacity(4 * 4096);
        for chunk in values.chunks(4096) {
            bytes.clear();
            bytes.extend(chunk.iter().flat_map(|value| value.to_le_bytes()));
            self.update(&bytes);
        }
    }

    /// The digest in lowercase hexadecimal.
    pub fn hex(self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0.finalize() {
            write!(text, "{byte:02x}").expect("strings can be written to");
        }
        text
    }
}

/// SHA-256 of bytes in memory.
pub fn sha256(bytes: &[u8]) -> String {
    let mut hash = Hash::default();
    hash.update(bytes);
    hash.hex()
}

/// SHA-256 of a vector's values, little-endian.
pub fn sha256_floats(values: &[f32]) -> String {
    let mut hash = Hash::default();
    hash.update_floats(values);
    hash.hex()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_abc_is_that_of_the_standard() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn floats_are_their_bytes() {
        let values: Vec<f32> = (0..10_000).map(|i| i as f32).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(sha256_floats(&values), sha256(&bytes));
    }
}
