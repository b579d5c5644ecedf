// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One control protocol: automaton, timers and packets, RFC 1661, sections 4 and 5.

use crate::automaton::{Action, Event, State, step};
use crate::options::{ConfigurationOption, append, parse};

/// Configure-Naks sent before options are rejected instead (Max-Failure).
const NAKS_AT_MOST: u32 = 5;
/// Configure-Naks and -Rejects that we heed before we give up: a peer that only ever refuses would be asked as fast as
/// the line can.
const REFUSALS_AT_MOST: u32 = 30;
/// Longest rejected packet that a Code-Reject brings back: it fits the least MRU that we accept.
const REJECTED_BYTES: usize = 120;
/// Configure-Requests without an answer (Max-Configure).
const REQUESTS_AT_MOST: u32 = 10;
/// Terminate-Requests without an answer (Max-Terminate).
const TERMINATIONS_AT_MOST: u32 = 2;
/// Time between two of them.
pub(crate) const RESTART_NS: u64 = 3_000_000_000;

pub(crate) const CONFIGURE_REQUEST: u8 = 1;
const CONFIGURE_ACK: u8 = 2;
const CONFIGURE_NAK: u8 = 3;
const CONFIGURE_REJECT: u8 = 4;
const TERMINATE_REQUEST: u8 = 5;
const TERMINATE_ACK: u8 = 6;
const CODE_REJECT: u8 = 7;

/// Opinion of an option that the peer asks for.
pub(crate) enum Opinion {
    Good,
    /// Another value would do.
    Rather(Vec<u8>),
    Refused,
}

