// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Set-up of flows: random access of the mobile, its requests in radio blocks, and assignments of the network.
//!
//! Source: 3GPP TS 44.060, clauses 7.1 (packet access), 8.1.1.1.2 (request in a Packet Downlink Ack/Nack, T3168), 8.1.2
//! (downlink assignment), 9.3.1.3 and 13.4 (N3102); TS 44.018, clause 3.5 (access on the common channels).
//!
//! An end without a flow of the other direction uses the common channels, which are not those of this link: an exchange
//! there takes the link's allocation delay, and may be lost as a whole. A mobile with a downlink flow asks in its next
//! answer to a poll, and the network assigns in a radio block. The network assigns a downlink flow in a radio block to
//! a mobile that listens: one with an uplink flow, or within T3192 of the last downlink flow.

use airpath_core::{DrawKey, Probability, Span, Time};

use super::config::{Access as Phases, FlowConfig};
use super::message::Control;
use super::sending::ACCESSES;
use crate::random::{Random, Sampler};

/// Parameters of set-up at one end.
#[derive(Clone, Copy, Debug)]
pub struct AccessOptions {
    /// True for the network's end.
    is_network: bool,
    /// True if flows are set up by messages on the link.
    by_messages: bool,
    /// True if the mobile asks in a radio block for what it needs, after random access.
    in_two_phases: bool,
    loss: Probability,
    retry: Span,
    /// Time for which the end waits for an answer: T3168, or that of a poll.
    wait: Span,
    /// Number of times that it asks.
    most: u8,
    listens: Span,
    pan: Option<(u8, u8, u8)>,
    reselection: Span,
}

impl AccessOptions {
    /// Those of an end that sends as `config` says.
    pub fn new(config: &FlowConfig, is_network: bool, acknowledged: bool) -> AccessOptions {
        let set_up = &config.set_up;
        let counts = [set_up.pan_dec, set_up.pan_inc, set_up.pan_max];
        let exchanges = config.exchanges_messages();
        AccessOptions {
            is_network,
            by_messages: exchanges && acknowledged,
            in_two_phases: set_up.access == Phases::TwoPhase,
            loss: if exchanges { set_up.access_loss } else { Probability::ZERO },
            retry: set_up.access_retry,
            wait: if is_network { set_up.poll_timeout } else { set_up.t3168 },
            most: if is_network { set_up.n3105 } else { ACCESSES },
            listens: set_up.t3192,
            pan: (exchanges && !counts.contains(&0)).then_some((set_up.pan_dec, set_up.pan_inc, set_up.pan_max)),
            reselection: set_up.reselection_delay,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Nothing is asked for, or the flow's beginning is known.
    None,
    /// The mobile asks in its next answer to a poll.
    Asking,
    /// A message is to be sent at the given time: a Packet Resource Request, or a Packet Downlink Assignment.
    Due(Time),
    /// The answer is waited for until the given time.
    Waiting(Time),
}

/// Outcome of a request, or of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing yet.
    Nothing,
    /// The flow begins at the given time, with contention or without.
    Begins(Time, bool),
    /// It has been asked for as often as it may be; it is asked for anew.
    Failed,
}

/// Set-up of flows at one end.
#[derive(Clone, Debug)]
pub struct Access {
    options: AccessOptions,
    delay: Sampler<Span>,
    key: DrawKey,
    exchanges: u64,
    step: Step,
    tries: u8,
    /// N3102.
    n3102: u8,
    /// Time at which the mobile has selected a cell.
    not_before: Time,
    /// Time until which the network knows that the mobile listens after the end of a downlink flow.
    listens_until: Time,
    /// True if the network is to assign an uplink flow.
    assigns: bool,
}

impl Access {
    /// An end that asks for nothing: `delay` is that of the common channels, drawn by `delays`; `key` draws losses.
    pub fn new(options: AccessOptions, delay: &Random<Span>, delays: DrawKey, key: DrawKey) -> Access {
        Access {
            options,
            delay: Sampler::new(delay, delays),
            key: key.child("access", 0),
            exchanges: 0,
            step: Step::None,
            tries: 0,
            n3102: options.pan.map_or(0, |(_, _, most)| most),
            not_before: Time::ZERO,
            listens_until: Time::ZERO,
            assigns: false,
        }
    }

    /// Changes the delay of the common channels.
    pub fn configure(&mut self, delay: &Random<Span>) {
        self.delay.configure(delay);
    }

    /// True if nothing is asked for.
    pub fn is_idle(&self) -> bool {
        self.step == Step::None
    }

