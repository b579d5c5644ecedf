// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Bytes of packets as they came to the link, beyond the headers of the input log: those of the captures beside it.

use std::path::Path;

use airpath_core::PduId;

use crate::error::LogError;
use crate::files::capture_name;
use crate::manifest::Manifest;
use crate::pcapng::Interface;
use crate::read::capture::{CaptureLog, CapturedPacket};
use crate::tables::inputs::InputRow;

/// The captures of a run, read along with its input log.
#[derive(Default)]
pub(super) struct Contents {
    /// By the number of the port.
    ports: Vec<Option<PortContents>>,
}

struct PortContents {
    log: CaptureLog,
    /// The next packet that came in.
    next: Option<CapturedPacket>,
}

impl PortContents {
    /// Reads on to the next packet that came in; a file that breaks off ends there.
    fn advance(&mut self) {
        let mut packets = self.log.by_ref().map_while(Result::ok);
        self.next = packets.find(|packet| packet.interface == Interface::Rx && packet.pdu.is_some());
    }
}

impl Contents {
    /// The captures in `folder`; none of a run without them, and where the manifest cannot be read.
    ///
    /// # Errors
    /// When a capture cannot be opened.
    pub fn open(folder: &Path) -> Result<Contents, LogError> {
        let Ok(manifest) = Manifest::read(folder) else { return Ok(Contents::default()) };
        let open = |port: &String| {
            let path = folder.join(capture_name(port));
            if !path.exists() {
                return Ok(None);
            }
            let mut port = PortContents { log: CaptureLog::open(&path)?, next: None };
            port.advance();
            Ok(Some(port))
        };
        Ok(Contents { ports: manifest.places().ports().iter().map(open).collect::<Result<_, LogError>>()? })
    }

    /// The bytes that are known of the packet of `input`, whose rows come in order: of its capture, or its headers.
    pub fn of<'a, 'input: 'a>(&'a mut self, input: &InputRow<'input>) -> Option<&'a [u8]> {
        let captured = input.port.zip(input.pdu).and_then(|(port, pdu)| self.captured(port, pdu));
        // A capture may hold less than the headers (`--snaplen`).
        match (captured, input.header) {
            (Some(bytes), Some(header)) if bytes.len() < header.len() => Some(header),
            (captured, header) => captured.or(header),
        }
    }

    fn captured(&mut self, port: u16, pdu: PduId) -> Option<&[u8]> {
        let port = self.ports.get_mut(usize::from(port))?.as_mut()?;
        while port.next.as_ref().is_some_and(|packet| packet.pdu < Some(pdu)) {
            port.advance();
        }
        port.next.as_ref().filter(|packet| packet.pdu == Some(pdu)).map(CapturedPacket::packet)
    }
}
