// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Messages between the two ends of RLC: acknowledgements, and those that set up and release flows.

use airpath_core::{Direction, EventKind, LinkEvent, LinkFrame, Time};

use super::Rlc;
use super::access::Outcome;
use super::acknowledgement::Acknowledgement;
use super::flow::Source as _;
use super::message::{self, Control, Message};
use crate::air::Frame;
use crate::entity::Sdus;
use crate::entity::recording::record_frame;
use crate::entity::stream::Pieces;
use crate::stage::StageCx;

impl Control {
    /// Its frame, in the words of the link log.
    pub(super) fn frame(self) -> LinkFrame {
        match self {
            Control::ResourceRequest => LinkFrame::ResourceRequest,
            Control::UplinkAssignment => LinkFrame::UplinkAssignment,
            Control::DownlinkAssignment => LinkFrame::DownlinkAssignment,
            Control::Answer(_) => LinkFrame::ControlAcknowledgement,
        }
    }
}

impl Rlc {
    /// True if the other end can be reached in a radio block at `at`, to set up a flow.
    fn has_channel(&self, at: Time) -> bool {
        self.receiver.has_flow(at) || self.access.is_heard(at)
    }

    /// Asks for a flow at `at`.
    pub(super) fn request(&mut self, at: Time) {
        let outcome = self.access.request(at, self.has_channel(at));
        self.follow(outcome);
    }

    fn follow(&mut self, outcome: Outcome) {
        if let Outcome::Begins(at, contends) = outcome {
            self.sender.allocate(at, contends);
        }
    }

    /// The flow is gone: what waits needs another one.
    pub(super) fn begin_anew(&mut self, at: Time) {
        self.packets.reopen();
        if !self.packets.is_empty() && self.access.is_idle() {
            self.request(at);
        }
    }

    /// The message that is due in the block that begins at `at`, as a frame.
    pub(super) fn control(
        &mut self,
        sends: Direction,
        at: Time,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
    ) -> Option<Frame> {
        debug_assert_eq!(sends, self.end.sends(), "an end sends in its own direction");
        self.look_at_timers(at, stage);
        let waits = !self.packets.is_empty() || self.sender.has_unsent();
        let (message, words) = if let Some((_, flow)) = self.answers.pop_front_if(|(due, _)| *due <= at) {
            let control = Control::Answer(flow);
            (Message::Control(control), message::control(control))
        } else if let Some(told) = self.receiver.acknowledgement(at) {
            let requests = self.access.asks(at, waits);
            let words = message::acknowledgement(&told, requests);
            (Message::Acknowledgement(told, requests), words)
        } else {
            let control = self.access.message(at, waits)?;
            (Message::Control(control), message::control(control))
        };
        let frame = self.frame(words, Pieces::new());
        record_frame(EventKind::FrameStarted, &frame, sdus, stage);
        self.log_message(LinkEvent::Sent, &message, 0, stage);
        Some(frame)
    }

    fn look_at_timers(&mut self, at: Time, stage: &mut StageCx<'_, '_>) {
        let has_channel = self.has_channel(at);
        let outcome = self.access.look_at_timers(at, has_channel);
        match outcome {
            Outcome::Nothing => {}
            Outcome::Begins(..) => {
                if has_channel && self.is_network() {
                    // The mobile did not answer.
                    self.receiver.forget(at);
                }
                self.follow(outcome);
            }
            Outcome::Failed => {
                self.log_reset(stage);
                self.request(at);
            }
        }
    }

    fn is_network(&self) -> bool {
        self.sender.options.polls
    }

    /// An acknowledgement arrives at `at`.
    pub(super) fn take_acknowledgement(&mut self, at: Time, told: &Acknowledgement, requests: bool) {
        if requests {
            self.access.is_asked();
        }
        let before = self.sender.variables().1;
        let is_known = self.sender.acknowledge(at, told, &self.packets, &mut self.signals);
        if is_known && self.sender.variables().1 != before {
            self.access.acknowledged();
        }
        if is_known && told.is_final && !self.is_network() && !self.sender.has_flow() {
            self.answer(at, Some(told.flow));
        }
    }

    /// The mobile answers in the block that is reserved for it.
    fn answer(&mut self, at: Time, flow: Option<u32>) {
        if let Some(after) = self.receiver.options.answers_after {
            self.answers.push_back((at + after, flow));
        }
    }

    /// A message that sets up or releases a flow arrives at `at`.
    pub(super) fn hear_control(&mut self, at: Time, control: Control) {
        match control {
            Control::ResourceRequest => self.access.is_asked(),
            Control::UplinkAssignment if !self.is_network() && self.access.is_answered() => {
                self.sender.allocate(at, false);
            }
            Control::DownlinkAssignment if !self.is_network() => {
                if self.sender.has_flow() || self.receiver.has_flow(at) || self.receiver.listens(at) {
                    self.receiver.expect(at);
                    self.answer(at, None);
                }
            }
            Control::Answer(None) if self.is_network() && self.access.is_answered() => {
                self.sender.allocate(at, false);
            }
            Control::Answer(Some(flow)) if self.is_network() => self.receiver.confirm(at, flow),
            // Of an assignment or a request that is settled.
            Control::UplinkAssignment | Control::DownlinkAssignment | Control::Answer(_) => {}
        }
    }

    /// Forgets what an earlier flow has brought of the packets that begin in `pieces`: within a flow that is
    /// acknowledged a packet comes from its beginning on.
    pub(super) fn begin_packets(&mut self, pieces: &Pieces, sdus: &mut Sdus) {
        for piece in pieces {
            if self.newest != Some(piece.sdu) {
                self.newest = Some(piece.sdu);
                if let Some(sdu) = sdus.get_mut(piece.sdu) {
                    sdu.accounted = 0;
                }
            }
        }
    }
}
