//! What crosses a link.

/// One encoded message. Bits are never stated, only measured from the bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packet {
    /// The message.
    pub bytes: Vec<u8>,
    /// Bits of the message before the padding of the last byte.
    pub payload_bits: u64,
    /// What the message carries in bits of information, whatever the coder.
    pub information_bits: f64,
    /// Payload bits of each part, in order.
    pub parts: Vec<u64>,
}

impl Packet {
    /// Bits on the wire: eight a byte.
    pub fn wire_bits(&self) -> u64 {
        8 * self.bytes.len() as u64
    }
}
