// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The last pass over a finished capture: drops become comments on the packets that were dropped.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::pcapng::{Interface, PacketBlock, write_head, write_packet};
use crate::place;
use crate::read::capture::CaptureLog;

/// Rewrites the capture at `path` without the marks of drops.
pub(crate) fn annotate(path: &Path) -> io::Result<()> {
    let mut fates = HashMap::new();
    for packet in CaptureLog::open(path).map_err(io::Error::other)? {
        let packet = packet.map_err(io::Error::other)?;
        if packet.interface == Interface::Drop
            && let (Some(pdu), Some(comment)) = (packet.pdu, packet.comment)
        {
            fates.insert(pdu, comment);
        }
    }
    let log = CaptureLog::open(path).map_err(io::Error::other)?;
    let port = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    place::replace(path, |file| {
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let mut block = Vec::new();
        write_head(&mut block, &port, log.kept());
        out.write_all(&block)?;
        for packet in log {
            let packet = packet.map_err(io::Error::other)?;
            if packet.interface == Interface::Drop {
                continue;
            }
            let fate = packet.pdu.filter(|_| packet.interface == Interface::Rx).and_then(|pdu| fates.get(&pdu));
            block.clear();
            write_packet(
                &mut block,
                &PacketBlock {
                    interface: packet.interface,
                    unix_ns: packet.unix_ns,
                    length: packet.length,
                    bytes: &packet.bytes,
                    pdu: packet.pdu,
                    comment: fate.or(packet.comment.as_ref()).map(String::as_str),
                },
            );
            out.write_all(&block)?;
        }
        out.flush()
    })
}
