// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Options of LCP, RFC 1661, section 6, RFC 1662, section 7, and RFC 1570, section 2.1.

use crate::authentication::Method;
use crate::framing::DEFAULT_CHARACTER_MAP;
use crate::negotiation::{Opinion, Options};
use crate::options::{ConfigurationOption, append};

const MRU: u8 = 1;
const CHARACTER_MAP: u8 = 2;
const AUTHENTICATION: u8 = 3;
const MAGIC_NUMBER: u8 = 5;
const PROTOCOL_COMPRESSION: u8 = 7;
const ADDRESS_COMPRESSION: u8 = 8;
const SEQUENCES: u8 = 9;

/// The sequence of 32 bits among the FCS-Alternatives (RFC 1570, 2.1), and that of 16 bits.
const SEQUENCE_32: u8 = 4;
const SEQUENCE_16: u8 = 2;

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
    /// Authentication of the two ends, as far as LCP agrees on it.
    pub authentication: LcpAuthentication,
    /// We ask for frames with a sequence of 32 bits.
    pub wants_long_sequences: bool,
    rejected: [bool; 10],
    /// MRU and character map that we ask for first.
    configured: (u16, u32),
    /// Number of magic numbers made.
    draws: u32,
}

/// Part of LCP in authentication.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LcpAuthentication {
    /// We have a name and a password.
    pub can_say: bool,
    /// Demanded of the peer.
    pub demanded: Option<Method>,
    /// Demanded by the peer, and agreed.
    pub agreed: Option<Method>,
}

/// Form of frames that the peer takes, as agreed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerTakes {
    pub mru_bytes: u16,
    pub character_map: u32,
    pub compressed_address: bool,
    pub compressed_protocol: bool,
    pub long_sequences: bool,
}

impl Default for PeerTakes {
    fn default() -> Self {
        Self {
            mru_bytes: DEFAULT_MRU_BYTES,
            character_map: DEFAULT_CHARACTER_MAP,
            compressed_address: false,
            compressed_protocol: false,
            long_sequences: false,
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
            authentication: LcpAuthentication::default(),
            wants_long_sequences: false,
            rejected: [false; 10],
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

    /// Method by which the peer has agreed to say who it is.
    pub fn of_peers(&self) -> Option<Method> {
        self.authentication.demanded.filter(|_| !self.rejected[usize::from(AUTHENTICATION)])
    }

    /// True if frames of the peer have a sequence of 32 bits.
    pub fn long_sequences_received(&self) -> bool {
        self.wants_long_sequences && !self.rejected[usize::from(SEQUENCES)]
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
        self.rejected = [false; 10];
        self.authentication.agreed = None;
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
        if let Some(method) = self.of_peers() {
            append(list, AUTHENTICATION, method.option());
        }
        if wanted(MAGIC_NUMBER) {
            append(list, MAGIC_NUMBER, &self.magic_number.to_be_bytes());
        }
        for kind in [PROTOCOL_COMPRESSION, ADDRESS_COMPRESSION] {
            if wanted(kind) {
                append(list, kind, &[]);
            }
        }
        if self.long_sequences_received() {
            append(list, SEQUENCES, &[SEQUENCE_32]);
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
            (SEQUENCES, [SEQUENCE_16 | SEQUENCE_32]) => Opinion::Good,
            // None at all, or several at once.
            (SEQUENCES, [_]) => Opinion::Rather(vec![SEQUENCE_32]),
            (AUTHENTICATION, method) if self.authentication.can_say => match Method::of_option(method) {
                Some(_) => Opinion::Good,
                None => Opinion::Rather(Method::Chap.option().to_vec()),
            },
            _ => Opinion::Refused,
        }
    }

    fn agree(&mut self, options: &[ConfigurationOption<'_>]) {
        self.peer = PeerTakes::default();
        self.authentication.agreed = None;
        // Only our own requests come back on a loop, and they are never agreed to.
        self.loops = 0;
        for option in options {
            match *option {
                (MRU, &[high, low]) => self.peer.mru_bytes = u16::from_be_bytes([high, low]),
                (CHARACTER_MAP, &[a, b, c, d]) => self.peer.character_map = u32::from_be_bytes([a, b, c, d]),
                (PROTOCOL_COMPRESSION, _) => self.peer.compressed_protocol = true,
                (ADDRESS_COMPRESSION, _) => self.peer.compressed_address = true,
                (SEQUENCES, &[kind]) => self.peer.long_sequences = kind == SEQUENCE_32,
                (AUTHENTICATION, method) => self.authentication.agreed = Method::of_option(method),
                _ => {}
            }
        }
    }

    fn take_nak(&mut self, option: ConfigurationOption<'_>) {
        match option {
            (MRU, &[high, low]) => self.mru_bytes = u16::from_be_bytes([high, low]).clamp(128, self.mru_bytes),
            (CHARACTER_MAP, &[a, b, c, d]) => self.character_map |= u32::from_be_bytes([a, b, c, d]),
            (MAGIC_NUMBER, _) => self.magic_number = self.other_magic_number(),
            // Whoever would rather have something else does not do what we demand.
            (AUTHENTICATION | SEQUENCES, _) => self.take_reject(option),
            _ => {}
        }
    }

    fn take_reject(&mut self, (kind, _): ConfigurationOption<'_>) {
        if let Some(rejected) = self.rejected.get_mut(usize::from(kind)) {
            *rejected = true;
        }
    }
}
