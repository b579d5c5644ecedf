// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Escapes that a packet takes in HDLC-like framing.
//!
//! Source: RFC 1662, sections 4.2 (octet stuffing), 7.1 (the control characters of ACCM) and C (FCS). A model has
//! no contents of packets: its driver counts their escapes where packets come in, and a replay reads the number.

/// An octet that is always escaped: a flag.
const FLAG: u8 = 0x7e;
/// An octet that is always escaped: an escape.
const ESCAPE: u8 = 0x7d;
/// The octets that ACCM chooses from are those below this.
const CONTROL_CHARACTERS: u8 = 0x20;

/// Number of escapes of a PDU in HDLC-like framing; unknown where nobody has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Escapes(u16);

impl Escapes {
    /// Nobody has counted.
    pub const UNKNOWN: Escapes = Escapes(u16::MAX);
    /// Maximum number: no packet has more octets.
    pub const LIMIT: u16 = u16::MAX - 1;

    /// A number of escapes, [`Escapes::LIMIT`] at most.
    pub fn new(count: usize) -> Escapes {
        Escapes(count.min(usize::from(Escapes::LIMIT)) as u16)
    }

    /// The number, if somebody has counted.
    pub fn known(self) -> Option<u16> {
        (self != Escapes::UNKNOWN).then_some(self.0)
    }
}

impl Default for Escapes {
    fn default() -> Escapes {
        Escapes::UNKNOWN
    }
}

/// The framing for which escapes are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Control characters that are escaped: bit n for the octet n.
    pub accm: u32,
    /// True if address and control are sent.
    pub address_control: bool,
    /// Octets of the protocol field: 1 or 2.
    pub protocol_octets: u8,
    /// Octets of the FCS: 2 or 4.
    pub fcs_octets: u8,
    /// Number of octets of the packet that the FCS covers; all of them without it.
    pub fcs_covers: Option<u32>,
}

impl Framing {
    /// True if `octet` is escaped.
    fn escapes_octet(&self, octet: u8) -> bool {
        octet == FLAG || octet == ESCAPE || octet < CONTROL_CHARACTERS && self.accm >> octet & 1 == 1
    }

    /// Number of escapes for one octet of random contents.
    pub fn share(accm: u32) -> f64 {
        f64::from(2 + accm.count_ones()) / 256.0
    }

    /// Number of escapes of an IP packet with these bytes, those of address, control, protocol and FCS included.
    pub fn escapes(&self, packet: &[u8]) -> Escapes {
        let is_ipv6 = packet.first().is_some_and(|first| first >> 4 == 6);
        let front = [0xff, 0x03, 0x00, if is_ipv6 { 0x57 } else { 0x21 }];
        let (address_control, protocol) = front.split_at(2);
        let address_control = if self.address_control { address_control } else { &[] };
        let protocol = &protocol[2 - usize::from(self.protocol_octets.clamp(1, 2))..];
        let covered = &packet[..packet.len().min(self.fcs_covers.map_or(usize::MAX, |octets| octets as usize))];
        let fcs = self.fcs([address_control, protocol, covered]);
        let fcs = &fcs[..usize::from(self.fcs_octets.min(4))];
        let parts = [address_control, protocol, packet, fcs];
        Escapes::new(parts.into_iter().map(|part| self.escapes_of(part)).sum())
    }

    /// Number of escapes of these octets alone.
    pub fn escapes_of(&self, octets: &[u8]) -> usize {
        octets.iter().filter(|octet| self.escapes_octet(**octet)).count()
    }

    /// The octets of the FCS over `parts`, in the order in which the line carries them.
    fn fcs(&self, parts: [&[u8]; 3]) -> [u8; 4] {
        let (table, ones) = if self.fcs_octets == 4 { (&FCS_32, u32::MAX) } else { (&FCS_16, 0xffff) };
        let octets = parts.into_iter().flatten();
        let step = |fcs: u32, octet: &u8| fcs >> 8 ^ table[usize::from(fcs as u8 ^ octet)];
        (octets.fold(ones, step) ^ ones).to_le_bytes()
    }
}

const FCS_16: [u32; 256] = table(0x8408);
const FCS_32: [u32; 256] = table(0xedb8_8320);

