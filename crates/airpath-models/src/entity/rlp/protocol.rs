// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The protocol machine of RLP at one end, for information of any kind: what it sends in each block, and what
//! it does with what arrives.
//!
//! Source: 3GPP TS 24.022 (GSM 04.22), clause 5.3 and the SDL diagrams of annex A. States 3 and 7, in which a
//! user is asked, are passed at once. Where the diagrams leave room:
//!
//! - An end that has sent or is about to send a poll sends no information until the final arrives (as LAPD does
//!   in timer recovery). A poll makes the other end forget what it received out of sequence, and the final makes
//!   this one begin again at its N(R): with a window of 61 of 62 numbers, information sent in between would
//!   arrive twice, and its second copy would pass for a frame of the next round.
//! - A selective reject names V(R) too, if that is missing.
//! - An end whose attempts N2 are used up while it is connected resets the connection by SABM; one whose
//!   attempts of SABM, XID or DISC are used up is disconnected. Either end opens the connection again later:
//!   the other one may have had nothing to send, and still take it for connected. XID tells it better.
//!
//! - An end that is busy says RNR in place of RR and asks for nothing; it still takes what is under way. The other end
//!   polls after T1 without RNR or RR, as LAPD does, because the RR that ends the wait may be lost.
//!
//! Timers are looked at when a block begins, where everything is known that has arrived by then. T1 must be
//! longer than a round trip, T2 included: a selective reject that is repeated too early brings a second copy,
//! which a window of 61 cannot tell from a new frame.

use std::collections::VecDeque;

use airpath_core::{LinkVariables, Span, Time};

use super::codec::modulus;
use super::header::{Body, Header, Supervision, Unnumbered};
use super::xid::Xid;

/// Parameters of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Parameters that it proposes by XID, in force until then.
    pub xid: Xid,
    /// True for the mobile end.
    pub mobile: bool,
    /// True if it opens the connection.
    pub opens: bool,
    /// True if it negotiates parameters before it opens the connection.
    pub negotiates: bool,
    /// True if it rejects selectively; otherwise it asks for everything from the missing frame on.
    pub selective: bool,
    /// True if blocks in which there is nothing new to say are not transmitted.
    pub discontinuous: bool,
    /// Time from a disconnection until it opens the connection again; none if it never does.
    pub reconnect: Option<Span>,
}

/// Consequence of a frame or of a timer for the user of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signal<P> {
    /// Information arrives, in sequence.
    Deliver(P),
    /// The other end has acknowledged the oldest information.
    Acknowledged(P),
    /// The connection is there, new or after a reset.
    Connected,
    /// The connection begins anew: information that was not delivered is lost.
    Reset,
    /// The connection is gone.
    Disconnected,
}

/// A frame to send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Outgoing<P> {
    /// Its header.
    pub header: Header,
    /// Its information, in an I+S frame.
    pub information: Option<P>,
    /// True if that information was sent before.
    pub repeated: bool,
    /// The parameters in an XID frame.
    pub xid: Option<Xid>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// No connection; the end opens one at the given time.
    Disconnected(Time),
    /// A command is repeated until it is answered.
    Asking(Command),
    /// Information is exchanged.
    Connected,
}

/// Commands that are repeated until they are answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Command {
    Xid,
    Sabm,
    Disc,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Poll {
    Idle,
    Due,
    Waiting,
}

/// Information in the send window.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Sent<P> {
    information: P,
    rejected: bool,
}

/// Information in the receive window, out of sequence.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Received<P> {
    /// Missing; it is to be rejected at the given time.
    Missing(Time),
    Here(P),
}

/// One end of RLP.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Protocol<P> {
    options: Options,
    /// The parameters in force.
    agreed: Xid,
    phase: Phase,
    /// Number of times that the present command or poll has been sent.
    attempts: u16,
    /// T1, for a command, a poll, or information; `Time::NEVER` if it does not run.
    t1: Time,
    /// True if both ends have agreed on parameters since the last connection was gone.
    negotiated: bool,
    /// True if the XID command of this end has met one of the other end, so that both are void.
    void: bool,
    ua_due: Option<bool>,
    xid_due: Option<Xid>,
    // Sending.
    window: VecDeque<Sent<P>>,
    v_a: u16,
    /// V(S) - V(A).
    ahead: u16,
    poll: Poll,
    peer_ready: bool,
    // Receiving.
    v_r: u16,
    /// Frames V(R), V(R) + 1, and so on, as far as anything is known of them.
    beyond: VecDeque<Received<P>>,
    /// Time at which REJ for V(R) is to be sent, or sent again.
    rejected_until: Time,
    final_due: bool,
    acknowledgement_due: bool,
    /// True if the user takes nothing more for now.
    busy: bool,
}

