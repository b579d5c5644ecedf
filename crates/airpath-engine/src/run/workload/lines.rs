// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Waiting for the peers on serial lines, and for their end.

use airpath_live::ports::LineNews;
use nix::sys::signal::Signal;

use super::*;
use crate::run::lines::ActiveLines;

/// Time after which the user is told for what the run waits.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval of looks at the server's command meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Workload<'_> {
    /// Waits until packets pass on the line, at most for `timeout`. `stopped` becomes readable if the engine's loop
    /// stops first. A signal that ends the wait is returned.
    ///
    /// # Errors
    /// When the peer does not answer in time, refuses, or hangs up.
    pub fn wait_for_line(
        &mut self,
        lines: &ActiveLines,
        timeout: Span,
        stopped: BorrowedFd<'_>,
    ) -> Result<Option<Ended>> {
        let (begun, mut is_told, mut reason) = (Instant::now(), lines.quiet, None);
        let name = lines.shown();
        loop {
            while let Some(news) = lines.listener.next() {
                match news {
                    LineNews::Opened { .. } => {
                        tell(lines, &news);
                        return Ok(None);
                    }
                    LineNews::Down(why) => reason = Some(why),
                    LineNews::Refused(why) => {
                        return Err(Failure::new(format!(
                            "{name}: {why}\n  Let the peer negotiate IPv4, with an address that it takes (--ppp peer=)."
                        )));
                    }
                    LineNews::Denied(why) => {
                        return Err(Failure::new(format!(
                            "{name}: {why}\n  Both ends need the same name and password; see `secrets`, `user` and \
                             `auth` of --ppp (docs/ppp.md)."
                        )));
                    }
                    LineNews::HungUp(name) => {
                        return Err(Failure::new(format!("{name} hung up before packets passed")));
                    }
                }
            }
            let ended = self.servers.iter().find_map(|(id, ..)| self.commands.ended(*id));
            if let Some(end) = ended.filter(|end| end.exit_status() != 0) {
                return Err(Failure::new(format!(
                    "the server's command ended before packets passed on {name} ({})",
                    describe(end)
                )));
            }
            if begun.elapsed() >= Duration::from_nanos(timeout.nanos()) {
                let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
                return Err(Failure::new(format!(
                    "no PPP peer has opened IPv4 on {name} within {timeout}{reason}\n  Start the peer, compare the \
                     speeds of both ends (--ppp baud=), or wait longer (--ppp timeout=)."
                )));
            }
            if !is_told && begun.elapsed() >= PATIENCE {
                is_told = true;
                say!("airpath: waiting for a PPP peer on {name}");
            }
            let ends = [
                PollFd::new(self.process.signal_fd(), PollFlags::POLLIN),
                PollFd::new(stopped, PollFlags::POLLIN),
                PollFd::new(lines.listener.as_fd(), PollFlags::POLLIN),
            ];
            let timeout = PollTimeout::try_from(LOOK_EVERY).unwrap_or(PollTimeout::MAX);
            if wait_for(ends, timeout)?[1] {
                return Err(Failure::new("the engine's loop stopped unexpectedly"));
            }
            if let Some(signal) = self.hear_signals()? {
                return Ok(Some(Ended::Interrupted(signal)));
            }
        }
    }

    /// Hears the news of the lines; true once one of them hung up, at which the clients' commands are asked to end.
    pub(super) fn hear_lines(&self, lines: &ActiveLines) -> bool {
        let mut hung_up = false;
        while let Some(news) = lines.listener.next() {
            tell(lines, &news);
            if matches!(news, LineNews::HungUp(_)) {
                hung_up = true;
                self.clients.iter().for_each(|client| self.commands.signal(*client, Signal::SIGTERM));
            }
        }
        hung_up
    }

    /// True if a run without commands of clients is over: those of servers have ended.
    pub(super) fn servers_have_ended(&self) -> bool {
        !self.servers.is_empty() && self.servers.iter().all(|(id, ..)| self.commands.ended(*id).is_some())
    }
}

fn tell(lines: &ActiveLines, news: &LineNews) {
    if lines.quiet && !matches!(news, LineNews::HungUp(_)) {
        return;
    }
    let name = lines.shown();
    match news {
        LineNews::Opened { peer, mru_bytes, ipv6 } => {
            let families = if *ipv6 { "IPv4 and IPv6" } else { "IPv4" };
            say!("airpath: PPP on {name} is up: the peer is {peer}, {families}");
            if u32::from(*mru_bytes) < lines.mtu_bytes {
                say!(
                    "airpath: the peer takes packets of at most {mru_bytes} bytes, and longer ones are lost: add --mtu \
                     {mru_bytes}"
                );
            }
        }
        LineNews::Down(why) | LineNews::Refused(why) | LineNews::Denied(why) => {
            say!("airpath: PPP on {name} is down: {why}")
        }
        LineNews::HungUp(name) => say!("airpath: {name} hung up: the run ends"),
    }
}
