// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! State of a phase that its threads share.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::backlog::Backlog;
use crate::plan::Phase;

const UNKNOWN: u64 = u64::MAX;

/// Common state of the threads of a phase at one end.
#[derive(Debug)]
pub struct Shared {
    /// Number of the phase, modulo 256.
    pub number: u8,
    stop: AtomicBool,
    abandoned: AtomicBool,
    sending: AtomicBool,
    over: AtomicBool,
    expected: AtomicU64,
    /// Packets sent by this end.
    pub sent: AtomicU32,
    /// Packets that arrived at this end.
    pub arrived: AtomicU32,
    backlog: Mutex<Backlog>,
    heard: Condvar,
}

impl Shared {
    /// A phase that begins at `now_ns`; this end sends or not.
    pub fn new(number: u8, phase: &Phase, sends: bool, now_ns: u64) -> Shared {
        Shared {
            number,
            stop: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            sending: AtomicBool::new(sends),
            over: AtomicBool::new(false),
            expected: AtomicU64::new(UNKNOWN),
            sent: AtomicU32::new(0),
            arrived: AtomicU32::new(0),
            backlog: Mutex::new(Backlog::new(phase.bits(), phase.most_rate_bits_per_second, now_ns)),
            heard: Condvar::new(),
        }
    }

    /// Ends sending before its time.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.heard.notify_all();
    }

    /// True if sending is to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.abandoned()
    }

    /// Ends everything at once: the other end has gone.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.heard.notify_all();
    }

    /// True if everything is to end at once.
    pub fn abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Notes that the phase is over at this end.
    pub fn finish(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// True once the phase is over at this end.
    pub fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Notes that this end has sent everything.
    pub fn has_sent(&self) {
        self.sending.store(false, Ordering::Relaxed);
    }

    /// True while this end sends.
    pub fn sending(&self) -> bool {
        self.sending.load(Ordering::Relaxed)
    }

    /// Notes how many packets the other end has sent in all.
    pub fn expect(&self, packets: u32) {
        self.expected.store(u64::from(packets), Ordering::Relaxed);
    }

    /// Number of packets that the other end has sent in all; none before it has said so.
    pub fn expected(&self) -> Option<u32> {
        u32::try_from(self.expected.load(Ordering::Relaxed)).ok()
    }

    /// The controller of a saturating sender.
    pub fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a sender that waits for feedback.
    pub fn wake(&self) {
        self.heard.notify_all();
    }

    /// Waits for feedback, no longer than `most`.
    pub fn wait(&self, most: Duration) {
        let backlog = self.backlog();
        drop(self.heard.wait_timeout(backlog, most));
    }
}
