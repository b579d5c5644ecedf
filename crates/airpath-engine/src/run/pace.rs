// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The steps that the engines of a run take together: t = 0, the end of the commands, the end of the links.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use airpath_core::Span;
use airpath_live::clock;
use airpath_live::command::CommandEnd;

use super::workload::Workload;
use crate::error::{Failure, Result};
use crate::hosts::channel::Channel;
use crate::hosts::mouth::Said;
use crate::hosts::wire::Word;

/// Time from the agreement on t = 0 to t = 0, beside two round trips.
const LEAD: Duration = Duration::from_millis(20);
/// Time for the other engine to take a step that needs no waiting.
const PATIENCE: Duration = Duration::from_secs(10);

/// The steps at one of the hosts.
pub struct Pace<'a> {
    channel: &'a Channel,
    /// Readable once the loop has ended.
    stopped: BorrowedFd<'a>,
}

impl<'a> Pace<'a> {
    /// The steps of the run whose loop has ended when `stopped` is readable.
    pub fn new(channel: &'a Channel, stopped: BorrowedFd<'a>) -> Pace<'a> {
        Pace { channel, stopped }
    }

    /// Agrees on t = 0 once both ends are ready, and waits for it. Returns it in nanoseconds since 1970 and by
    /// CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// When the other engine fails, or a signal comes first.
    pub fn agree(&self, workload: &mut Workload<'_>) -> Result<(u64, u64)> {
        let start_ns = match &self.channel.clocks {
            Some(clocks) => {
                match self.hear(workload)? {
                    Word::Ready {} => {}
                    _ => return Err(self.out_of_turn()),
                }
                let lead_ns = LEAD.as_nanos() as u64 + 4 * clocks.one_way_ns();
                let start_ns = clock::monotonic_ns() + lead_ns;
                self.channel.say(&Word::Begin { epoch_ns: clocks.far_monotonic_ns(start_ns) });
                start_ns
            }
            None => {
                self.channel.say(&Word::Ready {});
                match self.hear(workload)? {
                    Word::Begin { epoch_ns } => epoch_ns,
                    _ => return Err(self.out_of_turn()),
                }
            }
        };
        let left_ns = start_ns.saturating_sub(clock::monotonic_ns());
        std::thread::sleep(Duration::from_nanos(left_ns).min(PATIENCE));
        let since_ns = clock::monotonic_ns().saturating_sub(start_ns);
        Ok((clock::realtime_ns().saturating_sub(since_ns), start_ns))
    }

    /// The link here has begun: tells the near host so, which waits for it.
    ///
    /// # Errors
    /// When the other engine fails.
    pub fn begun(&self) -> Result<()> {
        if self.channel.is_far() {
            self.channel.say(&Word::Begun {});
            return Ok(());
        }
        match self.channel.hear_word(PATIENCE)? {
            Word::Begun {} => Ok(()),
            _ => Err(self.out_of_turn()),
        }
    }

    /// At the far host, waits for the end of the client's command; at the near one there is nothing to wait for.
    ///
    /// # Errors
    /// When the other engine fails.
    pub fn wait_for_client(&self, workload: &mut Workload<'_>) -> Result<()> {
        if !self.channel.is_far() {
            return Ok(());
        }
        match self.hear(workload)? {
            Word::EndServer {} => Ok(()),
            _ => Err(self.out_of_turn()),
        }
    }

    /// Ends the server's command, which is at the far host, and then the run.
    ///
    /// # Errors
    /// When the other engine fails.
    pub fn end_servers(&self, workload: &mut Workload<'_>, grace: Span) -> Result<Vec<Option<CommandEnd>>> {
        if self.channel.is_far() {
            let ends = workload.end_servers(grace)?;
            self.channel.say(&Word::ServerEnded {});
            match self.hear(workload)? {
                Word::Stop {} => return Ok(ends),
                _ => return Err(self.out_of_turn()),
            }
        }
        self.channel.say(&Word::EndServer {});
        match self.hear(workload)? {
            Word::ServerEnded {} => {}
            _ => return Err(self.out_of_turn()),
        }
        self.channel.say(&Word::Stop {});
        Ok(Vec::new())
    }

    /// Waits for the next word while signals are dealt with.
    fn hear(&self, workload: &mut Workload<'_>) -> Result<Word> {
        loop {
            match self.channel.heard()? {
                Some(Said::Word(word)) => return Ok(*word),
                Some(Said::Chunk(_)) => return Err(self.out_of_turn()),
                None => {}
            }
            if let Some(signal) = workload.wait_for_news(self.channel.news(), self.stopped)? {
                return Err(Failure::new(format!("{signal} ended the run")));
            }
        }
    }

    fn out_of_turn(&self) -> Failure {
        Failure::new(format!("host `{}`: its engine spoke out of turn", self.channel.host()))
    }
}
