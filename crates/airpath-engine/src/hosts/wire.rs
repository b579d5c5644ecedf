// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Language of the engines of one run: frames, each with its length before it, of packets, of credits for them, of
//! words in JSON, or of the bytes of a file. The first byte of a frame tells which.

use std::io::{self, Read, Write};

use airpath_core::{Credit, Direction};
use airpath_live::ports::credit::{CREDIT, JoinedCredit};
use airpath_live::ports::joined::{self, JoinedPacket, LONGEST_DATAGRAM_BYTES, PACKET};
use airpath_log::histogram::Distribution;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tallies::{LOST, SENT, Tally};
use super::tunnel::Ends;

/// Version of what is said. Engines of different versions do not run together.
pub const PROTOCOL: u32 = 4;
/// The line with which the engine of another host begins, behind whatever a login shell prints.
pub const GREETING: &[u8] = b"\nairpath-remote-hop\n";
/// Limit on what a login shell prints before it.
const LONGEST_PREAMBLE_BYTES: usize = 64 << 10;
const WORD: u8 = 1;
const CHUNK: u8 = 2;
/// The exit status of `ssh`, behind everything else.
const STATUS: u8 = 255;
/// Longest frame of any kind.
pub const LONGEST_FRAME_BYTES: usize = 1 << 20;
/// Number of bytes of a file in a frame: few enough for one datagram of the local sockets.
pub const CHUNK_BYTES: usize = 32 << 10;

const _: () = assert!(LONGEST_DATAGRAM_BYTES <= LONGEST_FRAME_BYTES);

/// A frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<'a> {
    /// A packet that crosses from one host to the other.
    Packet(JoinedPacket<'a>),
    /// A credit for packets of the other direction.
    Credit(JoinedCredit),
    /// A tally of packets that travel beside the connection.
    Tally(Tally),
    /// A word.
    Word(Box<Word>),
    /// Part of the file that a word has announced.
    Chunk(&'a [u8]),
    /// `ssh` has ended with this status.
    Status(u8),
}

/// A host beside another on the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    /// A tunnel by UDP to it for the packets; without it they take the way of all else.
    pub udp: Option<Ends>,
    /// The window of its hop at the border for packets that go there; none without flow control.
    pub window: Option<Window>,
}

/// A window at t = 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Number of packets.
    packets: u32,
    /// Their total length.
    bytes: u64,
}

impl Window {
    /// The window of `credit`, if it tells of one.
    pub fn of(credit: &Credit) -> Option<Window> {
        let window = Window { packets: credit.window_packets, bytes: credit.window_bytes };
        (*credit != Credit::UNLIMITED).then_some(window)
    }

    /// The first credit of a machine with this window.
    pub fn first_credit(this: Option<Window>) -> Credit {
        this.map_or(Credit::UNLIMITED, |Window { packets, bytes }| Credit {
            window_packets: packets,
            window_bytes: bytes,
            ..Credit::UNLIMITED
        })
    }
}