impl<P: Clone> Protocol<P> {
    /// An end at the beginning.
    pub fn new(options: Options) -> Protocol<P> {
        let opens = if options.opens { Time::ZERO } else { Time::NEVER };
        Protocol {
            options,
            agreed: options.xid,
            phase: Phase::Disconnected(opens),
            attempts: 0,
            t1: Time::NEVER,
            negotiated: false,
            void: false,
            ua_due: None,
            xid_due: None,
            window: VecDeque::new(),
            v_a: 0,
            ahead: 0,
            poll: Poll::Idle,
            peer_ready: true,
            v_r: 0,
            beyond: VecDeque::new(),
            rejected_until: Time::ZERO,
            final_due: false,
            acknowledgement_due: false,
            busy: false,
        }
    }

    /// The user takes nothing more for now if `busy`; the other end is told of a change.
    pub fn set_busy(&mut self, busy: bool) {
        self.acknowledgement_due |= self.busy != busy;
        self.busy = busy;
    }

    /// The version of the frames that it sends and understands.
    pub fn version(&self) -> u8 {
        self.agreed.version
    }

    /// Its variables.
    pub fn variables(&self) -> LinkVariables {
        LinkVariables {
            v_s: Some(self.number(self.ahead)),
            v_a: Some(self.v_a),
            v_r: Some(self.v_r),
            outstanding: Some(self.ahead),
            attempts: Some(self.attempts),
            timer: (self.t1 != Time::NEVER).then_some(self.t1),
        }
    }

    fn modulus(&self) -> u16 {
        modulus(self.agreed.version)
    }

    /// The sequence number `distance` behind V(A).
    fn number(&self, distance: u16) -> u16 {
        (self.v_a + distance) % self.modulus()
    }

    /// The distance from `from` to `number`.
    fn distance(&self, from: u16, number: u16) -> u16 {
        (number + self.modulus() - from) % self.modulus()
    }

    fn send_window(&self) -> u16 {
        if self.options.mobile { self.agreed.window_from_mobile } else { self.agreed.window_to_mobile }
    }

    fn receive_window(&self) -> u16 {
        if self.options.mobile { self.agreed.window_to_mobile } else { self.agreed.window_from_mobile }
    }

    fn t1_span(&self) -> Span {
        Span::from_millis(u64::from(self.agreed.t1) * 10)
    }

    /// Time from which there is something to send, if `waiting` says that there is information that has never
    /// been sent; `Time::NEVER` if there is nothing.
    pub fn ready_at(&self, waiting: bool) -> Time {
        if !self.options.discontinuous || self.ua_due.is_some() || self.xid_due.is_some() {
            return Time::ZERO;
        }
        match self.phase {
            Phase::Disconnected(opens) => opens,
            Phase::Asking(_) => {
                if self.t1 == Time::NEVER {
                    Time::ZERO
                } else {
                    self.t1
                }
            }
            Phase::Connected => {
                let now = self.final_due || self.acknowledgement_due || self.poll == Poll::Due;
                if now || self.may_send_information(waiting) {
                    return Time::ZERO;
                }
                self.reject_due().min(self.t1)
            }
        }
    }

    /// Time at which a reject is to be sent next.
    fn reject_due(&self) -> Time {
        if self.busy {
            return Time::NEVER;
        }
        let missing = self.beyond.iter().filter_map(|received| match received {
            Received::Missing(again) => Some(*again),
            Received::Here(_) => None,
        });
        if self.options.selective {
            missing.min().unwrap_or(Time::NEVER)
        } else {
            missing.map(|_| self.rejected_until).next().unwrap_or(Time::NEVER)
        }
    }

    fn may_send_information(&self, waiting: bool) -> bool {
        self.peer_ready
            && self.poll == Poll::Idle
            && (self.has_rejected()
                || self.ahead < self.send_window() && (usize::from(self.ahead) < self.window.len() || waiting))
    }

    fn has_rejected(&self) -> bool {
        self.window.iter().take(self.ahead.into()).any(|sent| sent.rejected)
    }

