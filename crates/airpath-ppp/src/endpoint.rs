// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! An end of a line: framing, LCP, and the network protocols above it.

mod admission;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use crate::authentication::{Authenticator, CHAP, Denial, PAP};
use crate::automaton::{Event, State};
use crate::configuration::Configuration;
use crate::fcs::Fcs;
use crate::framing::{Deframer, Framer, FramingError};
use crate::ipcp::Ipcp;
use crate::ipv6cp::Ipv6cp;
use crate::lcp::Lcp;
use crate::negotiation::{Change, Negotiation, Options, Packet};
use crate::report::{Counters, LineDown, NotSent};

const LCP: u16 = 0xc021;
const IPCP: u16 = 0x8021;
const IPV6CP: u16 = 0x8057;
const IPV4: u16 = 0x0021;
const IPV6: u16 = 0x0057;

const PROTOCOL_REJECT: u8 = 8;
const ECHO_REQUEST: u8 = 9;
const ECHO_REPLY: u8 = 10;
const DISCARD_REQUEST: u8 = 11;

/// Most bytes that wait for the line; beyond, answers are dropped.
const WAITING_BYTES: usize = 256 * 1024;
/// Most packets that wait for whoever reads them.
const WAITING_PACKETS: usize = 1024;
/// Requests with our own magic number after which the line is a loop.
const LOOPS: u32 = 5;
/// Time after which an end that has given up tries again.
const AGAIN_NS: u64 = 10_000_000_000;

/// One end of a line.
#[derive(Debug)]
pub struct Endpoint {
    lcp: Negotiation<Lcp>,
    ipcp: Negotiation<Ipcp>,
    ipv6cp: Option<Negotiation<Ipv6cp>>,
    deframer: Deframer,
    line: Vec<u8>,
    packets: VecDeque<Vec<u8>>,
    counters: Counters,
    echo_interval_ns: u64,
    echo_failures: u32,
    echo_at_ns: Option<u64>,
    echoes_unanswered: u32,
    again_at_ns: Option<u64>,
    authenticator: Authenticator,
    /// The network protocols have begun, with both ends known to each other.
    is_admitted: bool,
    /// The last authentication that failed, until one succeeds.
    denied: Option<Denial>,
    rejections: u8,
    /// IPCP and IPV6CP, if the peer does not know them: they are not tried again.
    unknown_to_peer: [bool; 2],
}

impl Endpoint {
    /// Most bytes behind which a packet waits for the line; beyond, packets are dropped: a queue of the line is none of
    /// the link's, and must not grow into one.
    pub const BEFORE_A_PACKET_BYTES: usize = 32 * 1024;

    /// An end whose line is not up yet.
    pub fn new(configuration: Configuration) -> Self {
        let Configuration { address, peer_address, name_servers, magic_number, .. } = configuration;
        let mru_bytes = configuration.mru_bytes.max(128);
        let identifier = |number: u32| 0x0200_0000_0000_0000 | u64::from(number);
        let made = (identifier(magic_number), identifier(magic_number.wrapping_add(1)));
        let (ours, peers) = configuration.interface_identifiers.unwrap_or(made);
        let ipv6cp = Ipv6cp::new(ours, peers);
        let mut lcp = Lcp::new(magic_number, mru_bytes, configuration.character_map);
        let authentication = configuration.authentication;
        lcp.authentication.can_say = authentication.ours.is_some();
        lcp.authentication.demanded = authentication.demanded;
        lcp.wants_long_sequences = configuration.long_sequences;
        Self {
            lcp: Negotiation::new(lcp),
            ipcp: Negotiation::new(Ipcp::new(address, peer_address, name_servers)),
            ipv6cp: configuration.ipv6.then(|| Negotiation::new(ipv6cp)),
            // A peer must be able to send 1500 bytes even if less was agreed (RFC 1661, 6.1).
            deframer: Deframer::new(Fcs::Bits16, usize::from(mru_bytes.max(1500)) + 8),
            line: Vec::new(),
            packets: VecDeque::new(),
            counters: Counters::default(),
            echo_interval_ns: configuration.echo_interval_ns,
            echo_failures: configuration.echo_failures.max(1),
            echo_at_ns: None,
            echoes_unanswered: 0,
            again_at_ns: None,
            authenticator: Authenticator::new(authentication),
            is_admitted: false,
            denied: None,
            rejections: 0,
            unknown_to_peer: [false; 2],
        }
    }