/// Remainders of all octets by the polynomial, whose lowest bit is that of the highest power.
const fn table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let (mut remainder, mut bit) = (octet as u32, 0);
        while bit < 8 {
            remainder = remainder >> 1 ^ if remainder & 1 == 1 { polynomial } else { 0 };
            bit += 1;
        }
        table[octet] = remainder;
        octet += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Framing =
        Framing { accm: 0, address_control: true, protocol_octets: 2, fcs_octets: 2, fcs_covers: None };

    /// The check values of CRC-16/X-25 and CRC-32, over "123456789".
    #[test]
    fn the_check_sequences_are_those_of_the_standard() {
        let of = |fcs_octets| Framing { fcs_octets, ..PLAIN }.fcs([b"12", b"345", b"6789"]);
        assert_eq!(of(2), [0x6e, 0x90, 0, 0]);
        assert_eq!(u32::from_le_bytes(of(4)), 0xcbf4_3926);
    }

    /// The good FCS of a frame leaves the standard's constant: the FCS over data and FCS is 0xf0b8 complemented.
    #[test]
    fn a_frame_with_its_own_check_sequence_leaves_the_constant_of_the_standard() {
        let data = [0x45, 0x7e, 0x00, 0xff];
        let fcs = PLAIN.fcs([&[0xff, 0x03], &[0x00, 0x21], &data]);
        let whole = [&data[..], &fcs[..2]].concat();
        assert_eq!(PLAIN.fcs([&[0xff, 0x03], &[0x00, 0x21], &whole])[..2], (!0xf0b8u16).to_le_bytes());
    }

    #[test]
    fn flags_and_escapes_count_always_and_control_characters_by_accm() {
        let count = |framing: Framing, packet: &[u8]| {
            let fcs = framing.fcs([&[0xff, 0x03], &[0x00, 0x21], packet]);
            let in_fcs = fcs[..2].iter().filter(|octet| framing.escapes_octet(**octet)).count();
            usize::from(framing.escapes(packet).known().unwrap()) - in_fcs
        };
        let packet = [0x45, 0x7e, 0x7d, 0x7e, 0x11, 0x13, 0x00, 0x20, 0x7f];
        assert_eq!(count(PLAIN, &packet), 3);
        // XON and XOFF, 0x11 and 0x13.
        assert_eq!(count(Framing { accm: 0x000a_0000, ..PLAIN }, &packet), 5);
        // 0x11, 0x13 and 0x00 of the packet, 0x03 of control and 0x00 of the protocol.
        assert_eq!(count(Framing { accm: u32::MAX, ..PLAIN }, &packet), 8);
        assert_eq!(Framing::share(0), 2.0 / 256.0);
        assert_eq!(Framing::share(u32::MAX), 34.0 / 256.0);
    }

    #[test]
    fn fields_that_are_not_sent_have_no_escapes() {
        let all = Framing { accm: u32::MAX, fcs_octets: 0, ..PLAIN };
        let count = |framing: Framing, packet: &[u8]| framing.escapes(packet).known();
        assert_eq!(count(all, &[0x45]), Some(2));
        assert_eq!(count(Framing { address_control: false, ..all }, &[0x45]), Some(1));
        assert_eq!(count(Framing { address_control: false, protocol_octets: 1, ..all }, &[0x60]), Some(0));
        assert_eq!(Escapes::default().known(), None);
        assert_eq!(count(all, &[0x7e; 70_000]), Some(Escapes::LIMIT));
    }

    #[test]
    fn a_check_sequence_of_the_beginning_ignores_the_rest() {
        let framing = Framing { fcs_covers: Some(1), ..PLAIN };
        // The same escapes in the packet, another end.
        let counts: Vec<_> = (0x40..0x60u8).map(|last| framing.escapes(&[0x45, last])).collect();
        assert!(counts.iter().all(|count| *count == counts[0]));
        assert_eq!(framing.fcs([&[0xff, 0x03], &[0x00, 0x21], &[0x45]]), PLAIN.fcs([&[0xff, 3], &[0, 0x21], &[0x45]]));
    }

    /// The count finds room that was padding; the results of filters have room of their own.
    #[test]
    fn a_pdu_is_no_longer_for_it() {
        let numbers = 8 + 8 + 4 + 2 + 2 + 1 + 1 + 1 + 4 + 16 + 1 + 8 + 8;
        let fields = numbers + size_of::<crate::Matches>() + size_of::<crate::Payload>();
        assert_eq!(size_of::<crate::Pdu>(), fields);
    }
}
