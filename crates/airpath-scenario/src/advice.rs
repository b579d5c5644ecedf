// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Advice on valid scenarios that probably do not do what the user wants.

use airpath_core::{Bits, Carry, Direction, LinkRate, Span};
use airpath_models::entity::{EntityConfig, egprs, gprs};
use airpath_models::flow_control::{FlowControlConfig, WindowConfig};
use airpath_models::medium::{RateConfig, VaryingConfig};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::dualpi2::Dualpi2Config;
use airpath_models::{HopConfig, LinkConfig};

use crate::report::Report;
use crate::scenario::Scenario;

/// The MTU of a scenario that names none, in bytes.
const MTU_BYTES: u32 = 1500;
/// T1 of RLP is a multiple of this.
const T1_STEP: Span = Span::from_millis(10);
/// Waits for the next block, at both ends.
const POLL_ROOM: Span = Span::from_millis(40);

impl Scenario {
    /// Warnings before a run, a sentence for each; with packets of `mtu_bytes`, or of the scenario's own MTU.
    /// Rates that vary are not looked at, but for slots.
    ///
    /// # Errors
    /// Those of [`Scenario::paths`].
    pub fn advice(&self, mtu_bytes: Option<u32>) -> Result<Vec<String>, Report> {
        let mtu_bytes = mtu_bytes.or(self.mtu).unwrap_or(MTU_BYTES);
        let mut advice = Vec::new();
        for path in self.paths()? {
            let of_states = path.config.states.iter().map(|state| (Some(&state.name), &state.hops));
            for (state, hops) in std::iter::once((None, &path.config.hops)).chain(of_states) {
                let of_links = hops.iter().flat_map(|hop| Direction::ALL.map(|direction| (hop, direction)));
                let marks = of_links.filter_map(|(hop, direction)| {
                    let place = format!("{}.{}.queue", hop.name, direction.name());
                    early_marks(&place, hop.link(direction), mtu_bytes)
                });
                let early = hops.iter().filter_map(|hop| early_polls(hop).or_else(|| early_repeats(hop)));
                let windows = hops.iter().enumerate();
                let windows = windows.flat_map(|(index, hop)| Direction::ALL.map(|direction| (index, hop, direction)));
                let windows = windows.flat_map(|(index, hop, direction)| {
                    let first = if direction == Direction::Uplink { 0 } else { hops.len() - 1 };
                    let place = format!("{}.{}", hop.name, direction.name());
                    unfit_window(&place, hop.link(direction), mtu_bytes, index == first)
                });
                for found in marks.chain(early).chain(windows) {
                    let sentence = match state {
                        // States repeat what they do not change.
                        Some(_) if advice.contains(&found) => continue,
                        Some(state) => format!("in the state `{state}`, {found}"),
                        None => found,
                    };
                    advice.push(sentence);
                }
            }
        }
        Ok(advice)
    }
}

/// Warning about a DualPI2 with a threshold below the time of one packet: it marks nearly every L4S packet that
/// finds another before it, so that an L4S flow gets less than its share beside others.
fn early_marks(place: &str, link: &LinkConfig, mtu_bytes: u32) -> Option<String> {
    let Some(LinkRate::Fixed(rate)) = link.rate.constant() else { return None };
    let (key, threshold) = threshold(place, &link.queue)?;
    let mut carry = Carry::NONE;
    let packet = rate.tx(Bits::from_bytes(u64::from(mtu_bytes)), &mut carry);
    (packet > threshold).then(|| {
        format!(
            "{place}: DualPI2 marks L4S packets after a wait of {threshold}, but at {rate} one packet of {mtu_bytes} \
             bytes takes {}: L4S flows will get less than their share; use a threshold of two packets: --set \
             {key}.threshold='{}'",
            rounded(packet),
            rounded(packet + packet),
        )
    })
}

/// Warnings about a window that lets one packet pass at a time, and about one that is larger than the queue behind it,
/// which then drops packets in spite of the window.
///
/// A window in bytes that stops an endpoint (`stops_endpoint`) lets one packet more through than it has room for, as
/// the length of the next one is not known.
fn unfit_window(place: &str, link: &LinkConfig, mtu_bytes: u32, stops_endpoint: bool) -> Vec<String> {
    let FlowControlConfig::Window(WindowConfig { packets, bytes }) = &link.flow_control else { return Vec::new() };
    let mut found = Vec::new();
    let packet = Bits::from_bytes(u64::from(mtu_bytes));
    if let Some(bytes) = bytes.filter(|bytes| *bytes < packet) {
        found.push(format!(
            "{place}.flow_control: a window of {} bytes is less than a packet of {mtu_bytes} bytes, so that only one such \
             packet passes at a time; use a multiple of that: --set {place}.flow_control.bytes='{} bytes'",
            bytes.get() / 8,
            4 * mtu_bytes,
        ));
    }
    let limit = match &link.queue {
        QueueConfig::TailDrop(queue) => queue.limit,
        QueueConfig::HeadDrop(queue) => queue.limit,
        QueueConfig::RandomDrop(queue) => queue.limit,
        _ => return found,
    };
    let fits = match (limit.packets, packets) {
        (Some(limit), Some(window)) => *window <= limit,
        (Some(_), None) => false,
        (None, _) => true,
    } && match (limit.bytes, bytes) {
        (Some(limit), Some(window)) => window.get() / 8 <= limit,
        (Some(_), None) => false,
        (None, _) => true,
    };
    if !fits {
        found.push(format!(
            "{place}.flow_control: the queue holds {limit}, which is less than the window may let through, so that packets \
             can be dropped in spite of it; use a window that is no larger than the queue's limit, in the same unit"
        ));
    }
    if let (true, true, Some(limit), Some(window)) = (fits, stops_endpoint, limit.bytes, bytes)
        && packets.is_none()
        && window.get() / 8 + u64::from(mtu_bytes) > limit
    {
        found.push(format!(
            "{place}.flow_control: the last packet of an endpoint may exceed a window in bytes, and the queue of {limit} bytes \
             has no room for it behind {} bytes; give the queue room for one more packet than the window ({} bytes), or \
             use a window in packets",
            window.get() / 8,
            window.get() / 8 + u64::from(mtu_bytes),
        ));
    }
    found
}