/// A word of one engine to the other. Times are nanoseconds by a clock of the receiver unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case", deny_unknown_fields)]
pub enum Word {
    /// First word of the far engine: its versions.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// The version of Airpath.
        airpath_version: String,
        /// Identity of the host's clock.
        clock_identity: String,
    },
    /// A question for the time, which keeps the connection alive as well.
    Probe {
        /// Its number.
        number: u64,
    },
    /// The answer to a probe, by the clock of the one that answers.
    Told {
        /// The number of the probe.
        number: u64,
        /// Receipt of the probe, by CLOCK_REALTIME.
        receive_ns: u64,
        /// Departure of the answer, by CLOCK_REALTIME.
        transmit_ns: u64,
        /// CLOCK_REALTIME less CLOCK_MONOTONIC.
        ahead_ns: i64,
    },
    /// Description of the run.
    Setup {
        /// The name of the part of the path.
        host: String,
        /// The number of the part, from the client on; the first, 0, is that of the near host.
        number: u16,
        /// The scenario of its hops.
        scenario: String,
        /// Options of `airpath exec`.
        arguments: Vec<String>,
        /// True if the run is recorded into a folder.
        records: bool,
        /// Number of files that follow, which the scenario names.
        files: u32,
        /// The host before this one on the path.
        before: Box<Neighbour>,
        /// The host behind it; none at the last one.
        behind: Option<Box<Neighbour>>,
    },
    /// Ask for what a run that broke off has left in a folder.
    Fetch {
        /// The folder.
        folder: String,
    },
    /// Send the files in the folder of a run as they grow, until the connection ends.
    Follow {
        /// The folder.
        folder: String,
    },
    /// A file of the run has grown; the bytes follow.
    Grown {
        /// Its name in the folder.
        name: String,
        /// The place of the first byte; 0 for a new file, or one in place of another.
        from_byte: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// The folder of the run is made.
    Prepared {
        /// Its path.
        folder: String,
    },
    /// The link is set up, and the server listens.
    Ready {},
    /// t = 0.
    Begin {
        /// By CLOCK_MONOTONIC.
        epoch_ns: u64,
    },
    /// The link has begun.
    Begun {},
    /// The offsets of the clocks of neighbours on the path, for the account of delays between the hosts.
    Offset {
        /// CLOCK_REALTIME of the receiver less that of the host before it.
        before_ns: i64,
        /// CLOCK_REALTIME of the receiver less that of the host behind it.
        behind_ns: i64,
    },
    /// A request to the link, in the language of the control socket.
    Ask {
        /// Its number.
        number: u64,
        /// Instant at which it takes effect, by CLOCK_MONOTONIC; none for at once.
        at_ns: Option<u64>,
        /// True to tell only whether it could be carried out.
        checks: bool,
        /// The request.
        request: Value,
    },
    /// The request is right, and waits for its instant.
    Accepted {
        /// Its number.
        number: u64,
    },
    /// Answer to a request.
    Answered {
        /// Its number.
        number: u64,
        /// The answer.
        answer: Value,
    },
    /// The client's command has ended: end the server's.
    EndServer {},
    /// The server's command has ended.
    ServerEnded {},
    /// End of the run.
    Stop {},
    /// Results of the run.
    Finished {
        /// The manifest.
        manifest: Box<Value>,
        /// The summary.
        summary: Box<Value>,
        /// Delays of packets from the host before to this one.
        before: Distribution,
        /// Delays of packets from the host behind to this one.
        behind: Distribution,
        /// Number of files that follow.
        files: u32,
    },
    /// A file, whose bytes follow.
    File {
        /// Its name in the folder.
        name: String,
        /// Its length.
        bytes: u64,
    },
    /// Everything came.
    Taken {},
    /// The folder of a run that broke off is removed.
    Removed {},
    /// It could not be done, and why.
    Failed {
        /// The message.
        message: String,
    },
}

