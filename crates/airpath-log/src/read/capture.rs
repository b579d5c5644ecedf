//! Reading the captures that this crate wrote, also those whose writer died in the middle.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use airpath_core::PduId;

use crate::error::LogError;
use crate::pcapng::{self, Interface};
use crate::place;

/// No block that this crate writes comes near this size.
const MAX_BLOCK_BYTES: u32 = 1 << 20;

/// One packet of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedPacket {
    /// Where it was seen.
    pub interface: Interface,
    /// When, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Its length on the link in bytes.
    pub length: u32,
    /// The bytes kept of it.
    pub bytes: Vec<u8>,
    /// Its PDU.
    pub pdu: Option<PduId>,
    /// What was noted about it.
    pub comment: Option<String>,
}

/// What an interface of a file says of its packets.
#[derive(Clone, Copy)]
enum Declared {
    /// Where they were seen; so in earlier files.
    At(Interface),
    /// That their flags tell where they were seen.
    ByFlags,
}

/// A capture of a run's folder, packet by packet.
pub struct CaptureLog {
    path: PathBuf,
    reader: BufReader<File>,
    left: u64,
    interfaces: Vec<Declared>,
    snaplen: u32,
    block: Vec<u8>,
    next: Option<Vec<u8>>,
    torn_bytes: u64,
}

impl CaptureLog {
    /// Opens the capture at `path`.
    ///
    /// # Errors
    /// When it is missing or no capture that this crate wrote.
    pub fn open(path: &Path) -> Result<CaptureLog, LogError> {
        let io = |source| LogError::io("read", path, source);
        let file = place::open_regular(path).map_err(io)?;
        let mut log = CaptureLog {
            path: path.to_owned(),
            left: file.metadata().map_err(io)?.len(),
            reader: BufReader::with_capacity(1 << 16, file),
            interfaces: Vec::new(),
            snaplen: u32::MAX,
            block: Vec::new(),
            next: None,
            torn_bytes: 0,
        };
        let foreign = |what: &str| LogError::content(path, what, "use Wireshark for captures of other programs");
        if log.read_block().map_err(io)? != Some(pcapng::SECTION) || u32_at(&log.block, 0) != Some(pcapng::BYTE_ORDER) {
            return Err(foreign("it is not a capture of Airpath"));
        }
        while log.interfaces.len() < Interface::ALL.len() {
            match log.read_block().map_err(io)? {
                Some(pcapng::INTERFACE) => {
                    let options = log.block.get(8..).unwrap_or_default();
                    let name = options_of(options).find(|(code, _)| *code == pcapng::INTERFACE_NAME);
                    let declared = name.and_then(|(_, name)| declared(name));
                    log.interfaces.push(declared.ok_or_else(|| foreign("it has interfaces of another program"))?);
                    log.snaplen = u32_at(&log.block, 4).filter(|snaplen| *snaplen > 0).unwrap_or(u32::MAX);
                    if matches!(log.interfaces[..], [Declared::ByFlags]) {
                        break;
                    }
                }
                Some(pcapng::PACKET) => {
                    log.next = Some(std::mem::take(&mut log.block));
                    break;
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok(log)
    }

    /// How many bytes of each packet were kept at most; `u32::MAX` for all.
    pub fn snaplen(&self) -> u32 {
        self.snaplen
    }

    /// How many bytes at the end were an incomplete block and are left out; known once the last
    /// packet has been read.
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// Looks through the capture at `path`; how many bytes at its end are no complete block.
    ///
    /// # Errors
    /// When it is missing, no capture that this crate wrote, or damaged before its end.
    pub fn check(path: &Path) -> Result<u64, LogError> {
        let mut log = CaptureLog::open(path)?;
        log.by_ref().try_for_each(|packet| packet.map(drop))?;
        Ok(log.torn_bytes())
    }

    /// Reads the body of the next whole block; `None` at the end or at a torn tail.
    fn read_block(&mut self) -> io::Result<Option<u32>> {
        let mut torn = || {
            self.torn_bytes = self.left;
            Ok(None)
        };
        if self.left < 12 {
            return torn();
        }
        let mut head = [0; 8];
        self.reader.read_exact(&mut head)?;
        let kind = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
        let length = u32::from_le_bytes(head[4..].try_into().expect("four bytes"));
        if !(12..=MAX_BLOCK_BYTES).contains(&length) || length % 4 != 0 || u64::from(length) > self.left {
            return torn();
        }
        self.block.resize(length as usize - 8, 0);
        self.reader.read_exact(&mut self.block)?;
        if u32_at(&self.block, self.block.len() - 4) != Some(length) {
            return torn();
        }
        self.block.truncate(length as usize - 12);
        self.left -= u64::from(length);
        Ok(Some(kind))
    }

    fn decode(&self, body: &[u8]) -> Option<CapturedPacket> {
        let declared = *self.interfaces.get(u32_at(body, 0)? as usize)?;
        let unix_ns = u64::from(u32_at(body, 4)?) << 32 | u64::from(u32_at(body, 8)?);
        let kept = u32_at(body, 12)? as usize;
        let length = u32_at(body, 16)?;
        let bytes = body.get(20..20usize.checked_add(kept)?)?.to_vec();
        let options = body.get(20 + kept.next_multiple_of(4)..).unwrap_or_default();
        let (mut flags, mut pdu, mut comment) = (0, None, None);
        for (code, value) in options_of(options) {
            match code {
                pcapng::PACKET_FLAGS => flags = u32_at(value, 0)?,
                pcapng::OPTION_COMMENT => comment = Some(String::from_utf8_lossy(value).into_owned()),
                pcapng::PACKET_ID => pdu = value.try_into().ok().map(u64::from_le_bytes),
                _ => {}
            }
        }
        let interface = match declared {
            Declared::At(interface) => interface,
            Declared::ByFlags => Interface::from_flags(flags)?,
        };
        Some(CapturedPacket { interface, unix_ns, length, bytes, pdu, comment })
    }
}

/// What the interface of this name says of its packets, if it is one of ours.
fn declared(name: &[u8]) -> Option<Declared> {
    if name == pcapng::LINK.as_bytes() {
        return Some(Declared::ByFlags);
    }
    Interface::ALL.into_iter().find(|interface| interface.name().as_bytes() == name).map(Declared::At)
}

impl Iterator for CaptureLog {
    type Item = Result<CapturedPacket, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let body = match self.next.take() {
                Some(body) => body,
                None => match self.read_block() {
                    Ok(Some(pcapng::PACKET)) => std::mem::take(&mut self.block),
                    Ok(Some(_)) => continue,
                    Ok(None) => return None,
                    Err(source) => {
                        self.left = 0;
                        return Some(Err(LogError::io("read", &self.path, source)));
                    }
                },
            };
            let packet = self.decode(&body);
            self.block = body;
            return Some(packet.ok_or_else(|| {
                LogError::content(&self.path, "a packet block is inconsistent", "the file is damaged")
            }));
        }
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset.checked_add(4)?)?.try_into().ok()?))
}

/// The options in `bytes`: codes and values.
fn options_of(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let code = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
        let length = usize::from(u16::from_le_bytes(bytes.get(2..4)?.try_into().ok()?));
        if code == pcapng::OPTION_END {
            return None;
        }
        let value = bytes.get(4..4 + length)?;
        bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}