/// Warning about RLP with a T1 below the least round trip of its link: an end that asks before it can have an answer
/// gives up a connection that works.
fn early_polls(hop: &HopConfig) -> Option<String> {
    let (EntityConfig::Rlp(client), EntityConfig::Rlp(server)) = (&hop.uplink.entity, &hop.downlink.entity) else {
        return None;
    };
    let frame_bits = Bits::new(client.frame.bits().into());
    let one_way = |link: &LinkConfig| Some(transmission(&link.rate, frame_bits)? + link.propagation.constant()?);
    let (t1, round_trip) = (client.t1.min(server.t1), one_way(&hop.uplink)? + one_way(&hop.downlink)?);
    let steps = round_trip.nanos() / T1_STEP.nanos() + 1;
    (t1 < round_trip).then(|| {
        format!(
            "{}.entity: T1 of RLP is {t1}, but a round trip of the link takes {round_trip} at least, a frame of \
             {frame_bits} and the propagation delay both ways: the link will reset; use a longer T1: --set \
             {}.link.entity.t1='{}'",
            hop.name,
            hop.name,
            Span::from_nanos(steps * T1_STEP.nanos()),
        )
    })
}

/// Warning about GPRS or EGPRS with a `poll_timeout` below the least time to the answer to a poll: every message that
/// asks for an answer would go several times.
fn early_repeats(hop: &HopConfig) -> Option<String> {
    let flow = |link: &LinkConfig| match &link.entity {
        EntityConfig::Gprs(config) => Some((config.flow.clone(), u64::from(gprs::SCHEMES.block_bits))),
        EntityConfig::Egprs(config) => Some((config.flow.clone(), u64::from(egprs::SCHEMES.block_bits))),
        _ => None,
    };
    // The network polls, with the parameters of the downlink.
    let (flow, block_bits) = flow(&hop.downlink)?;
    if !flow.exchanges_messages() {
        return None;
    }
    let block = Bits::new(block_bits);
    let one_way = |link: &LinkConfig| Some(transmission(&link.rate, block)? + link.propagation.constant()?);
    let (timeout, answer) = (flow.set_up.poll_timeout, one_way(&hop.uplink)? + one_way(&hop.downlink)? + flow.rrbp);
    (timeout < answer).then(|| {
        format!(
            "{}.entity: a poll counts as unanswered after {timeout}, but the answer takes {answer} at least, two \
             blocks, rrbp and the propagation delay both ways: messages will be repeated for nothing; use a longer \
             time: --set {}.link.entity.poll_timeout='{}'",
            hop.name,
            hop.name,
            answer + POLL_ROOM,
        )
    })
}

/// Duration of the transmission of a frame of `bits`, where it is always the same.
fn transmission(rate: &RateConfig, bits: Bits) -> Option<Span> {
    match rate {
        RateConfig::Constant(LinkRate::Fixed(rate)) => {
            let mut carry = Carry::NONE;
            Some(rate.tx(bits, &mut carry))
        }
        RateConfig::Varying(VaryingConfig::Slotted(slots)) => {
            let before = bits.get().div_ceil(slots.bits.get()).saturating_sub(1);
            Some(slots.slot + Span::from_nanos(slots.period.unwrap_or(slots.slot).nanos().saturating_mul(before)))
        }
        _ => None,
    }
}

/// The least threshold of a DualPI2 with an L queue in `queue`, and the name of that DualPI2.
fn threshold(place: &str, queue: &QueueConfig) -> Option<(String, Span)> {
    match queue {
        QueueConfig::Dualpi2(Dualpi2Config { threshold, ecn: true, .. }) => Some((place.to_string(), *threshold)),
        QueueConfig::Classes(classes) => classes
            .classes
            .iter()
            .filter_map(|class| threshold(&format!("{place}.classes.{}.queue", class.name), &class.queue))
            .min_by_key(|(_, threshold)| *threshold),
        _ => None,
    }
}

/// Whole tenths of a millisecond, or microseconds where that would be nothing: what somebody would write.
fn rounded(span: Span) -> Span {
    let unit = if span < Span::from_millis(1) { 1_000 } else { 100_000 };
    Span::from_nanos(span.nanos().div_ceil(unit) * unit)
}
