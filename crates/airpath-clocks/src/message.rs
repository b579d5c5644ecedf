// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Format of datagrams: one message of 80 bytes, the same size in both directions, so that an answer is never
//! longer than its request.
//!
//! | bytes | |
//! |---|---|
//! | 0–3 | "APCK" |
//! | 4 | version |
//! | 5 | kind: 1 request, 2 answer, 3 a version that is not understood |
//! | 6 | flags of an answer: 1, the kernel stamped T2 |
//! | 7 | 0 |
//! | 8–15 | session, drawn by who asks |
//! | 16–19 | number of the exchange |
//! | 20–23 | number of the exchange to which bytes 48–55 belong |
//! | 24–31 | T1 as the program took it |
//! | 32–39 | T2 |
//! | 40–47 | T3 as the program took it |
//! | 48–55 | T3 of an earlier answer as the kernel took it; 0 for none (the interleaved mode of RFC 9769) |
//! | 56–63 | CLOCK_REALTIME less CLOCK_MONOTONIC of who answers |
//! | 64–71 | identity of who sends |
//! | 72–79 | 0 |
//!
//! Numbers are big-endian; times are in ns since 1970, T1 to T3 unsigned, the difference signed.

/// The length of every message in bytes.
pub const LENGTH: usize = 80;
/// The version that is spoken here.
pub const VERSION: u8 = 1;
const MAGIC: [u8; 4] = *b"APCK";

/// Kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// "What time is it?"
    Request = 1,
    /// The answer.
    Answer = 2,
    /// The answer to a request of another version; only the head counts.
    OtherVersion = 3,
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Kind of the message.
    pub kind: Kind,
    /// True if T2 is the kernel's.
    pub kernel_receive: bool,
    /// Random number of the session, drawn by the client.
    pub session: u64,
    /// The number of the exchange.
    pub number: u32,
    /// The number of the exchange of which `earlier_transmit_ns` is T3.
    pub earlier_number: u32,
    /// T1.
    pub origin_ns: u64,
    /// T2.
    pub receive_ns: u64,
    /// T3.
    pub transmit_ns: u64,
    /// The kernel's T3 of an earlier answer; 0 for none.
    pub earlier_transmit_ns: u64,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC.
    pub ahead_ns: i64,
    /// Identity of the sender's clock.
    pub identity: u64,
}

/// Reason for which bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoMessage {
    /// They are something else.
    Foreign,
    /// They are a message of another version.
    Version(u8),
}

impl Message {
    /// A request.
    pub fn request(session: u64, number: u32, origin_ns: u64, identity: u64) -> Message {
        Message {
            kind: Kind::Request,
            kernel_receive: false,
            session,
            number,
            earlier_number: 0,
            origin_ns,
            receive_ns: 0,
            transmit_ns: 0,
            earlier_transmit_ns: 0,
            ahead_ns: 0,
            identity,
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC);
        put(4, &[VERSION, self.kind as u8, u8::from(self.kernel_receive)]);
        put(8, &self.session.to_be_bytes());
        put(16, &self.number.to_be_bytes());
        put(20, &self.earlier_number.to_be_bytes());
        put(24, &self.origin_ns.to_be_bytes());
        put(32, &self.receive_ns.to_be_bytes());
        put(40, &self.transmit_ns.to_be_bytes());
        put(48, &self.earlier_transmit_ns.to_be_bytes());
        put(56, &self.ahead_ns.to_be_bytes());
        put(64, &self.identity.to_be_bytes());
        bytes
    }

    /// The message that `bytes` are.
    ///
    /// # Errors
    /// When they are none.
    pub fn decode(bytes: &[u8]) -> Result<Message, NoMessage> {
        if bytes.len() < LENGTH || bytes[..4] != MAGIC {
            return Err(NoMessage::Foreign);
        }
        if bytes[4] != VERSION {
            return Err(NoMessage::Version(bytes[4]));
        }
        let kind = match bytes[5] {
            1 => Kind::Request,
            2 => Kind::Answer,
            3 => Kind::OtherVersion,
            _ => return Err(NoMessage::Foreign),
        };
        if bytes.len() != LENGTH {
            return Err(NoMessage::Foreign);
        }
        let word = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        Ok(Message {
            kind,
            kernel_receive: bytes[6] & 1 != 0,
            session: word(8),
            number: half(16),
            earlier_number: half(20),
            origin_ns: word(24),
            receive_ns: word(32),
            transmit_ns: word(40),
            earlier_transmit_ns: word(48),
            ahead_ns: word(56).cast_signed(),
            identity: word(64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_as_it_went() {
        let message = Message {
            kind: Kind::Answer,
            kernel_receive: true,
            session: u64::MAX - 1,
            number: 3,
            earlier_number: 2,
            origin_ns: 5,
            receive_ns: 6,
            transmit_ns: 7,
            earlier_transmit_ns: 8,
            ahead_ns: -9,
            identity: 10,
        };
        let bytes = message.encode();
        assert_eq!(Message::decode(&bytes), Ok(message));
        assert_eq!(Message::decode(&bytes[..LENGTH - 1]), Err(NoMessage::Foreign));
        let mut other = bytes;
        other[4] = 9;
        assert_eq!(Message::decode(&other), Err(NoMessage::Version(9)));
        other[0] = b'X';
        assert_eq!(Message::decode(&other), Err(NoMessage::Foreign));
        assert_eq!(Message::decode(&[]), Err(NoMessage::Foreign));
    }
}
