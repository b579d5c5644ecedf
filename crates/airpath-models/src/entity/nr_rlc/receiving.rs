// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receiving end: segments put together by RLC, packets put into order by PDCP.

use airpath_core::{Cause, Pdu, Time};

use super::am_receiving::{AmReceiver, AmTaken};
use super::block::{DataHeader, Status};
use super::config::NrRlcConfig;
use super::format::Mode;
use super::partial::Segment;
use super::um::{UmReceiver, UmTaken};
use super::{hand_up, lose, settle};
use crate::air::Piece;
use crate::entity::reordering::Reordering;
use crate::entity::{SduKey, Sdus};
use crate::stage::StageCx;

/// RLC of the receiving end.
#[derive(Clone, Debug)]
enum Protocol {
    Um(UmReceiver),
    Am(AmReceiver),
}

/// The receiving end.
#[derive(Clone, Debug)]
pub struct Receiver {
    protocol: Protocol,
    reordering: Reordering,
    /// Scratch: packets that are given up.
    discarded: Vec<SduKey>,
    /// Scratch: packets to deliver.
    deliver: Vec<SduKey>,
}

impl Receiver {
    /// An end at which nothing has come.
    pub fn new(config: &NrRlcConfig) -> Receiver {
        let format = config.format();
        let protocol = match config.mode {
            Mode::Um => Protocol::Um(UmReceiver::new(format, config.t_reassembly)),
            Mode::Am => Protocol::Am(AmReceiver::new(format, config.t_reassembly, config.t_status_prohibit)),
        };
        let reordering = Reordering::new(config.pdcp.reordering());
        Receiver { protocol, reordering, discarded: Vec::new(), deliver: Vec::new() }
    }

    /// Mode.
    pub fn mode(&self) -> Mode {
        match &self.protocol {
            Protocol::Um(_) => Mode::Um,
            Protocol::Am(_) => Mode::Am,
        }
    }

    /// Takes a data PDU; packets that are complete go to `up`.
    pub fn take(
        &mut self,
        header: &DataHeader,
        piece: &Piece,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        let segment = Segment::new(piece, header.offset);
        let is_complete = match &mut self.protocol {
            Protocol::Um(um) => {
                let taken = match header.sn {
                    None => UmTaken::Complete,
                    Some(sn) => um.take(stage.at, sn, &segment, &mut self.discarded),
                };
                // Each part of a packet comes once.
                let lost = match taken {
                    UmTaken::Complete | UmTaken::Kept => None,
                    UmTaken::Discarded => Some((piece.sdu, Cause::TooLate)),
                    UmTaken::Confused(other) => Some((other, Cause::Integrity)),
                };
                if let Some((sdu, cause)) = lost {
                    lose(sdus, sdu, cause, stage);
                }
                settle(sdus, piece.sdu, piece.link_bits);
                taken == UmTaken::Complete
            }
            Protocol::Am(am) => {
                let number = (header.flow, header.sn.unwrap_or_default());
                am.take(stage.at, number, header.poll, &segment) == AmTaken::Complete
            }
        };
        self.discard(sdus, stage);
        if is_complete {
            if let Some(sdu) = sdus.get_mut(piece.sdu) {
                sdu.buffered = 1;
            }
            if !self.reordering.take(stage.at, header.count, piece.sdu, &mut self.deliver) {
                lose(sdus, piece.sdu, Cause::TooLate, stage);
            }
            self.deliver(sdus, up);
        }
    }

    /// Drops the packets that RLC has given up.
    fn discard(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        for sdu in self.discarded.drain(..) {
            lose(sdus, sdu, Cause::TooLate, stage);
        }
    }

    fn deliver(&mut self, sdus: &mut Sdus, up: &mut Vec<Pdu>) {
        up.extend(self.deliver.drain(..).filter_map(|sdu| hand_up(sdus, sdu)));
    }

    /// Time at which a timer expires; `Time::NEVER` if none runs.
    pub fn next_deadline(&self) -> Time {
        let reassembly = match &self.protocol {
            Protocol::Um(um) => um.expires(),
            Protocol::Am(am) => am.expires(),
        };
        reassembly.min(self.reordering.expires())
    }

    /// Does what the timers ask for; packets that have waited for long enough go to `up`.
    pub fn advance(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>) {
        match &mut self.protocol {
            Protocol::Um(um) => um.expire(stage.at, &mut self.discarded),
            Protocol::Am(am) => am.expire(stage.at),
        }
        self.discard(sdus, stage);
        self.reordering.expire(stage.at, &mut self.deliver);
        self.deliver(sdus, up);
    }

    /// Time from which a STATUS PDU can be sent; `Time::NEVER` if there is none.
    pub fn reports_at(&self) -> Time {
        match &self.protocol {
            Protocol::Um(_) => Time::NEVER,
            Protocol::Am(am) => am.reports_at(),
        }
    }

    /// The STATUS PDU for `at`, if there is one and it fits into `room` octets, and its octets.
    pub fn status(&mut self, at: Time, room: u32) -> Option<(Status, u32)> {
        match &mut self.protocol {
            Protocol::Um(_) => None,
            Protocol::Am(am) => am.status(at, room),
        }
    }

    /// Bits of the STATUS PDU that can be sent at `at`, about.
    pub fn status_bits(&self, at: Time) -> u64 {
        match &self.protocol {
            Protocol::Am(am) if am.reports_at() <= at => am.status_bits(),
            _ => 0,
        }
    }

    /// RX_Next, or RX_Next_Reassembly of unacknowledged mode.
    pub fn variable(&self) -> u64 {
        match &self.protocol {
            Protocol::Um(um) => um.variable(),
            Protocol::Am(am) => am.variable(),
        }
    }
}
