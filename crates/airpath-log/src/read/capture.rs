// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reading the captures that this crate wrote, also those whose writer died in the middle.

use std::fs::File;
use std::io::{self, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use airpath_core::PduId;
use airpath_packet::capture::{Block, BlockReader, CaptureProblem, Order, pcapng};
use airpath_packet::ethernet::EthernetHeader;

use crate::error::LogError;
use crate::pcapng::{Interface, Kept, LINK};
use crate::place;

/// No block that this crate writes comes near this size.
const MAX_BLOCK_BYTES: u32 = 1 << 20;

/// One packet of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedPacket {
    /// Point at which it was seen.
    pub interface: Interface,
    /// Time of capture, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Its length on the link in bytes, with its link header if it has one.
    pub length: u32,
    /// The bytes kept of it, of its link header first.
    pub bytes: Vec<u8>,
    /// Bytes of its link header, as far as they were kept.
    pub link_bytes: usize,
    /// Its PDU.
    pub pdu: Option<PduId>,
    /// Comment on it.
    pub comment: Option<String>,
}

impl CapturedPacket {
    /// The bytes kept of it behind its link header.
    pub fn packet(&self) -> &[u8] {
        &self.bytes[self.link_bytes..]
    }
}

/// Source of the points at which the packets of a file's interface were seen.
#[derive(Clone, Copy)]
enum Declared {
    /// The interface itself, as in earlier files.
    At(Interface),
    /// The flags of each packet.
    ByFlags,
}

/// A capture of a run's folder, packet by packet.
pub struct CaptureLog {
    path: PathBuf,
    /// Length of the file when it was opened: it may still be written.
    file_bytes: u64,
    blocks: BlockReader<Take<BufReader<File>>>,
    block: Block,
    /// The block is a packet that was met in search of interfaces.
    is_packet_next: bool,
    interfaces: Vec<Declared>,
    kept: Kept,
    ended: bool,
    torn_bytes: u64,
}

impl CaptureLog {
    /// Opens the capture at `path`.
    ///
    /// # Errors
    /// When it is missing or no capture that this crate wrote.
    pub fn open(path: &Path) -> Result<CaptureLog, LogError> {
        let io = |source| LogError::io(LogError::READ, path, source);
        let file = place::open_regular(path).map_err(io)?;
        let file_bytes = file.metadata().map_err(io)?.len();
        let reader = BufReader::with_capacity(1 << 16, file).take(file_bytes);
        let mut log = CaptureLog {
            path: path.to_owned(),
            file_bytes,
            blocks: BlockReader::new(reader, MAX_BLOCK_BYTES),
            block: Block::default(),
            is_packet_next: false,
            interfaces: Vec::new(),
            kept: Kept { snaplen: u32::MAX, link_headers: false },
            ended: false,
            torn_bytes: 0,
        };
        let foreign = |what: &str| LogError::content(path, what, "use Wireshark for captures of other programs");
        if log.read_block().map_err(io)? != Some(pcapng::SECTION) || log.block.order() != Order::Little {
            return Err(foreign("it is not a capture of Airpath"));
        }
        while log.interfaces.len() < Interface::ALL.len() {
            match log.read_block().map_err(io)? {
                Some(pcapng::INTERFACE) => {
                    let interface = log.block.interface().ok().flatten();
                    let known = interface.and_then(|interface| Some((declared(interface.name?)?, kept(&interface)?)));
                    let (declared, kept) = known.ok_or_else(|| foreign("it has interfaces of another program"))?;
                    log.interfaces.push(declared);
                    log.kept = kept;
                    if matches!(log.interfaces[..], [Declared::ByFlags]) {
                        break;
                    }
                }
                Some(pcapng::PACKET) => {
                    log.is_packet_next = true;
                    break;
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok(log)
    }

    /// The part of each packet that it holds.
    pub fn kept(&self) -> Kept {
        self.kept
    }

    /// Number of bytes at the end that were an incomplete block and are left out; known once the last packet
    /// has been read.
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// Reads the whole capture at `path`, and returns the number of bytes at its end that are no complete
    /// block.
    ///
    /// # Errors
    /// When it is missing, no capture that this crate wrote, or damaged before its end.
    pub fn check(path: &Path) -> Result<u64, LogError> {
        let mut log = CaptureLog::open(path)?;
        log.by_ref().try_for_each(|packet| packet.map(drop))?;
        Ok(log.torn_bytes())
    }

    /// Reads the next whole block; its kind, or `None` at the end or at a torn tail: what is no block
    /// is what a killed writer or machine left behind.
    fn read_block(&mut self) -> io::Result<Option<u32>> {
        if self.ended {
            return Ok(None);
        }
        match self.blocks.read(&mut self.block) {
            Ok(true) => return Ok(Some(self.block.kind())),
            Ok(false) => {}
            Err(error) => {
                if let CaptureProblem::Io(source) = error.problem {
                    self.ended = true;
                    return Err(source);
                }
            }
        }
        self.ended = true;
        self.torn_bytes = self.file_bytes - self.blocks.next_place().offset;
        Ok(None)
    }

    fn decode(&self) -> Option<CapturedPacket> {
        let packet = self.block.packet().ok()??;
        let declared = *self.interfaces.get(packet.interface as usize)?;
        let (mut flags, mut pdu, mut comment) = (0, None, None);
        for option in packet.options {
            match option.code {
                pcapng::PACKET_FLAGS => flags = self.block.order().u32(option.value, 0)?,
                pcapng::OPTION_COMMENT => comment = Some(String::from_utf8_lossy(option.value).into_owned()),
                pcapng::PACKET_ID => pdu = self.block.order().u64(option.value, 0),
                _ => {}
            }
        }
        let interface = match declared {
            Declared::At(interface) => interface,
            Declared::ByFlags => Interface::from_flags(flags)?,
        };
        let bytes = packet.bytes.to_vec();
        let link_bytes = match self.kept.link_headers {
            true => EthernetHeader::read(&bytes).map_or(bytes.len(), EthernetHeader::bytes),
            false => 0,
        };
        let (unix_ns, length) = (packet.ticks, packet.length);
        Some(CapturedPacket { interface, unix_ns, length, bytes, link_bytes, pdu, comment })
    }
}

/// The part of packets of an interface; none of a link type that is not ours.
fn kept(interface: &pcapng::Interface<'_>) -> Option<Kept> {
    let link_headers = match interface.link_type {
        pcapng::LINKTYPE_RAW => false,
        pcapng::LINKTYPE_ETHERNET => true,
        _ => return None,
    };
    let snaplen = if interface.snaplen > 0 { interface.snaplen } else { u32::MAX };
    Some(Kept { snaplen, link_headers })
}

/// Returns the source declared by an interface of this name; none if the name is not one of ours.
fn declared(name: &[u8]) -> Option<Declared> {
    if name == LINK.as_bytes() {
        return Some(Declared::ByFlags);
    }
    Interface::ALL.into_iter().find(|interface| interface.name().as_bytes() == name).map(Declared::At)
}

impl Iterator for CaptureLog {
    type Item = Result<CapturedPacket, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !std::mem::take(&mut self.is_packet_next) {
            match self.read_block() {
                Ok(Some(pcapng::PACKET)) => break,
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(source) => return Some(Err(LogError::io(LogError::READ, &self.path, source))),
            }
        }
        Some(self.decode().ok_or_else(|| {
            let place = self.block.place();
            let what = format!("its packet at byte {} (block {}) contradicts itself", place.offset, place.number);
            LogError::content(&self.path, what, "the file is damaged")
        }))
    }
}
