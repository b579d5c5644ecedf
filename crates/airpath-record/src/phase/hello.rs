// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Hellos of the client while it waits for a word over TCP, whose repetitions a burst of losses may take one after the
//! other: datagrams and their answers pass meanwhile, and the burst goes on.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::shared::Shared;
use super::socket::PathSocket;
use crate::wire::alive::BEHIND;
use crate::wire::datagram::Datagram;

/// Time between two looks for the end of a load.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time without an answer to a question until the first hello.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval between hellos: few bytes even on a path of some kbit/s.
const HELLO_EVERY: Duration = Duration::from_millis(500);

/// Says hello through `socket` while an answer is waited for, until the other end of `answered` is gone.
pub fn say_hello_while_waiting(socket: &PathSocket, answered: &Receiver<()>) {
    say_hello(socket, answered, PATIENCE);
}

/// Says hello through `socket` once a load of `duration` is over or was stopped, until the other end of `over` is gone.
pub fn say_hello_behind(socket: &PathSocket, over: &Receiver<()>, duration: Duration, shared: &Shared) {
    let end = Instant::now() + duration;
    while !shared.stopped() && Instant::now() < end {
        if over.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
    say_hello(socket, over, BEHIND);
}

fn say_hello(socket: &PathSocket, over: &Receiver<()>, first: Duration) {
    let mut wait = first;
    while let Err(RecvTimeoutError::Timeout) = over.recv_timeout(wait) {
        // One that does not get through is one of many.
        let _ = socket.send(0, Datagram::Hello, 0);
        wait = HELLO_EVERY;
    }
}
