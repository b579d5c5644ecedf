// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Contents of the blocks of pcapng.

use super::block::Block;
pub use super::block::{BYTE_ORDER, SECTION};
use super::error::{CaptureError, CaptureProblem};
use super::order::Order;
use super::resolution::Resolution;

/// The kind of an interface description block.
pub const INTERFACE: u32 = 1;
/// The kind of a packet block, which enhanced packet blocks have replaced.
pub const OLD_PACKET: u32 = 2;
/// The kind of a simple packet block: one without a time.
pub const SIMPLE_PACKET: u32 = 3;
/// The kind of an interface statistics block.
pub const STATISTICS: u32 = 5;
/// The kind of an enhanced packet block.
pub const PACKET: u32 = 6;

/// The link type of packets that begin with their IP header.
pub const LINKTYPE_RAW: u16 = 101;
/// The link type of packets that begin with their Ethernet header.
pub const LINKTYPE_ETHERNET: u16 = 1;

/// The option that ends a list of options.
pub const OPTION_END: u16 = 0;
/// A comment, in any block.
pub const OPTION_COMMENT: u16 = 1;
/// The application that wrote a section.
pub const SECTION_APPLICATION: u16 = 4;
/// The name of an interface.
pub const INTERFACE_NAME: u16 = 2;
/// The description of an interface.
pub const INTERFACE_DESCRIPTION: u16 = 3;
/// The resolution of stamps of an interface.
pub const INTERFACE_RESOLUTION: u16 = 9;
/// The time from which stamps of an interface count, in seconds since 1970.
pub const INTERFACE_EPOCH: u16 = 14;
/// The flags of a packet, with its direction.
pub const PACKET_FLAGS: u16 = 2;
/// The number that a packet has wherever it is captured.
pub const PACKET_ID: u16 = 5;
const STATISTICS_START: u16 = 2;
const STATISTICS_END: u16 = 3;

/// Offset of the options in the body of an interface, and of statistics.
const INTERFACE_OPTIONS: usize = 8;
const STATISTICS_OPTIONS: usize = 12;
/// Offset of the stamp in the body of a packet, of either kind, and of statistics.
const STAMP: usize = 4;
const STAMP_BYTES: usize = 8;
/// Offset of the captured bytes in the body of a packet, of either kind.
const PACKET_BYTES: usize = 20;

/// An interface on which packets were captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface<'a> {
    /// Link type of its packets, of libpcap's registry.
    pub link_type: u16,
    /// Greatest number of bytes kept of each packet; 0 for all.
    pub snaplen: u32,
    /// Resolution of its stamps.
    pub resolution: Resolution,
    /// Its name, if it has one.
    pub name: Option<&'a [u8]>,
}

/// A captured packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The number of its interface in the section.
    pub interface: u32,
    /// Time of capture, in ticks of the interface's resolution.
    pub ticks: u64,
    /// Its length in bytes when it was captured.
    pub length: u32,
    /// The bytes kept of it.
    pub bytes: &'a [u8],
    /// The options noted with it.
    pub options: Options<'a>,
}

/// An option of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice<'a> {
    /// The number of its kind.
    pub code: u16,
    /// Its value.
    pub value: &'a [u8],
    /// Offset of the value in the block's body.
    pub at: usize,
}

/// The options of a block, up to one that does not fit into it.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    body: &'a [u8],
    order: Order,
    at: usize,
}

impl<'a> Iterator for Options<'a> {
    type Item = Choice<'a>;

    fn next(&mut self) -> Option<Choice<'a>> {
        let code = self.order.u16(self.body, self.at)?;
        let length = usize::from(self.order.u16(self.body, self.at + 2)?);
        if code == OPTION_END {
            return None;
        }
        let at = self.at + 4;
        let value = self.body.get(at..at + length)?;
        self.at = at + length.next_multiple_of(4);
        Some(Choice { code, value, at })
    }
}

