// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Authentication of the two ends: PAP (RFC 1334, section 2) and CHAP with MD5 (RFC 1994), either way round.
//!
//! Each direction has a protocol of its own, on which LCP agrees. The network protocols begin when both are done.

use crate::negotiation::{Packet, RESTART_NS};

pub(crate) const PAP: u16 = 0xc023;
pub(crate) const CHAP: u16 = 0xc223;

/// Number of MD5 among the algorithms of CHAP.
const MD5: u8 = 5;
/// Requests or challenges without an answer, as those of the other protocols.
const ATTEMPTS: u32 = 10;

const PAP_REQUEST: u8 = 1;
const PAP_ACK: u8 = 2;
const PAP_NAK: u8 = 3;
const CHALLENGE: u8 = 1;
const RESPONSE: u8 = 2;
const SUCCESS: u8 = 3;
const FAILURE: u8 = 4;

/// A protocol by which an end says who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Name and password as they are.
    Pap,
    /// A hash of the password and of a number that the other end has drawn.
    Chap,
}

impl Method {
    /// Contents of LCP's option.
    pub(crate) fn option(self) -> &'static [u8] {
        match self {
            Method::Pap => &[0xc0, 0x23],
            Method::Chap => &[0xc2, 0x23, MD5],
        }
    }

    pub(crate) fn of_option(data: &[u8]) -> Option<Method> {
        [Method::Pap, Method::Chap].into_iter().find(|method| method.option() == data)
    }
}

/// A name and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub name: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

impl std::fmt::Debug for Credentials {
    /// Without the password, which is for nobody's log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({})", String::from_utf8_lossy(&self.name))
    }
}

/// Authentication of the two ends.
#[derive(Debug, Clone, Default)]
pub struct Authentication {
    /// Our name and password, when the peer asks; none refuses to say anything.
    pub ours: Option<Credentials>,
    /// Method by which the peer must say who it is; none asks for nothing.
    pub demanded: Option<Method>,
    /// Peers that are let in.
    pub peers: Vec<Credentials>,
    /// Name that a challenge bears.
    pub challenger: Vec<u8>,
    /// Number from which challenges are drawn, which nobody else may know.
    pub secret: [u8; 16],
}

/// Outcome of an authentication that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// The peer does not take our name and password, or asks for them where we have none.
    Ours,
    /// The peer's name or password is wrong, or it says nothing.
    Peers,
}

/// Progress in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Progress {
    /// Nothing is asked for.
    #[default]
    NotNeeded,
    Waiting,
    Done,
}

/// A packet of ours that is sent until it is answered.
#[derive(Debug)]
struct Repeated {
    at_ns: u64,
    left: u32,
    /// The response to a challenge; a request of PAP is made anew.
    response: Option<Vec<u8>>,
}

/// The two directions of one line.
#[derive(Debug)]
pub(crate) struct Authenticator {
    pub configured: Authentication,
    /// Packets to send: protocol and contents.
    pub out: Vec<(u16, Vec<u8>)>,
    ours: Progress,
    ours_by: Option<Method>,
    peers: Progress,
    denial: Option<Denial>,
    identifier: u8,
    drawn: u64,
    challenge: [u8; 16],
    /// Our own packet, until the peer tells whether that is right.
    said: Option<Repeated>,
    /// Time at which the peer is challenged again, and how often; by PAP, at which it has been silent for too long.
    challenged: Option<(u64, u32)>,
}

impl Authenticator {
    pub fn new(configured: Authentication) -> Self {
        Self {
            configured,
            out: Vec::new(),
            ours: Progress::NotNeeded,
            ours_by: None,
            peers: Progress::NotNeeded,
            denial: None,
            identifier: 0,
            drawn: 0,
            challenge: [0; 16],
            said: None,
            challenged: None,
        }
    }

