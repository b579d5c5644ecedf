// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets of adaptive media: RTP with the time of sending, and the receiver's feedback.
//!
//! A media packet has an RTP header (RFC 3550) with an extension of one byte (RFC 8285): the time
//! of sending as a number of 24 bits in 1/2^18 s ("abs-send-time"). Its payload begins with the
//! number of the frame, the place in the frame, and the number of the frame's packets. Feedback is
//! an application-defined RTCP packet (RFC 3550, section 6.7) with the fields of RFC 8698, section
//! 5.3, and what a round trip time needs.

use airpath_core::{Span, Time};
use airpath_workload::kinds::ADAPTIVE_RTP_BYTES;

use super::nada::Signal;

/// Bytes before the payload of a frame: the RTP header, its extension, and the place in the frame.
pub(super) const HEADER_BYTES: usize = ADAPTIVE_RTP_BYTES as usize;
/// Bytes of the feedback.
pub(super) const FEEDBACK_BYTES: usize = 36;

const VERSION_2: u8 = 0x80;
const EXTENDED: u8 = 0x10;
const MARKER: u8 = 0x80;
/// The first of the dynamic payload types (RFC 3551, section 3).
const PAYLOAD_TYPE: u8 = 96;
/// The clock of video (RFC 3551).
const CLOCK_HZ: u64 = 90_000;
const ONE_BYTE_EXTENSION: u16 = 0xbede;
/// Extension 1 with three bytes.
const SEND_TIME: u8 = 0x12;
const APPLICATION_DEFINED: u8 = 204;
const NAME: [u8; 4] = *b"NADA";
const STAMP_BITS: u32 = 24;
const STAMPS_PER_SECOND_BITS: u32 = 18;

/// A time as 24 bits, in 1/2^18 s, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(u32);

impl Stamp {
    pub(super) fn at(at: Time) -> Stamp {
        let ticks = (u128::from(at.nanos()) << STAMPS_PER_SECOND_BITS) / 1_000_000_000;
        Stamp(ticks as u32 & ((1 << STAMP_BITS) - 1))
    }

    /// Time from the stamp to `now`, modulo 64 s.
    pub(super) fn until(self, now: Time) -> Span {
        let ticks = Stamp::at(now).0.wrapping_sub(self.0) & ((1 << STAMP_BITS) - 1);
        Span::from_nanos((u64::from(ticks) * 1_000_000_000) >> STAMPS_PER_SECOND_BITS)
    }
}

/// The header of a media packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Counts packets, modulo 2^16.
    pub sequence: u16,
    /// Identifier of the sender.
    pub source: u32,
    pub sent: Stamp,
    /// Number of the frame, by its capture time.
    pub frame: u32,
    /// Place of the packet in the frame, and the frame's number of packets.
    pub place: u16,
    pub packets: u16,
}

impl Header {
    /// Writes the header; `frames_per_second` gives the stamp of RTP.
    pub(super) fn write(&self, frames_per_second: u64, packet: &mut [u8]) {
        let is_last = self.place + 1 == self.packets;
        let timestamp = (u64::from(self.frame) * CLOCK_HZ / frames_per_second) as u32;
        packet[0] = VERSION_2 | EXTENDED;
        packet[1] = if is_last { MARKER | PAYLOAD_TYPE } else { PAYLOAD_TYPE };
        packet[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        packet[4..8].copy_from_slice(&timestamp.to_be_bytes());
        packet[8..12].copy_from_slice(&self.source.to_be_bytes());
        packet[12..14].copy_from_slice(&ONE_BYTE_EXTENSION.to_be_bytes());
        packet[14..16].copy_from_slice(&1_u16.to_be_bytes());
        packet[16] = SEND_TIME;
        packet[17..20].copy_from_slice(&self.sent.0.to_be_bytes()[1..]);
        packet[20..24].copy_from_slice(&self.frame.to_be_bytes());
        packet[24..26].copy_from_slice(&self.place.to_be_bytes());
        packet[26..28].copy_from_slice(&self.packets.to_be_bytes());
    }

    /// Reads a header; none where there is none of ours.
    pub(super) fn read(packet: &[u8]) -> Option<Header> {
        let header = packet.first_chunk::<HEADER_BYTES>()?;
        let is_ours = header[0] == VERSION_2 | EXTENDED
            && header[1] & !MARKER == PAYLOAD_TYPE
            && short(header, 12) == ONE_BYTE_EXTENSION
            && header[16] == SEND_TIME;
        is_ours.then(|| Header {
            sequence: short(header, 2),
            source: word(header, 8),
            sent: Stamp(u32::from_be_bytes([0, header[17], header[18], header[19]])),
            frame: word(header, 20),
            place: short(header, 24),
            packets: short(header, 26),
        })
    }
}

/// The receiver's feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Feedback {
    /// Identifier of the media's sender.
    pub source: u32,
    /// Counts reports.
    pub number: u32,
    pub signal: Signal,
    /// Stamp of the latest packet that came, and the time since then.
    pub latest: Stamp,
    pub held: Span,
}