    /// The frame of the block that begins at `now`; none if the block is not transmitted. `next` gives
    /// information that has never been sent.
    pub fn next_frame(
        &mut self,
        now: Time,
        next: impl FnMut() -> Option<P>,
        waiting: bool,
        signals: &mut Vec<Signal<P>>,
    ) -> Option<Outgoing<P>> {
        self.look_at_timers(now, signals);
        if let Some(xid) = self.xid_due.take() {
            let header = Header::unnumbered(Unnumbered::Xid, false, true);
            return Some(Outgoing { xid: Some(xid), ..Outgoing::without_information(header) });
        }
        if let Some(finale) = self.ua_due.take() {
            return Some(Outgoing::without_information(Header::unnumbered(Unnumbered::Ua, false, finale)));
        }
        match self.phase {
            Phase::Asking(command) if self.t1 == Time::NEVER => Some(self.command(command, now)),
            Phase::Connected => self.numbered(now, next, waiting),
            _ => self.null(),
        }
    }

    fn null(&self) -> Option<Outgoing<P>> {
        let header = Header::unnumbered(Unnumbered::Null, false, false);
        (!self.options.discontinuous).then(|| Outgoing::without_information(header))
    }

    fn command(&mut self, command: Command, now: Time) -> Outgoing<P> {
        self.attempts += 1;
        self.t1 = now + self.t1_span();
        let (kind, xid) = match command {
            Command::Xid => {
                self.void = false;
                (Unnumbered::Xid, Some(self.options.xid))
            }
            Command::Sabm => (Unnumbered::Sabm, None),
            Command::Disc => (Unnumbered::Disc, None),
        };
        Outgoing { xid, ..Outgoing::without_information(Header::unnumbered(kind, true, true)) }
    }

    fn look_at_timers(&mut self, now: Time, signals: &mut Vec<Signal<P>>) {
        match self.phase {
            Phase::Disconnected(opens) if opens <= now => {
                let first = if self.options.negotiates { Command::Xid } else { Command::Sabm };
                self.ask(first);
            }
            Phase::Asking(command) if self.t1 <= now => {
                self.t1 = Time::NEVER;
                if self.attempts > u16::from(self.agreed.n2) {
                    match command {
                        Command::Disc => self.disconnect(now, signals),
                        Command::Xid | Command::Sabm => self.ask(Command::Disc),
                    }
                }
            }
            Phase::Connected if self.t1 <= now => {
                self.t1 = Time::NEVER;
                match self.poll {
                    Poll::Idle => self.attempts = 0,
                    Poll::Due | Poll::Waiting if self.attempts > u16::from(self.agreed.n2) => {
                        signals.push(Signal::Reset);
                        self.clear();
                        return self.ask(Command::Sabm);
                    }
                    Poll::Due | Poll::Waiting => {}
                }
                self.poll = Poll::Due;
            }
            _ => {}
        }
    }

    fn ask(&mut self, command: Command) {
        (self.phase, self.attempts, self.t1) = (Phase::Asking(command), 0, Time::NEVER);
    }

    /// Begins with empty windows.
    fn clear(&mut self) {
        self.window.clear();
        self.beyond.clear();
        (self.v_a, self.ahead, self.v_r) = (0, 0, 0);
        (self.poll, self.peer_ready, self.t1) = (Poll::Idle, true, Time::NEVER);
        (self.final_due, self.acknowledgement_due, self.rejected_until) = (false, false, Time::ZERO);
    }

    fn connect(&mut self, signals: &mut Vec<Signal<P>>) {
        self.clear();
        self.phase = Phase::Connected;
        signals.push(Signal::Connected);
    }

    fn disconnect(&mut self, now: Time, signals: &mut Vec<Signal<P>>) {
        self.clear();
        // Whichever end has lost the connection opens it again: the other may not know.
        let again = self.options.reconnect.map_or(Time::NEVER, |wait| now + wait);
        self.phase = Phase::Disconnected(again);
        (self.agreed, self.negotiated) = (self.options.xid, false);
        signals.push(Signal::Disconnected);
    }

    /// An S or I+S frame, if there is anything to say.
    fn numbered(&mut self, now: Time, mut next: impl FnMut() -> Option<P>, waiting: bool) -> Option<Outgoing<P>> {
        let nr = self.v_r;
        if self.poll == Poll::Due && !self.final_due {
            self.poll = Poll::Waiting;
            self.attempts += 1;
            self.t1 = now + self.t1_span();
            self.acknowledgement_due = false;
            let body = Body::Supervisory { kind: self.readiness(), nr };
            return Some(Outgoing::without_information(Header { command: true, poll_final: true, body }));
        }
        let finale = std::mem::take(&mut self.final_due);
        let (kind, nr) = if finale { (self.readiness(), nr) } else { self.supervision(now) };
        let information = self.information(now, &mut next, waiting);
        if information.is_none()
            && self.options.discontinuous
            && !finale
            && kind == self.readiness()
            && !self.acknowledgement_due
        {
            return None;
        }
        self.acknowledgement_due &= kind == Supervision::Srej;
        let header = |body| Header { command: !finale, poll_final: finale, body };
        let (body, information, repeated) = match information {
            Some((ns, information, repeated)) => (Body::Information { kind, ns, nr }, Some(information), repeated),
            None => (Body::Supervisory { kind, nr }, None, false),
        };
        Some(Outgoing { header: header(body), information, repeated, xid: None })
    }