    /// The line is up: begins to negotiate.
    pub fn open(&mut self, now_ns: u64) {
        self.lcp.tell(now_ns, Event::Open);
        self.lcp.tell(now_ns, Event::Up);
        self.settle(now_ns);
    }

    /// Ends the connection in order.
    pub fn close(&mut self, now_ns: u64) {
        self.lcp.tell(now_ns, Event::Close);
        self.settle(now_ns);
    }

    /// Takes bytes from the line.
    pub fn receive(&mut self, now_ns: u64, bytes: &[u8]) {
        self.advance(now_ns);
        for byte in bytes {
            match self.deframer.push(*byte) {
                None => {}
                Some(Ok((protocol, information))) => {
                    self.counters.frames_read += 1;
                    self.take_frame(now_ns, protocol, &information);
                    self.settle(now_ns);
                }
                Some(Err(error)) => *self.counter_of(error) += 1,
            }
        }
    }

    /// Runs what is due.
    pub fn advance(&mut self, now_ns: u64) {
        self.lcp.advance(now_ns);
        self.authenticator.advance(now_ns);
        self.settle(now_ns);
        self.ipcp.advance(now_ns);
        if let Some(ipv6cp) = &mut self.ipv6cp {
            ipv6cp.advance(now_ns);
        }
        if self.again_at_ns.is_some_and(|at| at <= now_ns) {
            self.again_at_ns = None;
            self.try_again(now_ns);
        }
        if self.echo_at_ns.is_some_and(|at| at <= now_ns) {
            self.echo(now_ns);
        }
        self.settle(now_ns);
    }

