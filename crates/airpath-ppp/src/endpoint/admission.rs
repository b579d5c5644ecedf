// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Between LCP and the network protocols: who the ends are.

use super::{Endpoint, Event};
use crate::automaton::State;
use crate::negotiation::{Negotiation, Options, Packet};

impl Endpoint {
    pub(super) fn take_authentication(&mut self, now_ns: u64, protocol: u16, information: &[u8]) {
        match Packet::parse(information) {
            None => self.counters.malformed += 1,
            Some(packet) => {
                if !self.authenticator.receive(now_ns, protocol, packet) {
                    self.reject_protocol(protocol, information);
                }
            }
        }
    }

    /// Sends what the authentication has to say, begins the network protocols once it is done, and gives the line up
    /// where it has failed.
    pub(super) fn settle_authentication(&mut self, now_ns: u64) {
        for (protocol, packet) in std::mem::take(&mut self.authenticator.out) {
            self.write(protocol, &packet);
        }
        if self.lcp.state != State::Opened {
            return;
        }
        if let Some(denial) = self.authenticator.take_denial() {
            self.denied = Some(denial);
            // Ends LCP in order; it is tried again later, as after any other refusal.
            self.lcp.tell(now_ns, Event::CatastrophicReject);
            self.settle(now_ns);
        } else if !self.is_admitted && self.authenticator.is_done() {
            self.is_admitted = true;
            self.denied = None;
            begin(&mut self.ipcp, now_ns);
            self.ipv6cp.iter_mut().for_each(|ipv6cp| begin(ipv6cp, now_ns));
        }
    }
}

fn begin<O: Options>(protocol: &mut Negotiation<O>, now_ns: u64) {
    protocol.tell(now_ns, Event::Open);
    protocol.tell(now_ns, Event::Up);
}
