// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The decompressor: RFC 1144, sections 3.2.4 and 4, with what it makes of packets after a loss.
//!
//! It sees the octets of the header as the line brought them. Where an error made them say that the header goes on in
//! the data of the packet, whose contents a machine does not have, the slot is spoiled: nothing that refers to it can
//! be rebuilt, until an uncompressed packet fills it anew.

use airpath_packet::protocol::TCP;

use super::header::{self, Header, tcp};
use super::{ACKNOWLEDGEMENT, CONNECTION, IDENTIFICATION, PUSH, SEQUENCE, URGENT, WINDOW};
use super::{Options, SPECIAL_DATA, SPECIAL_INTERACTIVE, SPECIALS};
use crate::line_header::Octets;

/// Contents of a slot.
#[derive(Clone, Debug)]
enum Slot {
    /// Nothing has come for it.
    Empty,
    /// The last header.
    Last(Header),
    /// A header that is not known.
    Spoiled,
}

/// The receiving end of one direction.
#[derive(Clone, Debug)]
pub struct Decompressor {
    slots: Vec<Slot>,
    /// Slot of the last packet that told one.
    last: u8,
    /// True if packets without a slot identifier are tossed: something got lost, and the slot may have changed with it.
    tosses: bool,
}

impl Decompressor {
    /// A decompressor whose slots are empty.
    pub fn new(options: Options) -> Decompressor {
        Decompressor { slots: vec![Slot::Empty; options.slots.into()], last: 0, tosses: true }
    }

    /// A frame was damaged, and has been discarded.
    pub fn lose(&mut self) {
        self.tosses = true;
    }

    /// The header of a packet of uncompressed TCP with these octets; none if it is tossed.
    pub(super) fn uncompressed(&mut self, octets: &[u8]) -> Option<Octets> {
        let slot = *octets.get(header::PROTOCOL)?;
        if usize::from(slot) >= self.slots.len() {
            self.tosses = true;
            return None;
        }
        (self.last, self.tosses) = (slot, false);
        let mut restored: Octets = octets.into();
        restored[header::PROTOCOL] = TCP;
        self.slots[usize::from(slot)] = Header::of(&restored).map_or(Slot::Spoiled, Slot::Last);
        Some(restored)
    }

    /// The header of a packet of compressed TCP with these octets in front of `data` octets of contents; none if it is
    /// tossed, or cannot be rebuilt.
    pub(super) fn compressed(&mut self, octets: &[u8], data: u32) -> Option<Octets> {
        let rebuilt = self.rebuild(&mut Reader { octets, place: 0 }, data);
        rebuilt.unwrap_or_else(|EndOfHeader| {
            self.slots[usize::from(self.last)] = Slot::Spoiled;
            None
        })
    }

    fn rebuild(&mut self, reader: &mut Reader<'_>, data: u32) -> Result<Option<Octets>, EndOfHeader> {
        let mask = reader.octet()?;
        if mask & CONNECTION != 0 {
            let slot = reader.octet()?;
            if !self.slots.get(usize::from(slot)).is_some_and(|slot| !matches!(slot, Slot::Empty)) {
                self.tosses = true;
                return Ok(None);
            }
            (self.last, self.tosses) = (slot, false);
        } else if self.tosses {
            return Ok(None);
        }
        let Slot::Last(old) = &self.slots[usize::from(self.last)] else { return Ok(None) };
        let mut header = old.clone();
        header.set_tcp(tcp::CHECKSUM, &reader.pair()?);
        let flag = |header: &mut Header, flag: u8, is_set: bool| {
            let flags = header.tcp_octet_mut(tcp::FLAGS);
            *flags = if is_set { *flags | flag } else { *flags & !flag };
        };
        flag(&mut header, tcp::PSH, mask & PUSH != 0);
        let changes = mask & SPECIALS;
        let is_special = changes == SPECIAL_INTERACTIVE || changes == SPECIAL_DATA;
        let is_urgent = !is_special && mask & URGENT != 0;
        flag(&mut header, tcp::URG, is_urgent);
        let add = |header: &mut Header, field: std::ops::Range<usize>, difference: u32| {
            let number = header.tcp_long(field.clone()).wrapping_add(difference);
            header.set_tcp(field, &number.to_be_bytes());
        };
        if is_special {
            if changes == SPECIAL_INTERACTIVE {
                add(&mut header, tcp::ACKNOWLEDGEMENT, old.data());
            }
            add(&mut header, tcp::SEQUENCE, old.data());
        } else {
            if is_urgent {
                header.set_tcp(tcp::URGENT, &reader.number()?.to_be_bytes());
            }
            if mask & WINDOW != 0 {
                let window = old.tcp_word(tcp::WINDOW).wrapping_add(reader.number()?);
                header.set_tcp(tcp::WINDOW, &window.to_be_bytes());
            }
            if mask & ACKNOWLEDGEMENT != 0 {
                add(&mut header, tcp::ACKNOWLEDGEMENT, reader.number()?.into());
            }
            if mask & SEQUENCE != 0 {
                add(&mut header, tcp::SEQUENCE, reader.number()?.into());
            }
        }
        let difference = if mask & IDENTIFICATION != 0 { reader.number()? } else { 1 };
        let identification = old.ip_word(header::IDENTIFICATION).wrapping_add(difference);
        header.set_ip(header::IDENTIFICATION, &identification.to_be_bytes());
        // Octets of the header that it does not take belong to the data.
        let rest = reader.rest();
        let length = (header.len() as u32).wrapping_add(data).wrapping_add(rest) as u16;
        header.set_ip(header::TOTAL_LENGTH, &length.to_be_bytes());
        let checksum = header.right_checksum();
        header.set_ip(header::IP_CHECKSUM, &checksum);
        let rebuilt = (rest == 0).then(|| header[..].into());
        self.slots[usize::from(self.last)] = Slot::Last(header);
        Ok(rebuilt)
    }
}

/// The octets of a header end before what they tell does: it goes on in the data of the packet, or behind its end.
struct EndOfHeader;

/// Octets of a compressed header, one after the other.
struct Reader<'a> {
    octets: &'a [u8],
    place: usize,
}

impl Reader<'_> {
    fn octet(&mut self) -> Result<u8, EndOfHeader> {
        let octet = self.octets.get(self.place).ok_or(EndOfHeader)?;
        self.place += 1;
        Ok(*octet)
    }

    fn pair(&mut self) -> Result<[u8; 2], EndOfHeader> {
        Ok([self.octet()?, self.octet()?])
    }

    fn number(&mut self) -> Result<u16, EndOfHeader> {
        match self.octet()? {
            0 => Ok(u16::from_be_bytes(self.pair()?)),
            short => Ok(short.into()),
        }
    }

    /// Octets that have not been read.
    fn rest(&self) -> u32 {
        (self.octets.len() - self.place) as u32
    }
}
