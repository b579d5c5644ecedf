// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! News of a serial line, for the run that it belongs to.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::error::{Attempting, Result};

/// A change of a serial line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineNews {
    /// Packets of IPv4 pass.
    Opened {
        /// The peer's address; unspecified if it told none.
        peer: Ipv4Addr,
        /// Longest packet that the peer takes, in bytes.
        mru_bytes: u16,
        /// True if packets of IPv6 pass too.
        ipv6: bool,
    },
    /// Nothing passes any more: why.
    Down(String),
    /// The peer refuses IPv4: how.
    Refused(String),
    /// One of the ends does not let the other in, with the reason.
    Denied(String),
    /// The line of this name hung up; it does not come back.
    HungUp(String),
}

/// A port's end of the news.
#[derive(Debug, Clone)]
pub struct Teller {
    news: Sender<LineNews>,
    event: Arc<EventFd>,
}

impl Teller {
    /// Tells something, to whoever listens still.
    pub fn tell(&self, news: LineNews) {
        if self.news.send(news).is_ok() {
            let _ = self.event.write(1);
        }
    }
}

/// The run's end: readable when there are news.
#[derive(Debug)]
pub struct Listener {
    news: Receiver<LineNews>,
    event: Arc<EventFd>,
}

impl Listener {
    /// The next of the news.
    pub fn next(&self) -> Option<LineNews> {
        let news = self.news.try_recv().ok();
        if news.is_none() {
            let _ = self.event.read();
            // What came between the two is not to be slept over.
            return self.news.try_recv().ok();
        }
        news
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// Both ends.
///
/// # Errors
/// When descriptors run out.
pub fn line_news() -> Result<(Teller, Listener)> {
    let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
    let event = Arc::new(event.attempting(|| "make an event descriptor".into())?);
    let (sender, receiver) = channel();
    Ok((Teller { news: sender, event: event.clone() }, Listener { news: receiver, event }))
}
