// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Options of LCP, RFC 1661, section 6, and RFC 1662, section 7.

use crate::framing::DEFAULT_CHARACTER_MAP;
use crate::negotiation::{Opinion, Options};
use crate::options::{ConfigurationOption, append};

const MRU: u8 = 1;
const CHARACTER_MAP: u8 = 2;
const MAGIC_NUMBER: u8 = 5;
const PROTOCOL_COMPRESSION: u8 = 7;
const ADDRESS_COMPRESSION: u8 = 8;

/// Longest information field of a peer that says nothing else.
pub(crate) const DEFAULT_MRU_BYTES: u16 = 1500;

/// Options of the two ends of the line.
#[derive(Debug)]
pub(crate) struct Lcp {
    pub magic_number: u32,
    pub mru_bytes: u16,
    /// Characters that the peer is asked to escape.
    pub character_map: u32,
    /// Frames that the peer takes.
    pub peer: PeerTakes,
    /// Requests of the peer with our own magic number, one after the other.
    pub loops: u32,
    rejected: [bool; 9],
    /// MRU and character map that we ask for first.
    configured: (u16, u32),
    /// Number of magic numbers made.
    draws: u32,
}

/// Form of frames that the peer takes, as agreed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerTakes {
    pub mru_bytes: u16,
    pub character_map: u32,
    pub compressed_address: bool,
    pub compressed_protocol: bool,
}

impl Default for PeerTakes {
    fn default() -> Self {
        Self {
            mru_bytes: DEFAULT_MRU_BYTES,
            character_map: DEFAULT_CHARACTER_MAP,
            compressed_address: false,
            compressed_protocol: false,
        }
    }
}

impl Lcp {
    pub fn new(magic_number: u32, mru_bytes: u16, character_map: u32) -> Self {
        let magic_number = magic_number.max(1);
        Self {
            magic_number,
            mru_bytes,
            character_map,
            peer: PeerTakes::default(),
            loops: 0,
            rejected: [false; 9],
            configured: (mru_bytes, character_map),
            draws: 0,
        }
    }

    /// Magic number for packets: 0 where the peer does not know them (RFC 1661, 5.8).
    pub fn magic_number_agreed(&self) -> u32 {
        if self.rejected[usize::from(MAGIC_NUMBER)] { 0 } else { self.magic_number }
    }

    /// Characters that the line may insert: the peer escapes those that it sends.
    pub fn map_of_received(&self) -> u32 {
        if self.rejected[usize::from(CHARACTER_MAP)] { DEFAULT_CHARACTER_MAP } else { self.character_map }
    }

    /// Another number than ours.
    fn other_magic_number(&mut self) -> u32 {
        self.draws = self.draws.wrapping_add(1);
        let mixed = (self.magic_number ^ self.draws.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0x9e37_79b1);
        let drawn = (mixed ^ mixed >> 15).max(1);
        if drawn == self.magic_number { drawn.wrapping_add(1).max(1) } else { drawn }
    }
}

impl Options for Lcp {
    fn begin(&mut self) {
        (self.mru_bytes, self.character_map) = self.configured;
        self.rejected = [false; 9];
        self.peer = PeerTakes::default();
        self.loops = 0;
    }

    fn request(&self, list: &mut Vec<u8>) {
        let wanted = |kind: u8| !self.rejected[usize::from(kind)];
        if self.mru_bytes != DEFAULT_MRU_BYTES && wanted(MRU) {
            append(list, MRU, &self.mru_bytes.to_be_bytes());
        }
        if wanted(CHARACTER_MAP) {
            append(list, CHARACTER_MAP, &self.character_map.to_be_bytes());
        }
        if wanted(MAGIC_NUMBER) {
            append(list, MAGIC_NUMBER, &self.magic_number.to_be_bytes());
        }
        for kind in [PROTOCOL_COMPRESSION, ADDRESS_COMPRESSION] {
            if wanted(kind) {
                append(list, kind, &[]);
            }
        }
    }

    fn judge(&mut self, (kind, data): ConfigurationOption<'_>) -> Opinion {
        match (kind, data) {
            (MRU, &[high, low]) if u16::from_be_bytes([high, low]) < 128 => Opinion::Rather(vec![0, 128]),
            (MAGIC_NUMBER, &[a, b, c, d]) => {
                let peers = u32::from_be_bytes([a, b, c, d]);
                if peers != self.magic_number && peers != 0 {
                    self.loops = 0;
                    return Opinion::Good;
                }
                self.loops += u32::from(peers != 0);
                Opinion::Rather(self.other_magic_number().to_be_bytes().to_vec())
            }
            (MRU, [_, _]) | (CHARACTER_MAP, [_, _, _, _]) => Opinion::Good,
            (PROTOCOL_COMPRESSION | ADDRESS_COMPRESSION, []) => Opinion::Good,
            _ => Opinion::Refused,
        }
    }

    fn agree(&mut self, options: &[ConfigurationOption<'_>]) {
        self.peer = PeerTakes::default();
        // Only our own requests come back on a loop, and they are never agreed to.
        self.loops = 0;
        for option in options {
            match *option {
                (MRU, &[high, low]) => self.peer.mru_bytes = u16::from_be_bytes([high, low]),
                (CHARACTER_MAP, &[a, b, c, d]) => self.peer.character_map = u32::from_be_bytes([a, b, c, d]),
                (PROTOCOL_COMPRESSION, _) => self.peer.compressed_protocol = true,
                (ADDRESS_COMPRESSION, _) => self.peer.compressed_address = true,
                _ => {}
            }
        }
    }

    fn take_nak(&mut self, option: ConfigurationOption<'_>) {
        match option {
            (MRU, &[high, low]) => self.mru_bytes = u16::from_be_bytes([high, low]).clamp(128, self.mru_bytes),
            (CHARACTER_MAP, &[a, b, c, d]) => self.character_map |= u32::from_be_bytes([a, b, c, d]),
            (MAGIC_NUMBER, _) => self.magic_number = self.other_magic_number(),
            _ => {}
        }
    }

    fn take_reject(&mut self, (kind, _): ConfigurationOption<'_>) {
        if let Some(rejected) = self.rejected.get_mut(usize::from(kind)) {
            *rejected = true;
        }
    }
}
