// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The two applications of a bulk transfer: one writes a stream, the other reads it.

use airpath_core::{Direction, End, Span, Time};
use quinn_proto::{Connection, Dir, Event, FinishError, StreamEvent, StreamId, VarInt};

use crate::record::Results;

/// Content of a transfer, a piece at a time: zeros are as good as anything.
const PIECE: [u8; 16 * 1024] = [0; 16 * 1024];

enum Role {
    /// Opens the stream and writes what is left; then waits until all is acknowledged.
    Source { left_bytes: u64, stream: Option<StreamId>, finished: bool },
    /// Reads the stream that the other end opens.
    Sink { direction: Direction, stream: Option<StreamId> },
}

/// One end of a transfer.
pub(super) struct Transfer {
    role: Role,
    stop_after: Option<Span>,
    stop: Time,
    active: bool,
}

impl Transfer {
    pub(super) fn source(total_bytes: u64, stop_after: Option<Span>) -> Transfer {
        let role = Role::Source { left_bytes: total_bytes, stream: None, finished: false };
        Transfer { role, stop_after, stop: Time::NEVER, active: true }
    }

    pub(super) fn sink(from: End, stop_after: Option<Span>) -> Transfer {
        let role = Role::Sink { direction: from.sends(), stream: None };
        Transfer { role, stop_after, stop: Time::NEVER, active: true }
    }

    pub(super) fn begin(&mut self, at: Time) {
        self.stop = self.stop_after.map_or(Time::NEVER, |span| at + span);
    }

    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    /// End of the time, whatever arrives.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.stop.finite().filter(|_| self.active)
    }

    /// True if the time is over, which is told once.
    pub(super) fn is_over(&mut self, at: Time, results: &Results) -> bool {
        let over = self.active && at >= self.stop;
        if over {
            self.active = false;
            results.record().complete(self.stop);
        }
        over
    }

    /// Hears what happened to the connection.
    pub(super) fn hear(&mut self, event: Event, connection: &mut Connection, results: &Results) {
        match (event, &mut self.role) {
            (Event::Connected, Role::Source { stream, .. }) => *stream = connection.streams().open(Dir::Uni),
            (Event::Stream(StreamEvent::Opened { dir }), Role::Sink { stream, .. }) => {
                *stream = connection.streams().accept(dir);
            }
            (Event::Stream(StreamEvent::Finished { .. }), Role::Source { .. }) => self.active = false,
            (Event::ConnectionLost { reason }, _) if self.active => {
                results.record().failure.get_or_insert_with(|| reason.to_string());
                self.active = false;
            }
            _ => {}
        }
    }

    /// The application's turn.
    pub(super) fn work(&mut self, at: Time, connection: &mut Connection, results: &Results) {
        match &mut self.role {
            Role::Source { left_bytes, stream: Some(stream), finished } if !*finished => {
                while *left_bytes > 0 {
                    let length = PIECE.len().min(usize::try_from(*left_bytes).unwrap_or(usize::MAX));
                    match connection.send_stream(*stream).write(&PIECE[..length]) {
                        Ok(written) => *left_bytes -= written as u64,
                        // There is no room, or the connection is lost, which an event tells.
                        Err(_) => return,
                    }
                }
                *finished = true;
                if let Err(FinishError::ClosedStream) = connection.send_stream(*stream).finish() {
                    self.active = false;
                }
            }
            Role::Sink { direction, stream: Some(stream) } => {
                let (read, ended) = read(connection, *stream);
                let mut record = results.record();
                record.side(*direction).delivered(at, read);
                if ended && self.active {
                    self.active = false;
                    record.complete(at);
                }
            }
            _ => {}
        }
    }

    /// The code with which a connection is closed when the time is over.
    pub(super) fn closing_code() -> VarInt {
        VarInt::from_u32(0)
    }
}

/// Reads all there is of a stream: how much, and whether that was the last of it.
fn read(connection: &mut Connection, stream: StreamId) -> (u64, bool) {
    let mut stream = connection.recv_stream(stream);
    // A stream that has been read to its end is not there any more.
    let Ok(mut chunks) = stream.read(true) else { return (0, false) };
    let mut read = 0;
    let ended = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => read += chunk.bytes.len() as u64,
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    // What has to be sent for it, the connection sends by itself when it is asked next.
    let _ = chunks.finalize();
    (read, ended)
}