/// Options of one control protocol.
pub(crate) trait Options {
    /// A negotiation begins: what an earlier one has changed is forgotten, since the peer may be another.
    fn begin(&mut self);
    /// Appends the options that we ask for.
    fn request(&self, list: &mut Vec<u8>);
    /// Opinion of an option that the peer asks for.
    fn judge(&mut self, option: ConfigurationOption<'_>) -> Opinion;
    /// The peer's options are acknowledged: these hold.
    fn agree(&mut self, options: &[ConfigurationOption<'_>]);
    /// The peer would rather have this.
    fn take_nak(&mut self, option: ConfigurationOption<'_>);
    /// The peer does not know this.
    fn take_reject(&mut self, option: ConfigurationOption<'_>);
}

/// Packet of a control protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet<'a> {
    pub code: u8,
    pub identifier: u8,
    pub data: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Without the padding, if any; `None` if the length does not fit.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let [code, identifier, high, low, ..] = *bytes else { return None };
        let data = bytes.get(4..usize::from(u16::from_be_bytes([high, low])))?;
        Some(Self { code, identifier, data })
    }

    pub fn bytes(&self) -> Vec<u8> {
        let length = (self.data.len() + 4) as u16;
        let [high, low] = length.to_be_bytes();
        [&[self.code, self.identifier, high, low], self.data].concat()
    }
}

/// Change that a control protocol tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Up,
    Down,
    Finished,
}

/// State of a control protocol and its options.
#[derive(Debug)]
pub(crate) struct Negotiation<O> {
    pub options: O,
    pub state: State,
    /// Packets to send, and changes, in order.
    pub out: Vec<Vec<u8>>,
    pub changes: Vec<Change>,
    deadline_ns: Option<u64>,
    restarts: u32,
    /// Configure-Naks that we have sent since the last Configure-Ack.
    naks: u32,
    /// Configure-Naks and -Rejects of the peer since the negotiation began.
    refusals: u32,
    identifier: u8,
    requested: Vec<u8>,
}

impl<O: Options> Negotiation<O> {
    pub fn new(options: O) -> Self {
        Self {
            options,
            state: State::Initial,
            out: Vec::new(),
            changes: Vec::new(),
            deadline_ns: None,
            restarts: 0,
            naks: 0,
            refusals: 0,
            identifier: 0,
            requested: Vec::new(),
        }
    }

    pub fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    pub fn next_identifier(&mut self) -> u8 {
        self.identifier = self.identifier.wrapping_add(1);
        self.identifier
    }

    fn send(&mut self, code: u8, identifier: u8, data: &[u8]) {
        self.out.push(Packet { code, identifier, data }.bytes());
    }

    /// Runs what is due.
    pub fn advance(&mut self, now_ns: u64) {
        if self.deadline_ns.is_some_and(|deadline| deadline <= now_ns) {
            self.deadline_ns = None;
            let event = if self.restarts > 0 { Event::TimeoutMore } else { Event::TimeoutLast };
            self.happen(now_ns, event, None, &[]);
        }
    }

    /// An event without a packet.
    pub fn tell(&mut self, now_ns: u64, event: Event) {
        self.happen(now_ns, event, None, &[]);
    }

    /// A packet with one of the codes that all control protocols share; false
    /// if the code is another.
    pub fn receive(&mut self, now_ns: u64, packet: Packet<'_>) -> bool {
        let answers_last = packet.identifier == self.identifier;
        match packet.code {
            CONFIGURE_REQUEST => {
                if let Some(options) = parse(packet.data) {
                    self.requested_by_peer(now_ns, packet, &options);
                }
            }
            CONFIGURE_ACK if answers_last && packet.data == self.requested => {
                self.happen(now_ns, Event::Ack, Some(packet), &[]);
            }
            CONFIGURE_NAK | CONFIGURE_REJECT if answers_last => {
                let Some(options) = parse(packet.data) else { return true };
                self.refusals += 1;
                if self.refusals > REFUSALS_AT_MOST {
                    self.tell(now_ns, Event::CatastrophicReject);
                    return true;
                }
                for option in options {
                    if packet.code == CONFIGURE_NAK {
                        self.options.take_nak(option);
                    } else {
                        self.options.take_reject(option);
                    }
                }
                self.happen(now_ns, Event::NakOrReject, Some(packet), &[]);
            }
            CONFIGURE_ACK | CONFIGURE_NAK | CONFIGURE_REJECT => {}
            TERMINATE_REQUEST => self.happen(now_ns, Event::TerminateRequest, Some(packet), &[]),
            TERMINATE_ACK => self.happen(now_ns, Event::TerminateAck, Some(packet), &[]),
            CODE_REJECT => {
                let needed = packet.data.first().is_some_and(|code| (1..=7).contains(code));
                let event = if needed { Event::CatastrophicReject } else { Event::PermittedReject };
                self.happen(now_ns, event, Some(packet), &[]);
            }
            _ => return false,
        }
        true
    }

    /// A packet with a code that nobody knows.
    pub fn reject_code(&mut self, now_ns: u64, packet: Packet<'_>) {
        self.happen(now_ns, Event::UnknownCode, Some(packet), &[]);
    }

    fn requested_by_peer(&mut self, now_ns: u64, packet: Packet<'_>, options: &[ConfigurationOption<'_>]) {
        // A peer that begins anew while we believe it open may be another one.
        if matches!(self.state, State::Opened | State::Stopped) {
            self.options.begin();
        }
        let (mut naks, mut rejects) = (Vec::new(), Vec::new());
        for &(kind, data) in options {
            match self.options.judge((kind, data)) {
                Opinion::Good => {}
                Opinion::Rather(_) if self.naks >= NAKS_AT_MOST => append(&mut rejects, kind, data),
                Opinion::Rather(value) => append(&mut naks, kind, &value),
                Opinion::Refused => append(&mut rejects, kind, data),
            }
        }
        if naks.is_empty() && rejects.is_empty() {
            // Before the automaton runs: what comes up reads what is agreed.
            if !matches!(self.state, State::Closed | State::Closing | State::Stopping) {
                self.options.agree(options);
            }
            self.naks = 0;
            self.happen(now_ns, Event::GoodRequest, Some(packet), &[]);
            return;
        }
        let mut answer = vec![if rejects.is_empty() { CONFIGURE_NAK } else { CONFIGURE_REJECT }];
        if rejects.is_empty() {
            self.naks += 1;
            answer.extend(naks);
        } else {
            answer.extend(rejects);
        }
        self.happen(now_ns, Event::BadRequest, Some(packet), &answer);
    }

    /// `answer` is the code and the options of a Configure-Nak or -Reject.
    fn happen(&mut self, now_ns: u64, event: Event, packet: Option<Packet<'_>>, answer: &[u8]) {
        let Some((actions, next)) = step(self.state, event) else { return };
        let before = self.state;
        if matches!(before, State::Starting | State::Closed | State::Stopped | State::Opened)
            && matches!(next, State::ReqSent | State::AckSent)
        {
            (self.naks, self.refusals) = (0, 0);
            if matches!(event, Event::Up | Event::Open) {
                self.options.begin();
            }
        }
        self.state = next;
        for action in actions {
            self.act(now_ns, *action, packet, answer);
        }
        let timed = matches!(next, State::Closing | State::Stopping | State::ReqSent | State::AckRcvd | State::AckSent);
        if !timed {
            self.deadline_ns = None;
        } else if before != next && self.deadline_ns.is_none() {
            self.deadline_ns = Some(now_ns + RESTART_NS);
        }
    }

    fn act(&mut self, now_ns: u64, action: Action, packet: Option<Packet<'_>>, answer: &[u8]) {
        let identifier = packet.map_or(0, |packet| packet.identifier);
        let data = packet.map_or(&[][..], |packet| packet.data);
        match action {
            Action::ThisLayerUp => self.changes.push(Change::Up),
            Action::ThisLayerDown => self.changes.push(Change::Down),
            Action::ThisLayerFinished => self.changes.push(Change::Finished),
            Action::ThisLayerStarted => {}
            Action::InitialiseCounter => {
                let terminates = matches!(self.state, State::Closing | State::Stopping);
                self.restarts = if terminates { TERMINATIONS_AT_MOST } else { REQUESTS_AT_MOST };
            }
            Action::ZeroCounter => {
                self.restarts = 0;
                self.deadline_ns = Some(now_ns + RESTART_NS);
            }
            Action::SendRequest => {
                let mut requested = Vec::new();
                self.options.request(&mut requested);
                let identifier = self.next_identifier();
                self.send(CONFIGURE_REQUEST, identifier, &requested);
                self.requested = requested;
                self.restart_timer(now_ns);
            }
            Action::SendAck => self.send(CONFIGURE_ACK, identifier, data),
            Action::SendNakOrReject => {
                if let Some((code, options)) = answer.split_first() {
                    self.send(*code, identifier, options);
                }
            }
            Action::SendTerminateRequest => {
                let identifier = self.next_identifier();
                self.send(TERMINATE_REQUEST, identifier, &[]);
                self.restart_timer(now_ns);
            }
            Action::SendTerminateAck => self.send(TERMINATE_ACK, identifier, &[]),
            Action::SendCodeReject => {
                if let Some(packet) = packet {
                    let identifier = self.next_identifier_of_others();
                    let rejected = packet.bytes();
                    self.send(CODE_REJECT, identifier, &rejected[..rejected.len().min(REJECTED_BYTES)]);
                }
            }
        }
    }

    /// Identifier of a packet that nobody answers: it must not take the place
    /// of the last request's, which an answer may be under way to.
    fn next_identifier_of_others(&self) -> u8 {
        self.identifier.wrapping_add(128)
    }

    fn restart_timer(&mut self, now_ns: u64) {
        self.restarts = self.restarts.saturating_sub(1);
        self.deadline_ns = Some(now_ns + RESTART_NS);
    }
}
