// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Writes a temporary file over and over, each time down to the disk. The file has no name, so that
//! nothing of it stays however the process ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{Kind, Work};

const BLOCK_BYTES: usize = 1 << 20;
const FILE_BLOCKS: u64 = 16;

struct Disk {
    file: File,
    block: Vec<u8>,
    written: u64,
}

impl Work for Disk {
    fn step(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.block, self.written % FILE_BLOCKS * BLOCK_BYTES as u64)?;
        self.file.sync_all()?;
        self.written += 1;
        Ok(())
    }
}

fn prepare() -> io::Result<Box<dyn Work>> {
    Ok(Box::new(Disk { file: tempfile::tempfile()?, block: vec![0x5a; BLOCK_BYTES], written: 0 }))
}

pub const KIND: Kind =
    Kind { name: "disk", what: "writes 1 MiB at a time to a temporary file, and to the disk", prepare };