    /// Receive ready, or not.
    fn readiness(&self) -> Supervision {
        if self.busy { Supervision::Rnr } else { Supervision::Rr }
    }

    /// The reject that is due, or whether the end is ready.
    fn supervision(&mut self, now: Time) -> (Supervision, u16) {
        let again = now + self.t1_span();
        let modulus = self.modulus();
        if self.reject_due() > now {
            return (self.readiness(), self.v_r);
        }
        if !self.options.selective {
            self.rejected_until = again;
            return (Supervision::Rej, self.v_r);
        }
        for (distance, received) in self.beyond.iter_mut().enumerate() {
            if let Received::Missing(due) = received
                && *due <= now
            {
                *due = again;
                return (Supervision::Srej, (self.v_r + distance as u16) % modulus);
            }
        }
        (Supervision::Rr, self.v_r)
    }

    /// The information to send next: its number, and whether it was sent before.
    fn information(
        &mut self,
        now: Time,
        next: &mut impl FnMut() -> Option<P>,
        waiting: bool,
    ) -> Option<(u16, P, bool)> {
        if !self.may_send_information(waiting) {
            return None;
        }
        let rejected =
            self.window.iter_mut().take(self.ahead.into()).position(|sent| std::mem::take(&mut sent.rejected));
        let (distance, repeated) = match rejected {
            Some(distance) => (distance as u16, true),
            None => {
                let repeated = usize::from(self.ahead) < self.window.len();
                if !repeated {
                    self.window.push_back(Sent { information: next()?, rejected: false });
                }
                self.ahead += 1;
                (self.ahead - 1, repeated)
            }
        };
        self.t1 = now + self.t1_span();
        let information = self.window.get(usize::from(distance))?.information.clone();
        Some((self.number(distance), information, repeated))
    }

    /// A frame arrives whole at `now`.
    pub fn receive(
        &mut self,
        now: Time,
        header: Header,
        information: Option<P>,
        xid: Option<Xid>,
        signals: &mut Vec<Signal<P>>,
    ) {
        let Header { command, poll_final, body } = header;
        match body {
            Body::Unnumbered(kind) => self.receive_unnumbered(now, kind, command, poll_final, xid, signals),
            Body::Supervisory { kind, nr } => {
                if self.phase == Phase::Connected && self.is_possible(nr) {
                    self.supervise(now, kind, nr, command, poll_final, signals);
                }
            }
            Body::Information { kind, ns, nr } => {
                // A poll comes in an S frame, never with information.
                let improper = command && poll_final;
                if self.phase == Phase::Connected && self.is_possible(nr) && !improper {
                    let Some(information) = information else { return };
                    if self.take_information(ns, information, signals) {
                        self.supervise(now, kind, nr, command, poll_final, signals);
                    }
                }
            }
        }
    }

    /// True if `nr` is the number of information that is not acknowledged, or of the next.
    fn is_possible(&self, nr: u16) -> bool {
        nr < self.modulus() && self.distance(self.v_a, nr) <= self.ahead
    }