    /// LCP has come up: the peer asks for `of_ours`, and we have agreed on `of_peers`.
    pub fn begin(&mut self, now_ns: u64, of_ours: Option<Method>, of_peers: Option<Method>) {
        self.end();
        self.ours_by = of_ours;
        if let Some(method) = of_ours {
            self.ours = Progress::Waiting;
            if method == Method::Pap {
                self.request_pap(now_ns, ATTEMPTS);
            }
        }
        match (self.configured.demanded, of_peers) {
            (Some(_), None) => self.denial = Some(Denial::Peers),
            (Some(_), Some(method)) => {
                self.peers = Progress::Waiting;
                match method {
                    Method::Chap => self.send_challenge(now_ns, ATTEMPTS),
                    // The peer begins; it is given as long as a challenge would be.
                    Method::Pap => self.challenged = Some((now_ns + u64::from(ATTEMPTS) * RESTART_NS, 0)),
                }
            }
            (None, _) => {}
        }
    }

    /// LCP has gone down.
    pub fn end(&mut self) {
        (self.ours, self.peers, self.denial) = (Progress::NotNeeded, Progress::NotNeeded, None);
        (self.said, self.challenged, self.ours_by) = (None, None, None);
        self.out.clear();
    }

    /// True if nothing has to be said any more, by either end.
    pub fn is_done(&self) -> bool {
        self.ours != Progress::Waiting && self.peers != Progress::Waiting && self.denial.is_none()
    }

    /// Takes the reason for which the line must be given up, once.
    pub fn take_denial(&mut self) -> Option<Denial> {
        self.denial.take()
    }

    pub fn deadline_ns(&self) -> Option<u64> {
        let said = self.said.as_ref().map(|said| said.at_ns);
        said.into_iter().chain(self.challenged.map(|(at_ns, _)| at_ns)).min()
    }

    pub fn advance(&mut self, now_ns: u64) {
        if let Some(Repeated { left, response, .. }) = self.said.take_if(|said| said.at_ns <= now_ns) {
            match (left, response) {
                (0, _) => self.denial = Some(Denial::Ours),
                (left, None) => self.request_pap(now_ns, left),
                (left, Some(response)) => self.send_response(now_ns, left, response),
            }
        }
        if let Some((_, left)) = self.challenged.take_if(|(at, _)| *at <= now_ns) {
            match left {
                0 => self.denial = Some(Denial::Peers),
                left => self.send_challenge(now_ns, left),
            }
        }
    }

    /// Takes a packet of PAP or CHAP; false if it is of a protocol that nobody has agreed on.
    pub fn receive(&mut self, now_ns: u64, protocol: u16, packet: Packet<'_>) -> bool {
        match (protocol, packet.code) {
            (PAP, PAP_REQUEST) => self.judge_pap(packet),
            (PAP, PAP_ACK | PAP_NAK) => self.told(packet.code == PAP_ACK, Method::Pap),
            (CHAP, CHALLENGE) => self.respond(now_ns, packet),
            (CHAP, RESPONSE) => self.judge_response(packet),
            (CHAP, SUCCESS | FAILURE) => self.told(packet.code == SUCCESS, Method::Chap),
            _ => false,
        }
    }

    fn send(&mut self, protocol: u16, code: u8, identifier: u8, data: &[u8]) {
        self.out.push((protocol, Packet { code, identifier, data }.bytes()));
    }

    fn request_pap(&mut self, now_ns: u64, left: u32) {
        let Some(Credentials { name, password }) = self.configured.ours.clone() else { return };
        let data = [&[name.len() as u8], &name[..], &[password.len() as u8], &password[..]].concat();
        self.identifier = self.identifier.wrapping_add(1);
        self.send(PAP, PAP_REQUEST, self.identifier, &data);
        self.said = Some(Repeated { at_ns: now_ns + RESTART_NS, left: left - 1, response: None });
    }

    fn send_response(&mut self, now_ns: u64, left: u32, response: Vec<u8>) {
        self.out.push((CHAP, response.clone()));
        self.said = Some(Repeated { at_ns: now_ns + RESTART_NS, left: left - 1, response: Some(response) });
    }

    fn draw(&mut self) {
        self.drawn += 1;
        let drawn = md5::compute([&self.configured.secret[..], &self.drawn.to_be_bytes()].concat());
        self.challenge = drawn.0;
    }