    /// Time of the end of an exchange on the common channels.
    fn exchange(&mut self, at: Time) -> Time {
        let step = self.exchanges;
        self.exchanges += 1;
        let mut end = at.max(self.not_before) + self.delay.draw_at(step, at);
        let mut attempt = 0;
        while self.key.hit(step, attempt, self.options.loss) {
            end += self.options.retry;
            attempt += 1;
        }
        end
    }

    /// Asks for a flow at `at`; `has_channel` says whether the other end can be reached in a radio block.
    pub fn request(&mut self, at: Time, has_channel: bool) -> Outcome {
        let options = self.options;
        if has_channel && options.by_messages && self.not_before <= at {
            self.step = if options.is_network { Step::Due(at) } else { Step::Asking };
            return Outcome::Nothing;
        }
        let end = self.exchange(at);
        if options.is_network || !options.by_messages || !options.in_two_phases {
            (self.step, self.tries) = (Step::None, 0);
            return Outcome::Begins(end, options.by_messages && !options.is_network);
        }
        self.step = Step::Due(end);
        Outcome::Nothing
    }

    /// Looks at the timers at `now`. `has_channel` is that of [`Access::request`].
    pub fn look_at_timers(&mut self, now: Time, has_channel: bool) -> Outcome {
        match self.step {
            Step::Asking if !has_channel => self.request(now, false),
            Step::Waiting(until) if until <= now => {
                if self.tries < self.options.most {
                    return self.request(now, has_channel);
                }
                self.tries = 0;
                if !self.options.is_network {
                    self.step = Step::None;
                    return Outcome::Failed;
                }
                self.listens_until = Time::ZERO;
                self.request(now, false)
            }
            _ => Outcome::Nothing,
        }
    }

    /// Time from which there is a message to send, or a timer to look at. `polls_until` is the time from which a mobile
    /// knows that it will not be polled.
    pub fn ready_at(&self, polls_until: Time) -> Time {
        if self.assigns {
            return Time::ZERO;
        }
        match self.step {
            Step::None => Time::NEVER,
            Step::Asking => polls_until,
            Step::Due(at) | Step::Waiting(at) => at,
        }
    }

    /// The message of the block that begins at `now`; `waits` says that there is something to send.
    pub fn message(&mut self, now: Time, waits: bool) -> Option<Control> {
        if std::mem::take(&mut self.assigns) {
            return Some(Control::UplinkAssignment);
        }
        if !matches!(self.step, Step::Due(at) if at <= now) {
            return None;
        }
        if !waits {
            (self.step, self.tries) = (Step::None, 0);
            return None;
        }
        self.wait(now);
        Some(if self.options.is_network { Control::DownlinkAssignment } else { Control::ResourceRequest })
    }

    fn wait(&mut self, now: Time) {
        self.tries += 1;
        self.step = Step::Waiting(now + self.options.wait);
    }

    /// True if the mobile asks for a flow in the answer to a poll that it sends at `now`; `waits` says that there is
    /// something to send.
    pub fn asks(&mut self, now: Time, waits: bool) -> bool {
        if self.step != Step::Asking {
            return false;
        }
        if waits {
            self.wait(now);
        } else {
            (self.step, self.tries) = (Step::None, 0);
        }
        waits
    }

    /// The mobile asks for an uplink flow.
    pub fn is_asked(&mut self) {
        self.assigns = true;
    }

    /// The assignment or its answer arrives; true if it was waited for.
    pub fn is_answered(&mut self) -> bool {
        let is_awaited = matches!(self.step, Step::Waiting(_) | Step::Asking | Step::Due(_));
        if is_awaited {
            (self.step, self.tries) = (Step::None, 0);
        }
        is_awaited
    }

    /// A downlink flow has ended at `now`, as the network knows.
    pub fn released(&mut self, now: Time) {
        self.listens_until = now + self.options.listens;
    }

    /// True if the network knows that the mobile listens to the channel of a downlink flow that has ended.
    pub fn is_heard(&self, now: Time) -> bool {
        self.options.by_messages && now < self.listens_until
    }

    /// An acknowledgement of new blocks arrives at the mobile.
    pub fn acknowledged(&mut self) {
        if let Some((_, rise, most)) = self.options.pan {
            self.n3102 = (self.n3102 + rise).min(most);
        }
    }

    /// T3182 of the mobile has expired at `now`; true if it selects another cell.
    pub fn expired(&mut self, now: Time) -> bool {
        let Some((fall, _, most)) = self.options.pan.filter(|_| !self.options.is_network) else { return false };
        self.n3102 = self.n3102.saturating_sub(fall);
        let selects = self.n3102 == 0;
        if selects {
            self.n3102 = most;
            self.not_before = now + self.options.reselection;
        }
        selects
    }
}
