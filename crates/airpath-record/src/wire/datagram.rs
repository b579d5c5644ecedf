// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Datagrams. Each begins with "AR", its kind, the number of the phase, and the token of the session; numbers
//! are big-endian.
//!
//! | kind | behind the first 8 bytes |
//! |---|---|
//! | 1 hello (client: "this is my port") | nothing |
//! | 2 welcome (server: "heard") | nothing |
//! | 3 probe | its number (4), time of sending in ns since 1970 (8), filler |
//! | 4 feedback | highest number (4), arrivals so far (4), time of sending of the last arrival (8), its arrival (8), time from there to this feedback in ns (4) |

/// Bytes of a probe before its filler.
pub const PROBE_BYTES: usize = 20;
const HEAD_BYTES: usize = 8;
const MAGIC: [u8; 2] = *b"AR";

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// Request of the client to be heard.
    Hello,
    /// Answer of the server.
    Welcome,
    /// Packet of the load.
    Probe {
        /// Number within its phase and direction, the first being 0.
        number: u32,
        /// Time of sending in ns since 1970, by the sender's clock.
        sent_ns: u64,
    },
    /// State of a receiver.
    Feedback(Feedback),
}

/// Report of a receiver to a saturating sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Highest number that has arrived.
    pub highest: u32,
    /// Number of arrivals.
    pub arrived: u32,
    /// Time of sending of the last arrival, by the sender's clock, in ns since 1970.
    pub last_sent_ns: u64,
    /// Time of the last arrival, by the receiver's clock, in ns since 1970.
    pub last_arrived_ns: u64,
    /// Time from the last arrival to this feedback, in ns.
    pub held_ns: u32,
}

/// A datagram with its session and phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addressed {
    /// Token of the session.
    pub token: u32,
    /// Number of the phase, modulo 256.
    pub phase: u8,
    /// The datagram.
    pub datagram: Datagram,
}

impl Addressed {
    /// Bytes on the wire.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, rest): (u8, Vec<u8>) = match self.datagram {
            Datagram::Hello => (1, Vec::new()),
            Datagram::Welcome => (2, Vec::new()),
            Datagram::Probe { number, sent_ns } => {
                (3, [&number.to_be_bytes()[..], &sent_ns.to_be_bytes()[..]].concat())
            }
            Datagram::Feedback(feedback) => (
                4,
                [
                    &feedback.highest.to_be_bytes()[..],
                    &feedback.arrived.to_be_bytes()[..],
                    &feedback.last_sent_ns.to_be_bytes()[..],
                    &feedback.last_arrived_ns.to_be_bytes()[..],
                    &feedback.held_ns.to_be_bytes()[..],
                ]
                .concat(),
            ),
        };
        let mut bytes = vec![MAGIC[0], MAGIC[1], kind, self.phase];
        bytes.extend(self.token.to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    /// The datagram that `bytes` begin with; none for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Addressed> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        if head[..2] != MAGIC {
            return None;
        }
        let half = |at: usize| rest.get(at..at + 4).map(|part| u32::from_be_bytes(part.try_into().expect("4 bytes")));
        let word = |at: usize| rest.get(at..at + 8).map(|part| u64::from_be_bytes(part.try_into().expect("8 bytes")));
        let datagram = match head[2] {
            1 => Datagram::Hello,
            2 => Datagram::Welcome,
            3 => Datagram::Probe { number: half(0)?, sent_ns: word(4)? },
            4 => Datagram::Feedback(Feedback {
                highest: half(0)?,
                arrived: half(4)?,
                last_sent_ns: word(8)?,
                last_arrived_ns: word(16)?,
                held_ns: half(24)?,
            }),
            _ => return None,
        };
        let token = u32::from_be_bytes(head[4..].try_into().expect("4 bytes"));
        Some(Addressed { token, phase: head[3], datagram })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_survive_the_wire() {
        let feedback = Feedback { highest: 9, arrived: 8, last_sent_ns: 7, last_arrived_ns: u64::MAX, held_ns: 5 };
        let kinds = [
            Datagram::Hello,
            Datagram::Welcome,
            Datagram::Probe { number: u32::MAX, sent_ns: 3 },
            Datagram::Feedback(feedback),
        ];
        for datagram in kinds {
            let sent = Addressed { token: 0xdead_beef, phase: 255, datagram };
            let mut bytes = sent.encode();
            assert_eq!(Addressed::decode(&bytes), Some(sent));
            assert!((0..bytes.len()).all(|length| Addressed::decode(&bytes[..length]).is_none()));
            // Filler follows a probe.
            bytes.extend([0; 100]);
            assert_eq!(Addressed::decode(&bytes), Some(sent));
        }
        let probe = Addressed { token: 1, phase: 0, datagram: Datagram::Probe { number: 2, sent_ns: 3 } };
        assert_eq!(probe.encode(), [b'A', b'R', 3, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(Addressed::decode(b"APCK\x00\x00\x00\x00\x00"), None);
        assert_eq!(Addressed::decode(b"AR\x09\x00\x00\x00\x00\x00"), None);
    }
}
