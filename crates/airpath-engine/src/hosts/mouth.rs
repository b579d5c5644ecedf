// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Saying something to the other engine, and what it says.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{MsgFlags, send};

use super::wire::Word;

/// Time without a word after which the connection counts as cut.
pub const SILENCE: Duration = Duration::from_secs(10);
/// Time without a word before a run: the near engine prepares other hosts, and may copy its engine there.
pub const PREPARATION: Duration = Duration::from_secs(300);

/// Something that the other engine said and that no thread here has dealt with.
#[derive(Debug, PartialEq)]
pub enum Said {
    /// A word.
    Word(Box<Word>),
    /// Part of a file.
    Chunk(Vec<u8>),
}

/// A way to say words from any thread.
pub struct Mouth(pub OwnedFd);

impl Mouth {
    /// Says `word`; where the connection is gone nobody hears it, and the port tells why.
    pub fn say(&self, word: &Word) {
        self.send(&word.to_frame());
    }

    /// Ends all that is said through the connection: nobody hears it any more.
    pub fn shut(&self) {
        let _ = nix::sys::socket::shutdown(self.0.as_raw_fd(), nix::sys::socket::Shutdown::Both);
    }

    /// Sends part of a file.
    pub fn send(&self, frame: &[u8]) {
        while let Err(nix::errno::Errno::EINTR) = send(self.0.as_raw_fd(), frame, MsgFlags::MSG_NOSIGNAL) {}
    }
}