    fn send_challenge(&mut self, now_ns: u64, left: u32) {
        // Each challenge has a number and a value of its own: an answer to an earlier one is late (RFC 1994, 4.1).
        self.draw();
        self.identifier = self.identifier.wrapping_add(1);
        let data = [&[self.challenge.len() as u8], &self.challenge[..], &self.configured.challenger].concat();
        self.send(CHAP, CHALLENGE, self.identifier, &data);
        self.challenged = Some((now_ns + RESTART_NS, left - 1));
    }

    /// An answer to what we said, at the beginning or at any later time.
    fn told(&mut self, is_good: bool, method: Method) -> bool {
        if self.ours_by != Some(method) {
            return false;
        }
        self.said = None;
        if is_good {
            self.ours = Progress::Done;
        } else {
            self.denial = Some(Denial::Ours);
        }
        true
    }

    /// A challenge, at the beginning or at any later time.
    fn respond(&mut self, now_ns: u64, packet: Packet<'_>) -> bool {
        let (Some(Method::Chap), Some(Credentials { name, password })) = (self.ours_by, self.configured.ours.clone())
        else {
            return false;
        };
        let Some((length, rest)) = packet.data.split_first() else { return true };
        let Some(challenge) = rest.get(..usize::from(*length)).filter(|challenge| !challenge.is_empty()) else {
            return true;
        };
        let hash = response(packet.identifier, &password, challenge);
        let data = [&[hash.len() as u8], &hash[..], &name[..]].concat();
        let Packet { identifier, .. } = packet;
        self.send_response(now_ns, ATTEMPTS, Packet { code: RESPONSE, identifier, data: &data }.bytes());
        true
    }

    fn judge_response(&mut self, packet: Packet<'_>) -> bool {
        if self.configured.demanded != Some(Method::Chap) {
            return false;
        }
        // A repeated answer gets the same reply (RFC 1994, 4.2); one to an earlier challenge gets none.
        if packet.identifier != self.identifier || self.peers == Progress::NotNeeded {
            return true;
        }
        let Some((&length, rest)) = packet.data.split_first() else { return true };
        let Some((hash, name)) = rest.split_at_checked(usize::from(length)) else { return true };
        let identifier = packet.identifier;
        let is_good = self.peers_named(name).any(|peer| hash == response(identifier, &peer.password, &self.challenge));
        self.judged(CHAP, if is_good { SUCCESS } else { FAILURE }, identifier, is_good, &[]);
        true
    }

    fn judge_pap(&mut self, packet: Packet<'_>) -> bool {
        if self.configured.demanded != Some(Method::Pap) {
            return false;
        }
        if self.peers == Progress::NotNeeded {
            return true;
        }
        let part = |data: &[u8]| -> Option<(Vec<u8>, Vec<u8>)> {
            let (&length, rest) = data.split_first()?;
            let (part, rest) = rest.split_at_checked(usize::from(length))?;
            Some((part.to_vec(), rest.to_vec()))
        };
        let Some((name, rest)) = part(packet.data) else { return true };
        let Some((password, _)) = part(&rest) else { return true };
        let is_good = self.peers_named(&name).any(|peer| peer.password == password);
        // The length of a message, which is empty.
        self.judged(PAP, if is_good { PAP_ACK } else { PAP_NAK }, packet.identifier, is_good, &[0]);
        true
    }

    fn peers_named<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a Credentials> {
        self.configured.peers.iter().filter(move |peer| peer.name == name)
    }

    fn judged(&mut self, protocol: u16, code: u8, identifier: u8, is_good: bool, data: &[u8]) {
        self.send(protocol, code, identifier, data);
        self.challenged = None;
        if is_good {
            self.peers = Progress::Done;
        } else {
            self.denial = Some(Denial::Peers);
        }
    }
}

/// Response to a challenge: MD5 over identifier, password and challenge (RFC 1994, 4.1).
fn response(identifier: u8, password: &[u8], challenge: &[u8]) -> [u8; 16] {
    md5::compute([&[identifier], password, challenge].concat()).0
}

#[cfg(test)]
mod tests;
