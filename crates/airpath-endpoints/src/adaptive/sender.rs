// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Encodes frames, shapes them, and follows the receiver's reports.

use std::collections::VecDeque;

use airpath_core::{Direction, DrawKey, Ecn, Pdu, Span, Time};
use airpath_virtual::{Endpoint, Progress, Sent};
use airpath_workload::kinds::AdaptiveMedia;

use super::Session;
use super::nada::Controller;
use super::packet::{Feedback, HEADER_BYTES, Header, Stamp};
use crate::Context;
use crate::datagram::{bytes_of, datagram};
use crate::ip::{self, Protection, Reception};
use crate::record::Results;

/// Bytes of all headers of a packet.
const HEADERS_BYTES: u32 = (ip::HEADER_BYTES + HEADER_BYTES) as u32;

/// A packet in the shaping buffer.
#[derive(Clone, Copy, Debug)]
struct Shaped {
    frame: u32,
    place: u16,
    packets: u16,
    /// Length of the IP packet.
    bytes: u32,
}

/// The sending end.
pub(super) struct Sender {
    session: Session,
    controller: Controller,
    flow: u32,
    direction: Direction,
    /// Maximum length of an IP packet.
    packet_bytes: u32,
    ecn: Ecn,
    variation: f64,
    key: DrawKey,
    frames: u64,
    stop_after: Option<Span>,
    /// Times without frames, from the beginning of the flow.
    pause: (Span, Span),
    results: Results,
    start: Option<Time>,
    /// Number of the next frame, counted by the capture clock.
    number: u64,
    buffer: VecDeque<Shaped>,
    buffered_bytes: u64,
    /// Time before which the next packet does not leave the buffer.
    free_at: Time,
    sequence: u16,
    reports: u32,
}

impl Sender {
    pub(super) fn new(
        session: Session,
        controller: Controller,
        packet_bytes: u32,
        is_marked: bool,
        media: &AdaptiveMedia,
        context: &Context,
    ) -> Sender {
        let never = Span::from_nanos(u64::MAX);
        Sender {
            session,
            controller,
            flow: context.flow,
            direction: media.from.sends(),
            packet_bytes,
            ecn: if is_marked { Ecn::Ect0 } else { Ecn::NotEct },
            variation: media.variation.get(),
            key: context.key(media.from, "media frames"),
            frames: media.frames.map_or(u64::MAX, |frames| frames.0),
            stop_after: media.duration,
            pause: (media.pause.unwrap_or(never), media.resume.unwrap_or(never)),
            results: context.results.clone(),
            start: None,
            number: 0,
            buffer: VecDeque::new(),
            buffered_bytes: 0,
            free_at: Time::ZERO,
            sequence: 0,
            reports: 0,
        }
    }

    /// Capture time of the next frame; none after the last one.
    fn capture(&self) -> Option<Time> {
        let start = self.start?;
        let offset = self.session.offset(self.number);
        let is_over = self.stop_after.is_some_and(|duration| offset >= duration);
        (!is_over && self.number < self.frames).then_some(start + offset)
    }

    /// Time at which the next packet leaves the buffer.
    fn departure(&self) -> Option<Time> {
        (!self.buffer.is_empty()).then_some(self.free_at)
    }

    fn encode(&mut self, at: Time) {
        let frame = self.number;
        self.number += 1;
        let offset = self.session.offset(frame);
        if offset >= self.pause.0 && offset < self.pause.1 {
            return;
        }
        let frames_per_second = self.session.frames_per_second as f64;
        let (encoder, _) = self.controller.rates(self.buffered_bytes, frames_per_second);
        let factor = 1.0 + self.variation * (2.0 * self.key.unit(frame, 0) - 1.0);
        let bytes = (encoder / 8.0 / frames_per_second * factor).round() as u32;
        let packets = bytes.div_ceil(self.packet_bytes).clamp(1, u32::from(u16::MAX));
        if self.buffer.is_empty() {
            self.free_at = self.free_at.max(at);
        }
        for place in 0..packets {
            // Parts of equal length, the longer ones first.
            let share = bytes / packets + u32::from(place < bytes % packets);
            let bytes = share.clamp(HEADERS_BYTES + 1, self.packet_bytes);
            self.buffered_bytes += u64::from(bytes);
            self.buffer.push_back(Shaped { frame: frame as u32, place: place as u16, packets: packets as u16, bytes });
        }
        self.results.record().media.get_or_insert_default().sent += 1;
    }

    fn send(&mut self, at: Time, out: &mut Sent) {
        let (_, sending) = self.controller.rates(self.buffered_bytes, self.session.frames_per_second as f64);
        let Some(shaped) = self.buffer.pop_front() else { return };
        self.buffered_bytes -= u64::from(shaped.bytes);
        self.free_at = at + Span::from_nanos((f64::from(shaped.bytes) * 8e9 / sending).round() as u64);
        let Session { route, source, frames_per_second, .. } = self.session;
        let header = Header {
            sequence: self.sequence,
            source,
            sent: Stamp::at(at),
            frame: shaped.frame,
            place: shaped.place,
            packets: shaped.packets,
        };
        let bytes = ip::write(&route, Protection::Udp, self.ecn, self.sequence, shaped.bytes as usize, |packet| {
            header.write(frames_per_second, packet);
        });
        self.sequence = self.sequence.wrapping_add(1);
        self.results.record().side(self.direction).sent(shaped.bytes);
        let tuple = route.tuple(Protection::Udp.number());
        let pdu = datagram(self.flow, tuple, shaped.bytes, HEADERS_BYTES as usize, Some(bytes));
        out.push(Pdu { ecn: self.ecn, ..pdu });
    }

    fn is_done(&self) -> bool {
        self.start.is_some() && self.capture().is_none() && self.buffer.is_empty()
    }
}

impl Endpoint for Sender {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.results.record().start = Some(at);
        self.start = Some(at);
        self.advance(at, out);
    }

    fn receive(&mut self, at: Time, pdu: Pdu, _: &mut Sent) {
        let Some(bytes) = bytes_of(&pdu) else { return };
        let (verdict, packet) = ip::judge(&pdu, bytes, &self.session.route.reversed(), Protection::Udp);
        let back = self.direction.opposite();
        if !self.results.record().side(back).received(at, &pdu, verdict) || verdict != Reception::Intact {
            return;
        }
        let Some(report) = Feedback::read(&packet).filter(|report| report.source == self.session.source) else {
            return;
        };
        // A report that was overtaken is old.
        if report.number < self.reports {
            return;
        }
        self.reports = report.number + 1;
        let round_trip = report.latest.until(at).nanos().saturating_sub(report.held.nanos());
        self.controller.update(at, &report.signal, Span::from_nanos(round_trip));
    }

    fn advance(&mut self, at: Time, out: &mut Sent) {
        loop {
            let (capture, departure) = (self.capture(), self.departure());
            match (capture.filter(|due| *due <= at), departure.filter(|due| *due <= at)) {
                (Some(capture), Some(departure)) if departure < capture => self.send(departure, out),
                (Some(capture), _) => self.encode(capture),
                (None, Some(departure)) => self.send(departure, out),
                (None, None) => break,
            }
        }
        if self.is_done() {
            self.results.record().complete(at);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let (capture, departure) = (self.capture(), self.departure());
        capture.into_iter().chain(departure).min()
    }

    fn progress(&self) -> Progress {
        if self.is_done() { Progress::Done } else { Progress::Active }
    }
}
