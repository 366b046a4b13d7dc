//! Messages of Protocol Buffers as far as event files need them: numbers, floats, and bytes, which are texts and messages too.

/// A message in the making.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds a whole number.
    pub fn number(self, field: u8, value: i64) -> Self {
        // Negative ones are written as their two's complement.
        self.key(field, 0).varint(value as u64)
    }

    /// Adds a float of 64 bits.
    pub fn double(mut self, field: u8, value: f64) -> Self {
        self = self.key(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds a float of 32 bits.
    pub fn float(mut self, field: u8, value: f32) -> Self {
        self = self.key(field, 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds text.
    pub fn text(mut self, field: u8, text: &str) -> Self {
        self = self.key(field, 2).varint(text.len() as u64);
        self.0.extend(text.as_bytes());
        self
    }

    /// Adds a message.
    pub fn message(mut self, field: u8, message: &Self) -> Self {
        self = self.key(field, 2).varint(message.0.len() as u64);
        self.0.extend(&message.0);
        self
    }

    fn key(self, field: u8, wire_type: u8) -> Self {
        self.varint(u64::from(field) << 3 | u64::from(wire_type))
    }

    /// Seven bits a byte, lowest first; the highest bit says that more follow.
    fn varint(mut self, mut value: u64) -> Self {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_bytes_of_the_documentation() {
        // https://protobuf.dev/programming-guides/encoding/
        assert_eq!(Message::default().number(1, 150).bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").bytes(), b"\x12\x07testing");
        let inner = Message::default().number(1, 150);
        assert_eq!(Message::default().message(3, &inner).bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let minus_two = [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Message::default().number(1, -2).bytes(), minus_two);
        assert_eq!(Message::default().double(1, 1.0).bytes(), [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        assert_eq!(Message::default().float(2, 1.0).bytes(), [0x15, 0, 0, 0x80, 0x3f]);
    }
}
