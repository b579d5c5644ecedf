// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Notes of a flow's two ends while it runs.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airpath_core::{Direction, Pdu, PduId, Time};
use airpath_virtual::Progress;
use airpath_workload::Workload;

use crate::ip::Reception;
use crate::report::{Delivery, FlowReport, MediaReport, QuicReports, RequestReport, WorkloadOutcome, between};

/// Results of a flow, to be asked at any time.
#[derive(Clone, Debug)]
pub struct Results {
    workload: Arc<Workload>,
    flow: u32,
    record: Arc<Mutex<Record>>,
}

/// One direction of a flow.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub delivery: Delivery,
    latest_id: Option<PduId>,
    /// Arrived packets among those that the link has copied.
    copied: HashSet<PduId>,
    /// Number of packets that came out of the link, whatever their state, and send time of the latest sent of
    /// them.
    arrivals: u64,
    latest_sent: Option<Time>,
    last_transit_ns: Option<u64>,
    delay_sum_ns: u128,
    delays: u64,
    /// Sixteen times the jitter, as in RFC 3550, appendix A.8.
    jitter_times_16_ns: u64,
}

/// Both directions of a flow, and how it stands.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub start: Option<Time>,
    pub end: Option<Time>,
    pub failure: Option<String>,
    pub requests: Option<RequestReport>,
    pub quic: Option<QuicReports>,
    pub media: Option<MediaRecord>,
    sides: [Side; 2],
}

impl Side {
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.delivery.packets_sent += 1;
        self.delivery.sent_bytes += u64::from(bytes);
    }

    /// Notes that `pdu` came out of the link at `at`; whether it is the first of its kind and taken.
    pub(crate) fn received(&mut self, at: Time, pdu: &Pdu, verdict: Reception) -> bool {
        self.arrivals += 1;
        self.latest_sent = self.latest_sent.max(Some(pdu.arrived));
        let delivery = &mut self.delivery;
        if verdict == Reception::Rejected {
            delivery.packets_rejected += 1;
            return false;
        }
        if pdu.copied && !self.copied.insert(pdu.id) {
            delivery.packets_duplicated += 1;
            return false;
        }
        // The machine's numbers go up in the order of sending.
        match self.latest_id {
            Some(latest) if pdu.id == latest => {
                delivery.packets_duplicated += 1;
                return false;
            }
            Some(latest) if pdu.id < latest => delivery.packets_reordered += 1,
            _ => self.latest_id = Some(pdu.id),
        }
        delivery.packets_received += 1;
        delivery.received_bytes += u64::from(pdu.len);
        delivery.packets_damaged += u64::from(verdict == Reception::Damaged);
        let transit = at.since(pdu.arrived).nanos();
        delivery.least_delay_ns = Some(delivery.least_delay_ns.map_or(transit, |least| least.min(transit)));
        delivery.longest_delay_ns = delivery.longest_delay_ns.max(Some(transit));
        self.delay_sum_ns += u128::from(transit);
        self.delays += 1;
        if let Some(last) = self.last_transit_ns.replace(transit) {
            let jitter = &mut self.jitter_times_16_ns;
            *jitter = *jitter + transit.abs_diff(last) - ((*jitter + 8) >> 4);
        }
        true
    }

    /// Number of packets that came out of the link, and send time of the latest sent of them.
    pub(crate) fn arrivals(&self) -> (u64, Option<Time>) {
        (self.arrivals, self.latest_sent)
    }

    /// Notes that the receiving application got `bytes` at `at`.
    pub(crate) fn delivered(&mut self, at: Time, bytes: u64) {
        if bytes > 0 {
            self.delivery.delivered_bytes += bytes;
            self.delivery.first_byte_ns.get_or_insert(at.nanos());
            self.delivery.last_byte_ns = Some(at.nanos());
        }
    }

    fn report(&self, start: Option<Time>) -> Option<Delivery> {
        let mut delivery = self.delivery.clone();
        if delivery.packets_sent == 0 {
            return None;
        }
        delivery.packets_lost = delivery.packets_sent.saturating_sub(delivery.packets_received);
        let nanoseconds = between(start, delivery.last_byte_ns.map(Time::from_nanos)).filter(|time| *time > 0);
        delivery.goodput_bits_per_second = nanoseconds.map(|time| delivery.delivered_bytes as f64 * 8e9 / time as f64);
        delivery.mean_delay_ns = (self.delays > 0).then(|| (self.delay_sum_ns / u128::from(self.delays)) as u64);
        delivery.jitter_ns = (self.delays > 0).then_some(self.jitter_times_16_ns >> 4);
        Some(delivery)
    }
}

