// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The compressor: RFC 1144, section 3.2.3.

use super::header::{self, Header, tcp};
use super::{ACKNOWLEDGEMENT, CONNECTION, IDENTIFICATION, PUSH, SEQUENCE, URGENT, WINDOW};
use super::{Options, SPECIAL_DATA, SPECIAL_INTERACTIVE};
use crate::line_header::{Form, Octets};

/// The sending end of one direction.
#[derive(Clone, Debug)]
pub struct Compressor {
    options: Options,
    /// Slots in use, the most recently used first: their identifiers, and the last header of each.
    slots: Vec<(u8, Header)>,
    /// Slot of the last packet of TCP that was not sent as regular IP.
    last: Option<u8>,
}

impl Compressor {
    /// A compressor whose slots are empty.
    pub fn new(options: Options) -> Compressor {
        Compressor { options, slots: Vec::new(), last: None }
    }

    /// The form and the octets in which `header` goes over the line; none if its packet goes as regular IP.
    pub(super) fn compress(&mut self, header: &Header) -> Option<(Form, Octets)> {
        let flags = header.tcp_octet(tcp::FLAGS);
        if flags & (tcp::RST_SYN_FIN | tcp::ACK) != tcp::ACK {
            return None;
        }
        let place = self.slots.iter().position(|(_, known)| is_same_connection(known, header));
        let slot = match place {
            Some(place) => self.slots[place].0,
            // The least recently used one, once all are in use.
            None if self.slots.len() < usize::from(self.options.slots) => self.slots.len() as u8,
            None => self.slots.last().map_or(0, |(slot, _)| *slot),
        };
        let changes = place.and_then(|place| changes(&self.slots[place].1, header));
        match place {
            Some(place) => drop(self.slots.remove(place)),
            None if self.slots.len() == usize::from(self.options.slots) => drop(self.slots.pop()),
            None => {}
        }
        self.slots.insert(0, (slot, header.clone()));
        let is_told = self.options.compress_slot_id && self.last == Some(slot);
        self.last = Some(slot);
        let Some((mask, differences)) = changes else {
            let mut octets: Octets = header[..].into();
            octets[header::PROTOCOL] = slot;
            return Some((Form::Uncompressed, octets));
        };
        let mut octets = Octets::new();
        octets.push(if is_told { mask } else { mask | CONNECTION });
        octets.extend((!is_told).then_some(slot));
        octets.extend_from_slice(header.tcp(tcp::CHECKSUM));
        octets.extend_from_slice(&differences);
        Some((Form::Compressed, octets))
    }
}

fn is_same_connection(one: &Header, other: &Header) -> bool {
    one.ip(header::ADDRESSES) == other.ip(header::ADDRESSES) && one.tcp(tcp::PORTS) == other.tcp(tcp::PORTS)
}

/// True if all is the same that a compressed header does not tell.
fn is_same_otherwise(one: &Header, other: &Header) -> bool {
    // Version and header length are in the first octet.
    let told = tcp::URG | tcp::PSH;
    one[0] == other[0]
        && one[header::TYPE_OF_SERVICE] == other[header::TYPE_OF_SERVICE]
        && one.ip(header::FRAGMENT) == other.ip(header::FRAGMENT)
        && one[header::TIME_TO_LIVE] == other[header::TIME_TO_LIVE]
        && one.ip_options() == other.ip_options()
        && one.tcp_octet(tcp::OFFSET) == other.tcp_octet(tcp::OFFSET)
        && one.tcp_octet(tcp::FLAGS) & !told == other.tcp_octet(tcp::FLAGS) & !told
        && one.tcp_options() == other.tcp_options()
}

/// Change mask and differences from the header `old` to `new`, of the same connection; none if `new` goes uncompressed.
fn changes(old: &Header, new: &Header) -> Option<(u8, Octets)> {
    if !is_same_otherwise(old, new) {
        return None;
    }
    let (mut mask, mut octets) = (0, Octets::new());
    let flags = new.tcp_octet(tcp::FLAGS);
    let urgent = new.tcp_word(tcp::URGENT);
    if flags & tcp::URG != 0 {
        mask |= URGENT;
        encode(urgent, &mut octets);
    } else if urgent != old.tcp_word(tcp::URGENT) {
        return None;
    }
    let window = new.tcp_word(tcp::WINDOW).wrapping_sub(old.tcp_word(tcp::WINDOW));
    if window != 0 {
        mask |= WINDOW;
        encode(window, &mut octets);
    }
    let difference = |field: std::ops::Range<usize>| {
        // Numbers that go back are far ahead: a repetition goes uncompressed.
        u16::try_from(new.tcp_long(field.clone()).wrapping_sub(old.tcp_long(field))).ok()
    };
    let acknowledgement = difference(tcp::ACKNOWLEDGEMENT)?;
    if acknowledgement != 0 {
        mask |= ACKNOWLEDGEMENT;
        encode(acknowledgement, &mut octets);
    }
    let sequence = difference(tcp::SEQUENCE)?;
    if sequence != 0 {
        mask |= SEQUENCE;
        encode(sequence, &mut octets);
    }
    let data = old.data();
    match mask {
        // The same again is a repetition or a probe, in case the other end missed it; but data behind an
        // acknowledgement without data are new.
        0 if new.data() == 0 || data != 0 => return None,
        // What the special cases mean, by other differences.
        SPECIAL_INTERACTIVE | SPECIAL_DATA => return None,
        _ if mask == SEQUENCE | ACKNOWLEDGEMENT && sequence == acknowledgement && u32::from(sequence) == data => {
            (mask, octets) = (SPECIAL_INTERACTIVE, Octets::new());
        }
        SEQUENCE if u32::from(sequence) == data => (mask, octets) = (SPECIAL_DATA, Octets::new()),
        _ => {}
    }
    let identification = new.ip_word(header::IDENTIFICATION).wrapping_sub(old.ip_word(header::IDENTIFICATION));
    if identification != 1 {
        mask |= IDENTIFICATION;
        encode(identification, &mut octets);
    }
    if flags & tcp::PSH != 0 {
        mask |= PUSH;
    }
    Some((mask, octets))
}

/// Writes a number: 1 to 255 in one octet, others behind an octet of 0 in two.
fn encode(number: u16, octets: &mut Octets) {
    match u8::try_from(number) {
        Ok(short) if short != 0 => octets.push(short),
        _ => {
            octets.push(0);
            octets.extend(number.to_be_bytes());
        }
    }
}