impl Block {
    fn options(&self, at: usize) -> Options<'_> {
        Options { body: self.body(), order: self.order(), at }
    }

    /// The interface that this block describes; none for other blocks.
    ///
    /// # Errors
    /// When it is too short, or has stamps of no sensible resolution.
    pub fn interface(&self) -> Result<Option<Interface<'_>>, CaptureError> {
        if self.kind() != INTERFACE {
            return Ok(None);
        }
        let (order, body) = (self.order(), self.body());
        let (Some(link_type), Some(snaplen)) = (order.u16(body, 0), order.u32(body, 4)) else {
            return Err(self.error(CaptureProblem::Short));
        };
        let (mut exponent, mut epoch, mut name) = (6, 0, None);
        for Choice { code, value, .. } in self.options(INTERFACE_OPTIONS) {
            match (code, value) {
                (INTERFACE_NAME, value) => name = Some(value),
                (INTERFACE_RESOLUTION, [value]) => exponent = *value,
                (INTERFACE_RESOLUTION, _) => return Err(self.error(CaptureProblem::Resolution)),
                (INTERFACE_EPOCH, value) if value.len() == 8 => {
                    epoch = order.u64(value, 0).unwrap_or_default().cast_signed();
                }
                _ => {}
            }
        }
        let resolution = Resolution::new(exponent, epoch).ok_or_else(|| self.error(CaptureProblem::Resolution))?;
        Ok(Some(Interface { link_type, snaplen, resolution, name }))
    }

    /// The packet that this block holds with a time; none for other blocks.
    ///
    /// # Errors
    /// When the packet is longer than the block.
    pub fn packet(&self) -> Result<Option<Packet<'_>>, CaptureError> {
        let (order, body) = (self.order(), self.body());
        let read = || {
            let interface = match self.kind() {
                PACKET => order.u32(body, 0)?,
                _ => u32::from(order.u16(body, 0)?),
            };
            let kept = order.u32(body, 12)? as usize;
            let length = order.u32(body, 16)?;
            let bytes = body.get(PACKET_BYTES..PACKET_BYTES.checked_add(kept)?)?;
            let options = self.options(PACKET_BYTES + kept.next_multiple_of(4));
            Some(Packet { interface, ticks: self.stamp(STAMP)?, length, bytes, options })
        };
        match self.kind() {
            PACKET | OLD_PACKET => read().map(Some).ok_or_else(|| self.error(CaptureProblem::Short)),
            _ => Ok(None),
        }
    }

    /// The interface by whose clock this block is stamped, and where its stamps stand: of packets,
    /// and of statistics with when they begin and end. None for blocks without stamps.
    ///
    /// # Errors
    /// When the block is too short.
    pub fn stamps(&self) -> Result<Option<(u32, Vec<usize>)>, CaptureError> {
        let interface = match self.kind() {
            PACKET | STATISTICS => self.order().u32(self.body(), 0),
            OLD_PACKET => self.order().u16(self.body(), 0).map(u32::from),
            _ => return Ok(None),
        };
        let mut places = vec![STAMP];
        if self.kind() == STATISTICS {
            let is_stamp = |option: &Choice<'_>| {
                matches!(option.code, STATISTICS_START | STATISTICS_END) && option.value.len() == STAMP_BYTES
            };
            places.extend(self.options(STATISTICS_OPTIONS).filter(is_stamp).map(|option| option.at));
        }
        match (interface, self.stamp(STAMP)) {
            (Some(interface), Some(_)) => Ok(Some((interface, places))),
            _ => Err(self.error(CaptureProblem::Short)),
        }
    }

    /// The stamp at one of the places of [`Block::stamps`], in ticks.
    pub fn stamp(&self, at: usize) -> Option<u64> {
        let (order, body) = (self.order(), self.body());
        Some(u64::from(order.u32(body, at)?) << 32 | u64::from(order.u32(body, at + 4)?))
    }

    /// Writes the stamp at one of the places of [`Block::stamps`], in ticks.
    pub fn set_stamp(&mut self, at: usize, ticks: u64) {
        let order = self.order();
        if let Some(stamp) = self.body_mut().get_mut(at..).and_then(<[u8]>::first_chunk_mut::<STAMP_BYTES>) {
            stamp[..4].copy_from_slice(&order.bytes((ticks >> 32) as u32));
            stamp[4..].copy_from_slice(&order.bytes(ticks as u32));
        }
    }
}