impl Record {
    pub(crate) fn side(&mut self, direction: Direction) -> &mut Side {
        &mut self.sides[direction as usize]
    }

    /// Notes that all is done at `at`, if it was not before.
    pub(crate) fn complete(&mut self, at: Time) {
        self.end.get_or_insert(at);
    }

    /// Progress of an end that has `active` work.
    pub(crate) fn progress(&self, active: bool) -> Progress {
        match &self.failure {
            Some(why) => Progress::Failed(why.clone()),
            None if active => Progress::Active,
            None => Progress::Done,
        }
    }
}

/// State of a frame that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    Missing,
    OnTime { damaged: bool },
    Late,
}

/// Frames of a media flow by their fate.
#[derive(Clone, Debug, Default)]
pub(crate) struct MediaRecord {
    pub sent: u64,
    /// Frames in a group.
    pub group: u64,
    frames: Vec<FrameState>,
}

impl MediaRecord {
    /// Notes that a frame is complete.
    pub(crate) fn complete(&mut self, number: u64, on_time: bool, damaged: bool) {
        let index = number as usize;
        if self.frames.len() <= index {
            self.frames.resize(index + 1, FrameState::Missing);
        }
        self.frames[index] = if on_time { FrameState::OnTime { damaged } } else { FrameState::Late };
    }

    fn report(&self) -> MediaReport {
        let count = |is: fn(&FrameState) -> bool| self.frames.iter().filter(|state| is(state)).count() as u64;
        let on_time = count(|state| matches!(state, FrameState::OnTime { .. }));
        let late = count(|state| *state == FrameState::Late);
        let groups = self.frames.chunks(usize::try_from(self.group.max(1)).unwrap_or(usize::MAX));
        let decodable = groups
            .map(|group| group.iter().take_while(|state| matches!(state, FrameState::OnTime { .. })).count() as u64);
        MediaReport {
            frames_sent: self.sent,
            frames_on_time: on_time,
            frames_late: late,
            frames_lost: self.sent.saturating_sub(on_time + late),
            frames_damaged: count(|state| *state == FrameState::OnTime { damaged: true }),
            frames_decodable: decodable.sum(),
        }
    }
}

impl Results {
    pub(crate) fn new(workload: &Workload, flow: u32) -> Results {
        Results { workload: Arc::new(workload.clone()), flow, record: Arc::default() }
    }

    /// The record; both ends run on one thread, so nobody waits here.
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Report on the flow until now.
    pub fn report(&self) -> FlowReport {
        let record = self.record();
        let name = self.workload.name.clone();
        FlowReport {
            name: name.unwrap_or_else(|| format!("{}-{}", self.workload.kind.name(), self.flow)),
            flow: self.flow,
            workload: (*self.workload).clone(),
            outcome: match (&record.failure, record.end) {
                (Some(why), _) => WorkloadOutcome::Failed(why.clone()),
                (None, Some(_)) => WorkloadOutcome::Complete,
                (None, None) => WorkloadOutcome::Incomplete,
            },
            start_ns: record.start.map(Time::nanos),
            end_ns: record.end.map(Time::nanos),
            elapsed_ns: between(record.start, record.end),
            uplink: record.sides[Direction::Uplink as usize].report(record.start),
            downlink: record.sides[Direction::Downlink as usize].report(record.start),
            requests: record.requests.clone(),
            quic: record.quic.clone(),
            media: record.media.as_ref().map(MediaRecord::report),
        }
    }
}