impl Feedback {
    pub(super) fn write(&self, packet: &mut [u8]) {
        packet[0] = VERSION_2 | u8::from(self.signal.may_ramp_up);
        packet[1] = APPLICATION_DEFINED;
        packet[2..4].copy_from_slice(&((FEEDBACK_BYTES / 4 - 1) as u16).to_be_bytes());
        packet[4..8].copy_from_slice(&self.source.to_be_bytes());
        packet[8..12].copy_from_slice(&NAME);
        packet[12..16].copy_from_slice(&self.number.to_be_bytes());
        packet[16..20].copy_from_slice(&whole(self.signal.congestion_ms * 1e3).to_be_bytes());
        packet[20..24].copy_from_slice(&whole(self.signal.received_bits_per_second).to_be_bytes());
        packet[24..28].copy_from_slice(&self.latest.0.to_be_bytes());
        packet[28..36].copy_from_slice(&self.held.nanos().to_be_bytes());
    }

    /// Reads feedback; none where there is none of ours.
    pub(super) fn read(packet: &[u8]) -> Option<Feedback> {
        let packet = packet.first_chunk::<FEEDBACK_BYTES>()?;
        let is_ours = packet[0] & !1 == VERSION_2 && packet[1] == APPLICATION_DEFINED && packet[8..12] == NAME;
        is_ours.then(|| Feedback {
            source: word(packet, 4),
            number: word(packet, 12),
            signal: Signal {
                congestion_ms: f64::from(word(packet, 16)) / 1e3,
                received_bits_per_second: f64::from(word(packet, 20)),
                may_ramp_up: packet[0] & 1 == 1,
            },
            latest: Stamp(word(packet, 24) & ((1 << STAMP_BITS) - 1)),
            held: Span::from_nanos(u64::from(word(packet, 28)) << 32 | u64::from(word(packet, 32))),
        })
    }
}

/// The nearest whole number that fits.
fn whole(value: f64) -> u32 {
    value.round().clamp(0.0, f64::from(u32::MAX)) as u32
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_laid_out_as_the_standards_say_and_reads_back() {
        let sent = Stamp::at(Time::from_nanos(1_500_000_000));
        let header = Header { sequence: 0x1234, source: 0xdead_beef, sent, frame: 45, place: 1, packets: 2 };
        let mut packet = [0; 30];
        header.write(30, &mut packet);
        // 45 frames at 30 a second are 135,000 ticks; 1.5 s are 6 × 2^16 of 1/2^18 s.
        let expected = [
            0x90, 0xe0, 0x12, 0x34, 0, 2, 0x0f, 0x58, 0xde, 0xad, 0xbe, 0xef, 0xbe, 0xde, 0, 1, 0x12, 6, 0, 0, 0, 0, 0,
            45, 0, 1, 0, 2, 0, 0,
        ];
        assert_eq!(packet, expected);
        assert_eq!(Header::read(&packet), Some(header));
        assert_eq!(Header::read(&packet[..27]), None);
        packet[12] ^= 1;
        assert_eq!(Header::read(&packet), None);
    }

    #[test]
    fn a_stamp_tells_the_time_since_then_across_its_wrap() {
        for sent_ms in [0, 63_900, 64_000, 200_001] {
            let sent = Time::from_nanos(sent_ms * 1_000_000);
            let passed = Stamp::at(sent).until(sent + Span::from_millis(350));
            let error = passed.nanos().abs_diff(350_000_000);
            assert!(error <= 3_815, "{error} ns at {sent_ms} ms");
        }
    }

    #[test]
    fn feedback_reads_back() {
        let signal = Signal { congestion_ms: 12.345, received_bits_per_second: 987_654.0, may_ramp_up: true };
        let held = Span::from_micros(1_234);
        let feedback = Feedback { source: 7, number: 8, signal, latest: Stamp(0x0012_3456), held };
        let mut packet = [0; FEEDBACK_BYTES];
        feedback.write(&mut packet);
        assert_eq!(&packet[..4], &[0x81, 204, 0, 8]);
        assert_eq!(Feedback::read(&packet), Some(feedback));
        assert_eq!(Feedback::read(&packet[..35]), None);
        packet[8] = b'X';
        assert_eq!(Feedback::read(&packet), None);
    }
}
