// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Advice on valid scenarios that probably do not do what the user wants.

use airpath_core::{Bits, Carry, Direction, LinkRate, Span};
use airpath_models::LinkConfig;
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::dualpi2::Dualpi2Config;

use crate::report::Report;
use crate::scenario::Scenario;

/// The MTU of a scenario that names none, in bytes.
const MTU_BYTES: u32 = 1500;

impl Scenario {
    /// Warnings before a run, a sentence for each; with packets of `mtu_bytes`, or of the scenario's own MTU.
    /// Rates that vary are not looked at.
    ///
    /// # Errors
    /// Those of [`Scenario::paths`].
    pub fn advice(&self, mtu_bytes: Option<u32>) -> Result<Vec<String>, Report> {
        let mtu_bytes = mtu_bytes.or(self.mtu).unwrap_or(MTU_BYTES);
        let mut advice = Vec::new();
        for path in self.paths()? {
            let of_states = path.config.states.iter().map(|state| (Some(&state.name), &state.hops));
            for (state, hops) in std::iter::once((None, &path.config.hops)).chain(of_states) {
                for (hop, direction) in hops.iter().flat_map(|hop| Direction::ALL.map(|direction| (hop, direction))) {
                    let place = format!("{}.{}.queue", hop.name, direction.name());
                    let Some(found) = early_marks(&place, hop.link(direction), mtu_bytes) else { continue };
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