    /// Instant at which [`Endpoint::advance`] has something to do.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let ipv6cp = self.ipv6cp.as_ref().and_then(Negotiation::deadline_ns);
        let authentication = self.authenticator.deadline_ns();
        [self.lcp.deadline_ns(), authentication, self.ipcp.deadline_ns(), ipv6cp, self.echo_at_ns, self.again_at_ns]
            .into_iter()
            .flatten()
            .min()
    }

    /// Sends an IP packet.
    ///
    /// # Errors
    /// When it cannot be sent now, or never.
    pub fn send(&mut self, packet: &[u8]) -> Result<(), NotSent> {
        let (protocol, open) = match packet.first().map(|first| first >> 4) {
            Some(4) => (IPV4, self.ipv4_open()),
            Some(6) => (IPV6, self.ipv6_open()),
            _ => return Err(NotSent::NoIp),
        };
        if !open {
            return Err(NotSent::NotOpen);
        }
        if packet.len() > usize::from(self.lcp.options.peer.mru_bytes) {
            return Err(NotSent::TooLong);
        }
        if self.line.len() > Self::BEFORE_A_PACKET_BYTES {
            self.counters.overflows += 1;
            return Err(NotSent::Full);
        }
        if self.write(protocol, packet) { Ok(()) } else { Err(NotSent::Full) }
    }

    /// The next IP packet of the peer.
    pub fn next_packet(&mut self) -> Option<Vec<u8>> {
        self.packets.pop_front()
    }

    /// Bytes for the line; the caller removes those that it has written.
    pub fn line(&mut self) -> &mut Vec<u8> {
        &mut self.line
    }

    /// True if packets of IPv4 pass.
    pub fn ipv4_open(&self) -> bool {
        self.ipcp.state == State::Opened
    }

    /// True if packets of IPv6 pass.
    pub fn ipv6_open(&self) -> bool {
        self.ipv6cp.as_ref().is_some_and(|ipv6cp| ipv6cp.state == State::Opened)
    }

    /// True if the peer has said that it knows no IPCP, or has refused every proposal of addresses.
    pub fn ipv4_refused(&self) -> bool {
        self.lcp.state == State::Opened && self.ipcp.state == State::Stopped
    }

    /// Longest packet that the peer takes, in bytes.
    pub fn peer_mru_bytes(&self) -> u16 {
        self.lcp.options.peer.mru_bytes
    }

    /// State of LCP.
    pub fn state(&self) -> State {
        self.lcp.state
    }

    /// Reason for which nothing passes, if nothing does.
    pub fn down(&self) -> Option<LineDown> {
        match self.lcp.state {
            State::Opened if self.is_admitted => None,
            _ if let Some(denial) = self.denied => Some(LineDown::Denied(denial)),
            _ if self.lcp.options.loops >= LOOPS => Some(LineDown::Loop),
            State::Initial | State::Closed | State::Closing => Some(LineDown::Closed),
            State::Stopped => Some(LineDown::GivenUp),
            _ => Some(LineDown::Negotiating),
        }
    }

    /// Our address and the peer's, as agreed.
    pub fn addresses(&self) -> (Ipv4Addr, Ipv4Addr) {
        (self.ipcp.options.ours, self.ipcp.options.peers)
    }

    /// Interface identifiers of ours and the peer's, as agreed.
    pub fn interface_identifiers(&self) -> Option<(u64, u64)> {
        self.ipv6cp.as_ref().map(|ipv6cp| (ipv6cp.options.ours, ipv6cp.options.peers))
    }

    /// Frames and bytes so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn counter_of(&mut self, error: FramingError) -> &mut u64 {
        match error {
            FramingError::BadSequence => &mut self.counters.bad_sequences,
            FramingError::Aborted => &mut self.counters.aborts,
            FramingError::Runt => &mut self.counters.runts,
            FramingError::Giant => &mut self.counters.giants,
            FramingError::BadHeader => &mut self.counters.malformed,
        }
    }

    fn take_frame(&mut self, now_ns: u64, protocol: u16, information: &[u8]) {
        if protocol == LCP {
            return self.take_lcp(now_ns, information);
        }
        if self.lcp.state != State::Opened {
            self.counters.early += 1;
            return;
        }
        match protocol {
            PAP | CHAP => self.take_authentication(now_ns, protocol, information),
            IPV4 if self.ipv4_open() => self.take_packet(information),
            IPV6 if self.ipv6_open() => self.take_packet(information),
            IPV4 => self.counters.early += 1,
            IPV6 if self.ipv6cp.is_some() => self.counters.early += 1,
            IPCP => {
                self.unknown_to_peer[0] = false;
                take_control(&mut self.ipcp, now_ns, information, &mut self.counters);
            }
            _ => match (&mut self.ipv6cp, protocol) {
                (Some(ipv6cp), IPV6CP) => {
                    self.unknown_to_peer[1] = false;
                    take_control(ipv6cp, now_ns, information, &mut self.counters);
                }
                _ => self.reject_protocol(protocol, information),
            },
        }
    }

    fn take_packet(&mut self, packet: &[u8]) {
        if self.packets.len() < WAITING_PACKETS {
            self.packets.push_back(packet.to_vec());
        } else {
            self.counters.unread += 1;
        }
    }

    fn take_lcp(&mut self, now_ns: u64, information: &[u8]) {
        let Some(packet) = Packet::parse(information) else {
            self.counters.malformed += 1;
            return;
        };
        if self.lcp.receive(now_ns, packet) {
            // A loop would negotiate with itself as fast as the line can.
            if self.lcp.options.loops >= LOOPS {
                self.lcp.out.clear();
                self.lcp.tell(now_ns, Event::CatastrophicReject);
            }
            return;
        }
        let open = self.lcp.state == State::Opened;
        match packet.code {
            // What the line has brought back is no answer: an open line that has become a loop answers no echo, and
            // negotiates again.
            ECHO_REQUEST | ECHO_REPLY if open && self.is_our_own(packet.data) => {}
            ECHO_REQUEST if open && packet.data.len() >= 4 => {
                let room = usize::from(self.lcp.options.peer.mru_bytes) - 4;
                let echoed = &packet.data[4..packet.data.len().min(room)];
                let data = [&self.lcp.options.magic_number_agreed().to_be_bytes(), echoed].concat();
                self.write(LCP, &Packet { code: ECHO_REPLY, identifier: packet.identifier, data: &data }.bytes());
            }
            ECHO_REPLY if open => self.echoes_unanswered = 0,
            PROTOCOL_REJECT if open => self.protocol_rejected(now_ns, packet.data),
            PROTOCOL_REJECT | ECHO_REQUEST | ECHO_REPLY | DISCARD_REQUEST => {}
            _ => self.lcp.reject_code(now_ns, packet),
        }
    }

    /// True for the contents of an echo with our magic number.
    fn is_our_own(&self, data: &[u8]) -> bool {
        let ours = self.lcp.options.magic_number_agreed();
        ours != 0 && data.first_chunk::<4>() == Some(&ours.to_be_bytes())
    }

    /// A peer that has agreed on addresses before knows the protocol: it is tried again.
    fn protocol_rejected(&mut self, now_ns: u64, data: &[u8]) {
        let protocol = data.first_chunk::<2>().map(|bytes| u16::from_be_bytes(*bytes));
        match (protocol, &mut self.ipv6cp) {
            (Some(IPCP | IPV4), _) => {
                self.unknown_to_peer[0] = self.ipcp.state != State::Opened;
                self.ipcp.tell(now_ns, Event::CatastrophicReject);
            }
            (Some(IPV6CP | IPV6), Some(ipv6cp)) => {
                self.unknown_to_peer[1] = ipv6cp.state != State::Opened;
                ipv6cp.tell(now_ns, Event::CatastrophicReject);
            }
            (Some(LCP), _) => self.lcp.tell(now_ns, Event::CatastrophicReject),
            _ => {}
        }
    }

    fn reject_protocol(&mut self, protocol: u16, information: &[u8]) {
        self.rejections = self.rejections.wrapping_add(1);
        let room = usize::from(self.lcp.options.peer.mru_bytes).saturating_sub(6);
        let data = [&protocol.to_be_bytes(), &information[..information.len().min(room)]].concat();
        self.write(LCP, &Packet { code: PROTOCOL_REJECT, identifier: self.rejections, data: &data }.bytes());
    }

    fn echo(&mut self, now_ns: u64) {
        if self.echoes_unanswered >= self.echo_failures {
            return self.restart(now_ns);
        }
        self.echoes_unanswered += 1;
        self.echo_at_ns = Some(now_ns + self.echo_interval_ns);
        let data = self.lcp.options.magic_number_agreed().to_be_bytes();
        let identifier = self.lcp.next_identifier();
        self.write(LCP, &Packet { code: ECHO_REQUEST, identifier, data: &data }.bytes());
    }

    /// Starts what has given up: else two ends that both have would wait for each other.
    fn try_again(&mut self, now_ns: u64) {
        if self.lcp.state == State::Stopped {
            return self.restart(now_ns);
        }
        if self.ipcp.state == State::Stopped && !self.unknown_to_peer[0] {
            start_again(&mut self.ipcp, now_ns);
        }
        if let Some(ipv6cp) = &mut self.ipv6cp
            && ipv6cp.state == State::Stopped
            && !self.unknown_to_peer[1]
        {
            start_again(ipv6cp, now_ns);
        }
    }

    /// Negotiates from the beginning, as after a line that was hung up.
    pub fn restart(&mut self, now_ns: u64) {
        self.lcp.tell(now_ns, Event::Down);
        self.settle(now_ns);
        self.lcp.tell(now_ns, Event::Up);
        self.settle(now_ns);
    }

    /// Carries changes of LCP upwards, and packets of all protocols to the line.
    fn settle(&mut self, now_ns: u64) {
        for change in std::mem::take(&mut self.lcp.changes) {
            self.echo_at_ns = None;
            match change {
                Change::Up => {
                    self.counters.openings += 1;
                    self.echoes_unanswered = 0;
                    self.unknown_to_peer = [false; 2];
                    self.echo_at_ns = (self.echo_interval_ns > 0).then(|| now_ns + self.echo_interval_ns);
                    self.send_control(LCP);
                    let lcp = &self.lcp.options;
                    self.authenticator.begin(now_ns, lcp.authentication.agreed, lcp.of_peers());
                }
                Change::Down => {
                    self.is_admitted = false;
                    self.authenticator.end();
                    self.ipcp.tell(now_ns, Event::Down);
                    self.ipv6cp.iter_mut().for_each(|ipv6cp| ipv6cp.tell(now_ns, Event::Down));
                }
                Change::Finished => {}
            }
        }
        self.settle_authentication(now_ns);
        self.deframer.character_map = self.lcp.options.map_of_received();
        let is_long = self.lcp.state == State::Opened && self.lcp.options.long_sequences_received();
        self.deframer.fcs = if is_long { Fcs::Bits32 } else { Fcs::Bits16 };
        let ipv6cp_stopped = self.ipv6cp.as_ref().is_some_and(|ipv6cp| ipv6cp.state == State::Stopped);
        let stopped = self.lcp.state == State::Stopped
            || (self.ipcp.state == State::Stopped && !self.unknown_to_peer[0])
            || (ipv6cp_stopped && !self.unknown_to_peer[1]);
        self.again_at_ns = stopped.then(|| self.again_at_ns.unwrap_or(now_ns + AGAIN_NS));
        for protocol in [LCP, IPCP, IPV6CP] {
            self.send_control(protocol);
        }
        self.ipcp.changes.clear();
        self.ipv6cp.iter_mut().for_each(|ipv6cp| ipv6cp.changes.clear());
    }

    fn send_control(&mut self, protocol: u16) {
        let packets = match (protocol, &mut self.ipv6cp) {
            (LCP, _) => &mut self.lcp.out,
            (IPCP, _) => &mut self.ipcp.out,
            (_, Some(ipv6cp)) => &mut ipv6cp.out,
            (_, None) => return,
        };
        for packet in std::mem::take(packets) {
            self.write(protocol, &packet);
        }
    }

    fn write(&mut self, protocol: u16, information: &[u8]) -> bool {
        if self.line.len() > WAITING_BYTES {
            self.counters.overflows += 1;
            return false;
        }
        let mut framer = Framer::new(Fcs::Bits16);
        let peer = self.lcp.options.peer;
        // Packets by which LCP agrees and ends are understood whatever was agreed (RFC 1662, 7; RFC 1570, 2.1).
        let agrees = protocol == LCP && information.first().is_some_and(|code| *code < PROTOCOL_REJECT);
        if peer.long_sequences && self.lcp.state == State::Opened && !agrees {
            framer.fcs = Fcs::Bits32;
        }
        if protocol != LCP {
            framer.character_map = peer.character_map;
            framer.compresses_address = peer.compressed_address;
            framer.compresses_protocol = peer.compressed_protocol;
        }
        framer.write(protocol, information, &mut self.line);
        self.counters.frames_written += 1;
        true
    }
}

fn start_again<O: Options>(protocol: &mut Negotiation<O>, now_ns: u64) {
    protocol.tell(now_ns, Event::Down);
    protocol.tell(now_ns, Event::Up);
}

fn take_control<O: Options>(protocol: &mut Negotiation<O>, now_ns: u64, information: &[u8], counters: &mut Counters) {
    match Packet::parse(information) {
        None => counters.malformed += 1,
        Some(packet) => {
            if !protocol.receive(now_ns, packet) {
                protocol.reject_code(now_ns, packet);
            }
        }
    }
}

#[cfg(test)]
mod refusals;
#[cfg(test)]
mod tests;