    fn receive_unnumbered(
        &mut self,
        now: Time,
        kind: Unnumbered,
        command: bool,
        poll_final: bool,
        xid: Option<Xid>,
        signals: &mut Vec<Signal<P>>,
    ) {
        match (kind, self.phase) {
            // Ends with different parameters would not understand each other: XID first. The other end repeats SABM
            // meanwhile, or gives up and asks by XID.
            (Unnumbered::Sabm, _) if self.options.negotiates && !self.negotiated => {}
            (Unnumbered::Sabm, Phase::Asking(Command::Disc)) => {}
            (Unnumbered::Sabm, phase) if command && poll_final => {
                if phase == Phase::Connected {
                    signals.push(Signal::Reset);
                }
                self.ua_due = Some(true);
                self.connect(signals);
            }
            (Unnumbered::Disc, phase) if command => {
                self.ua_due = Some(poll_final);
                if !matches!(phase, Phase::Disconnected(_)) {
                    self.disconnect(now, signals);
                }
            }
            (Unnumbered::Ua, Phase::Asking(Command::Sabm)) if !command && poll_final && self.t1 != Time::NEVER => {
                self.connect(signals);
            }
            (Unnumbered::Dm, Phase::Asking(Command::Sabm)) if !command && poll_final => self.disconnect(now, signals),
            (Unnumbered::Ua | Unnumbered::Dm, Phase::Asking(Command::Disc)) if !command && poll_final => {
                self.disconnect(now, signals);
            }
            (Unnumbered::Xid, phase) => {
                let Some(xid) = xid else { return };
                let asks = phase == Phase::Asking(Command::Xid);
                if asks && !command {
                    self.negotiated = true;
                    self.agreed = self.options.xid.agreed(xid);
                    self.ask(Command::Sabm);
                } else if asks && self.t1 != Time::NEVER && !self.void {
                    // Two commands have met: both are ignored, and the fixed end waits twice as long.
                    let wait = self.t1_span();
                    self.t1 = now + if self.options.mobile { wait } else { wait + wait };
                    self.void = true;
                } else if command {
                    if phase == Phase::Connected {
                        // The other end has no connection any more.
                        self.disconnect(now, signals);
                    }
                    self.negotiated = true;
                    self.agreed = self.options.xid.agreed(xid);
                    self.xid_due = Some(self.agreed);
                    if asks {
                        self.ask(Command::Sabm);
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes information number `ns`; false if the whole frame is ignored because its number is not in the window.
    fn take_information(&mut self, ns: u16, information: P, signals: &mut Vec<Signal<P>>) -> bool {
        let ahead = self.distance(self.v_r, ns);
        if ahead >= self.receive_window() {
            return false;
        }
        let ahead = usize::from(ahead);
        if !self.options.selective && ahead > 0 {
            if self.beyond.is_empty() {
                self.beyond.push_back(Received::Missing(Time::ZERO));
                self.rejected_until = Time::ZERO;
            }
            return true;
        }
        while self.beyond.len() <= ahead {
            self.beyond.push_back(Received::Missing(Time::ZERO));
        }
        self.beyond[ahead] = Received::Here(information);
        while let Some(Received::Here(_)) = self.beyond.front() {
            if let Some(Received::Here(information)) = self.beyond.pop_front() {
                self.v_r = (self.v_r + 1) % self.modulus();
                self.acknowledgement_due = true;
                signals.push(Signal::Deliver(information));
            }
        }
        true
    }

    fn supervise(
        &mut self,
        now: Time,
        kind: Supervision,
        nr: u16,
        command: bool,
        poll_final: bool,
        signals: &mut Vec<Signal<P>>,
    ) {
        if command && poll_final {
            // Checkpoint: what arrived out of sequence will be sent again.
            self.final_due = true;
            self.beyond.clear();
        }
        if self.poll != Poll::Idle {
            let finale = !command && poll_final;
            if !finale || !matches!(kind, Supervision::Rr | Supervision::Rnr) {
                return;
            }
            self.poll = Poll::Idle;
            self.go_back(nr);
        }
        match kind {
            Supervision::Rr | Supervision::Rnr => self.peer_ready = kind == Supervision::Rr,
            Supervision::Rej => {
                self.peer_ready = true;
                self.go_back(nr);
            }
            Supervision::Srej => {
                // It acknowledges nothing; a busy end would not ask.
                self.peer_ready = true;
                let distance = self.distance(self.v_a, nr);
                if distance < self.ahead {
                    self.window[usize::from(distance)].rejected = true;
                    self.t1 = Time::NEVER;
                }
                return;
            }
        }
        for _ in 0..self.distance(self.v_a, nr) {
            if let Some(Sent { information, .. }) = self.window.pop_front() {
                signals.push(Signal::Acknowledged(information));
            }
            self.v_a = self.number(1);
            self.ahead = self.ahead.saturating_sub(1);
        }
        if kind == Supervision::Rnr {
            self.t1 = now + self.t1_span();
        } else if self.ahead == 0 {
            self.t1 = Time::NEVER;
        } else if self.t1 == Time::NEVER && !self.has_rejected() {
            // The frame for whose repetition T1 was stopped has arrived, and others are under way.
            self.t1 = now + self.t1_span();
        }
    }

    /// Sends everything from `nr` on again.
    fn go_back(&mut self, nr: u16) {
        self.ahead = self.distance(self.v_a, nr);
        self.window.iter_mut().for_each(|sent| sent.rejected = false);
    }
}

impl<P> Outgoing<P> {
    fn without_information(header: Header) -> Outgoing<P> {
        Outgoing { header, information: None, repeated: false, xid: None }
    }
}
