// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Talking to the guest's kernel through its management console, a datagram socket.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MAGIC: u32 = 0xcafe_babe;
const VERSION: u32 = 2;
const DATA_BYTES: usize = 512;
const REQUEST_HEAD_BYTES: usize = 12;
const REPLY_HEAD_BYTES: usize = 12;

/// A management console.
#[derive(Debug)]
pub struct Console {
    socket: UnixDatagram,
    kernel: PathBuf,
}

impl Console {
    /// A console of the kernel that listens at `kernel`, which answers to a socket made at `own`.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn new(kernel: PathBuf, own: &Path) -> io::Result<Console> {
        let socket = UnixDatagram::bind(own)?;
        Ok(Console { socket, kernel })
    }

    /// Has the kernel carry out `command`; what it answers within `patience`.
    ///
    /// # Errors
    /// When it does not listen, does not answer, or refuses.
    pub fn ask(&self, command: &str, patience: Duration) -> io::Result<String> {
        self.socket.set_read_timeout(Some(patience))?;
        self.socket.send_to(&request(command), &self.kernel)?;
        let mut text = String::new();
        loop {
            let mut buffer = [0; REPLY_HEAD_BYTES + DATA_BYTES];
            let count = self.socket.recv(&mut buffer)?;
            let reply = Reply::parse(&buffer[..count]).ok_or(io::ErrorKind::InvalidData)?;
            text.push_str(&reply.text);
            if reply.failed {
                return Err(io::Error::other(text));
            }
            if !reply.more {
                return Ok(text);
            }
        }
    }
}

/// Magic number, version, length, and the text in a field of fixed size.
fn request(command: &str) -> Vec<u8> {
    let text = &command.as_bytes()[..command.len().min(DATA_BYTES - 1)];
    let mut message = Vec::with_capacity(REQUEST_HEAD_BYTES + DATA_BYTES);
    for word in [MAGIC, VERSION, text.len() as u32] {
        message.extend_from_slice(&word.to_ne_bytes());
    }
    message.extend_from_slice(text);
    message.resize(REQUEST_HEAD_BYTES + DATA_BYTES, 0);
    message
}

struct Reply {
    failed: bool,
    more: bool,
    text: String,
}

impl Reply {
    fn parse(message: &[u8]) -> Option<Reply> {
        let (head, data) = message.split_at_checked(REPLY_HEAD_BYTES)?;
        let word = |index: usize| {
            let bytes = head[4 * index..4 * index + 4].try_into().expect("a word has four bytes");
            u32::from_ne_bytes(bytes)
        };
        let data = &data[..data.len().min(word(2) as usize)];
        let text = String::from_utf8_lossy(data).trim_end_matches('\0').to_owned();
        Some(Reply { failed: word(0) != 0, more: word(1) != 0, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(failed: u32, more: u32, text: &str) -> Vec<u8> {
        let words = [failed, more, text.len() as u32].map(u32::to_ne_bytes).concat();
        [words, text.as_bytes().to_vec()].concat()
    }

    #[test]
    fn an_answer_in_parts_is_put_together() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = UnixDatagram::bind(folder.path().join("kernel")).unwrap();
        let console = Console::new(folder.path().join("kernel"), &folder.path().join("own")).unwrap();
        let answering = std::thread::spawn(move || {
            for answers in [vec![reply(0, 1, "one, "), reply(0, 0, "two\0")], vec![reply(1, 0, "no such command")]] {
                let mut message = [0; 1024];
                let (count, from) = kernel.recv_from(&mut message).unwrap();
                assert_eq!(count, 524);
                assert_eq!(&message[12..19], b"sysrq p");
                for answer in answers {
                    kernel.send_to(&answer, from.as_pathname().unwrap()).unwrap();
                }
            }
        });
        let patience = Duration::from_secs(10);
        assert_eq!(console.ask("sysrq p", patience).unwrap(), "one, two");
        assert_eq!(console.ask("sysrq p", patience).unwrap_err().to_string(), "no such command");
        answering.join().unwrap();
        console.ask("sysrq p", Duration::from_millis(1)).unwrap_err();
    }
}
