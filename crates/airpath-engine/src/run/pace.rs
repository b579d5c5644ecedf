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
use crate::hosts::channel::{Channel, Channels};
use crate::hosts::mouth::Said;
use crate::hosts::wire::Word;

/// Time from the agreement on t = 0 to t = 0, beside two round trips.
const LEAD: Duration = Duration::from_millis(20);
/// Time for the other engine to take a step that needs no waiting.
const PATIENCE: Duration = Duration::from_secs(10);

/// The steps at one of the hosts.
pub struct Pace<'a> {
    /// Those of each path; at a far host there is one.
    channels: Vec<&'a Channels>,
    /// Readable once the loop has ended.
    stopped: BorrowedFd<'a>,
    /// True if other links go on without a path that has lost a host.
    outlives_paths: bool,
}

impl<'a> Pace<'a> {
    /// The steps of the run of so many `links` whose loop has ended when `stopped` is readable; none where no path goes
    /// on elsewhere.
    pub fn new(channels: Vec<&'a Channels>, stopped: BorrowedFd<'a>, links: usize) -> Option<Pace<'a>> {
        (!channels.is_empty()).then_some(Pace { channels, stopped, outlives_paths: links > 1 })
    }

    fn is_far(&self) -> bool {
        self.channels.iter().all(|channels| channels.is_far())
    }

    fn all(&self) -> impl Iterator<Item = &Channel> {
        self.channels.iter().flat_map(|channels| &channels.all)
    }

    /// Agrees on t = 0 once both ends are ready, and waits for it. Returns it in nanoseconds since 1970 and by
    /// CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// When the other engine fails, or a signal comes first.
    pub fn agree(&self, workload: &mut Workload<'_>) -> Result<(u64, u64)> {
        let start_ns = if self.is_far() {
            self.say_to_all(&Word::Ready {});
            let heard = self.hear_all(workload, |word| match word {
                Word::Begin { epoch_ns } => Some(*epoch_ns),
                _ => None,
            })?;
            heard.into_iter().next().unwrap_or_default()
        } else {
            self.hear_all(workload, |word| matches!(word, Word::Ready {}).then_some(()))?;
            let clocks = || self.all().filter_map(|channel| Some((channel, channel.clocks.as_ref()?)));
            let one_way_ns = clocks().map(|(_, clocks)| clocks.one_way_ns()).max().unwrap_or(0);
            let start_ns = clock::monotonic_ns() + LEAD.as_nanos() as u64 + 4 * one_way_ns;
            for (channel, clocks) in clocks() {
                channel.say(&Word::Begin { epoch_ns: clocks.far_monotonic_ns(start_ns) });
            }
            start_ns
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
        if self.is_far() {
            self.say_to_all(&Word::Begun {});
            return Ok(());
        }
        for channel in self.all() {
            match channel.hear_word(PATIENCE)? {
                Word::Begun {} => {}
                _ => return Err(out_of_turn(channel)),
            }
        }
        Ok(())
    }

    /// At a far host, waits for the end of the client's command; at the near one there is nothing to wait for.
    ///
    /// # Errors
    /// When the other engine fails.
    pub fn wait_for_client(&self, workload: &mut Workload<'_>) -> Result<()> {
        if self.is_far() {
            self.hear_all(workload, |word| matches!(word, Word::EndServer {}).then_some(()))?;
        }
        Ok(())
    }

    /// Ends the server's command, which is at the last host, and then the run.
    ///
    /// # Errors
    /// When the other engine fails.
    pub fn end_servers(&self, workload: &mut Workload<'_>, grace: Span) -> Result<Vec<Option<CommandEnd>>> {
        if self.is_far() {
            let ends = workload.end_servers(grace)?;
            self.say_to_all(&Word::ServerEnded {});
            self.hear_all(workload, |word| matches!(word, Word::Stop {}).then_some(()))?;
            return Ok(ends);
        }
        self.say_to_all(&Word::EndServer {});
        // Those of paths that are on this host as a whole.
        let ends = workload.end_servers(grace)?;
        for channels in &self.channels {
            match self.hear_ends_of_servers(channels, workload) {
                // The link tells why.
                Err(_) if self.outlives_paths && channels.gone().is_some() => {}
                heard => heard?,
            }
        }
        self.say_to_all(&Word::Stop {});
        Ok(ends)
    }

    /// Waits until the servers' commands of a path have ended.
    fn hear_ends_of_servers(&self, channels: &Channels, workload: &mut Workload<'_>) -> Result<()> {
        channels.all.iter().try_for_each(|channel| match self.hear(channels, channel, workload)? {
            Word::ServerEnded {} => Ok(()),
            _ => Err(out_of_turn(channel)),
        })
    }

    fn say_to_all(&self, word: &Word) {
        self.all().for_each(|channel| channel.say(word));
    }

    /// Waits for one word from each of the other engines, of which `expected` takes what is in it, while signals are
    /// dealt with.
    fn hear_all<T>(&self, workload: &mut Workload<'_>, expected: impl Fn(&Word) -> Option<T>) -> Result<Vec<T>> {
        let mut all = Vec::new();
        for channels in &self.channels {
            for channel in &channels.all {
                let word = self.hear(channels, channel, workload)?;
                all.push(expected(&word).ok_or_else(|| out_of_turn(channel))?);
            }
        }
        Ok(all)
    }

    /// Waits for the next word from `channel`, which is one of `channels`, while signals are dealt with.
    fn hear(&self, channels: &Channels, channel: &Channel, workload: &mut Workload<'_>) -> Result<Word> {
        loop {
            match channel.heard()? {
                Some(Said::Word(word)) => return Ok(*word),
                Some(Said::Chunk(_)) => return Err(out_of_turn(channel)),
                None => {}
            }
            if let Some(why) = channels.gone() {
                return Err(Failure::new(why.to_owned()));
            }
            if let Some(signal) = workload.wait_for_news(channels.news(), self.stopped)? {
                return Err(Failure::new(format!("{signal} ended the run")));
            }
        }
    }
}

fn out_of_turn(channel: &Channel) -> Failure {
    Failure::new(format!("host `{}`: its engine spoke out of turn", channel.host()))
}