/// Reads one frame with its first byte; none at the end. A frame that is cut short is an error.
///
/// # Errors
/// Those of `reader`, and a length that no frame has.
pub fn read_frame(reader: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let mut filled = 0;
    while filled < length.len() {
        match reader.read(&mut length[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut frame = vec![0; frame_bytes(length)?];
    reader.read_exact(&mut frame)?;
    Ok(Some(frame))
}

/// Number of bytes of the frame behind this length.
fn frame_bytes(length: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(length) as usize;
    if !(1..=LONGEST_FRAME_BYTES).contains(&length) {
        return Err(invalid(format!("a frame of {length} bytes")));
    }
    Ok(length)
}

/// Writes one frame, in one piece.
///
/// # Errors
/// Those of `writer`.
pub fn write_frame(writer: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(4 + frame.len());
    bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
    bytes.extend_from_slice(frame);
    writer.write_all(&bytes)?;
    writer.flush()
}

/// The first frame in `bytes`, without its length, and the number of bytes that it takes; none while it is not whole.
///
/// # Errors
/// A length that no frame has.
pub fn first_frame(bytes: &[u8]) -> io::Result<Option<(&[u8], usize)>> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = frame_bytes(*length)?;
    Ok(rest.get(..length).map(|frame| (frame, 4 + length)))
}

/// Skips what comes before the greeting. Where `ssh` ended without one, returns its exit status.
///
/// # Errors
/// Those of `reader`, and where there is neither.
pub fn skip_to_greeting(reader: &mut impl Read) -> io::Result<Option<u8>> {
    // What is read is compared byte by byte: a frame follows at once.
    let mut seen = vec![b'\n'];
    let mut byte = [0];
    while !seen.ends_with(GREETING) {
        if seen.len() > LONGEST_PREAMBLE_BYTES {
            return Err(invalid("what it printed is not the greeting of an engine".into()));
        }
        match reader.read(&mut byte) {
            Ok(0) => {
                let frame = seen.len().checked_sub(STATUS_BYTES).map(|from| &seen[from + 4..]);
                return match frame.map(parse) {
                    Some(Ok(Frame::Status(status))) => Ok(Some(status)),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
            Ok(_) => seen.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Meaning of `bytes`, a frame without its length.
///
/// # Errors
/// In words, where they say nothing.
pub fn parse(bytes: &[u8]) -> Result<Frame<'_>, String> {
    match bytes.split_first() {
        Some((&PACKET, _)) => {
            JoinedPacket::read(bytes).map(Frame::Packet).ok_or_else(|| "a packet that contradicts itself".into())
        }
        Some((&CREDIT, _)) => {
            JoinedCredit::read(bytes).map(Frame::Credit).ok_or_else(|| "a credit that is none".into())
        }
        Some((&(SENT | LOST), _)) => Tally::read(bytes).map(Frame::Tally).ok_or_else(|| "a tally that is none".into()),
        Some((&WORD, text)) => {
            serde_json::from_slice(text).map(Frame::Word).map_err(|error| format!("a word that is none: {error}"))
        }
        Some((&CHUNK, bytes)) if !bytes.is_empty() => Ok(Frame::Chunk(bytes)),
        Some((&STATUS, text)) => {
            let status = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
            status.map(Frame::Status).ok_or_else(|| "an exit status that is none".into())
        }
        Some((kind, _)) => Err(format!("a frame of the unknown kind {kind}")),
        None => Err("an empty frame".into()),
    }
}

/// The direction on the path of a frame that goes from one part of it to the next: a packet, a credit or a tally.
pub fn direction_of(frame: &[u8]) -> Option<Direction> {
    joined::direction_of(frame).or_else(|| Tally::read(frame).map(|tally| tally.direction()))
}

impl Word {
    /// The word as a frame without its length.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut frame = vec![WORD];
        serde_json::to_writer(&mut frame, self).expect("words are JSON");
        frame
    }
}

/// Part of a file as a frame without its length.
pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(1 + bytes.len());
    frame.push(CHUNK);
    frame.extend_from_slice(bytes);
    frame
}

/// Bytes of the frame of an exit status, its length included.
const STATUS_BYTES: usize = 8;
/// A command of `sh` that prints the frame of its exit status `$?`.
pub const STATUS_LINE: &str = r"printf '\004\000\000\000\377%3d' $?";

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_packets_and_files_come_as_they_were_sent() {
        let words = [
            Word::Hello { protocol: 1, airpath_version: "1".into(), clock_identity: String::new() },
            Word::Ask { number: 1, at_ns: Some(5), checks: false, request: serde_json::json!({ "describe": {} }) },
            Word::Finished {
                manifest: Box::default(),
                summary: Box::default(),
                before: Distribution::default(),
                behind: Distribution::default(),
                files: 2,
            },
            Word::Stop {},
        ];
        let mut line = b"Welcome!".to_vec();
        line.extend_from_slice(GREETING);
        words.iter().for_each(|word| write_frame(&mut line, &word.to_frame()).unwrap());
        write_frame(&mut line, &chunk(b"bytes")).unwrap();
        let mut reader = line.as_slice();
        assert_eq!(skip_to_greeting(&mut reader).unwrap(), None);
        for word in words {
            let frame = read_frame(&mut reader).unwrap().unwrap();
            assert_eq!(parse(&frame), Ok(Frame::Word(Box::new(word))));
        }
        assert_eq!(parse(&read_frame(&mut reader).unwrap().unwrap()), Ok(Frame::Chunk(b"bytes")));
        assert_eq!(read_frame(&mut reader).unwrap(), None);
    }

    #[test]
    fn the_shell_writes_the_status_as_a_frame() {
        let line = format!("(exit 255); {STATUS_LINE}");
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap().stdout;
        let frame = read_frame(&mut output.as_slice()).unwrap().unwrap();
        assert_eq!(parse(&frame), Ok(Frame::Status(255)));
        assert_eq!(skip_to_greeting(&mut [&b"Welcome!"[..], &output].concat().as_slice()).unwrap(), Some(255));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        assert!(read_frame(&mut &[0, 0, 0, 0][..]).is_err());
        assert!(first_frame(&[0, 0, 0, 0]).is_err() && first_frame(&[1, 0, 0]).unwrap().is_none());
        assert_eq!(first_frame(&[2, 0, 0, 0, 7, 8, 9]).unwrap(), Some((&[7, 8][..], 6)));
        assert_eq!(first_frame(&[2, 0, 0, 0, 7]).unwrap(), None);
        assert!(read_frame(&mut &[255, 255, 255, 255, 1][..]).is_err());
        assert_eq!(read_frame(&mut &[1, 0][..]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        for frame in [
            &[][..],
            &[7, 1],
            &[CHUNK],
            &[STATUS, b'x'],
            &[CREDIT, 4, 0],
            &[LOST, 4, 0],
            b"\x01{\"word\":\"stop\",\"more\":1}",
            b"\x01{}",
        ] {
            assert!(parse(frame).is_err(), "{frame:?}");
        }
        assert!(skip_to_greeting(&mut &b"nothing"[..]).is_err());
    }
}
