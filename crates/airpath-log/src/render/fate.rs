// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The fate of each packet.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use airpath_core::{EventKind, Origin, PduId};

use super::filter::Filter;
use super::table::for_each_event;
use super::{RenderError, Rendered};
use crate::show;

/// The fate of a packet in the link.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Fate {
    entered_ns: u64,
    flipped: u64,
    kept_bytes: Option<u64>,
    end: Option<Ending>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Ending {
    Delivered { at_ns: u64, times: u64 },
    Dropped { at_ns: u64, cause: String, hop: String },
}

/// The fates of all packets of a run, and which of them are wanted.
pub(super) struct Fates {
    fates: HashMap<PduId, Fate>,
    wanted: Option<HashSet<PduId>>,
}

impl Fates {
    /// Follows every packet through the events in `folder`.
    pub fn read(folder: &Path, filter: &Filter) -> Result<(Fates, Rendered), RenderError> {
        let mut fates: HashMap<PduId, Fate> = HashMap::new();
        let mut wanted = HashSet::new();
        let rendered = for_each_event(folder, &Filter::default(), |event, _| {
            if filter.place_and_kind(event) {
                wanted.insert(event.pdu);
            }
            if event.origin == Origin::Background.name() {
                return Ok(());
            }
            let kind = event.kind;
            if kind == EventKind::Offered.name() {
                fates.entry(event.pdu).or_default().entered_ns = event.time_ns;
            } else if kind == EventKind::Damaged.name() {
                let flipped = &mut fates.entry(event.pdu).or_default().flipped;
                *flipped = flipped.saturating_add(event.bits);
            } else if kind == EventKind::Truncated.name() {
                fates.entry(event.pdu).or_default().kept_bytes = Some(event.bits / 8);
            } else if kind == EventKind::Delivered.name() {
                let end = &mut fates.entry(event.pdu).or_default().end;
                match end {
                    // A copy.
                    Some(Ending::Delivered { times, .. }) => *times += 1,
                    _ => *end = Some(Ending::Delivered { at_ns: event.time_ns, times: 1 }),
                }
            } else if kind == EventKind::Dropped.name() {
                let dot = if event.bearer.is_empty() { "" } else { "." };
                let hop = format!("{}{dot}{}", event.hop, event.bearer);
                let end = Ending::Dropped { at_ns: event.time_ns, cause: event.cause.to_owned(), hop };
                let fate = fates.entry(event.pdu).or_default();
                // Where another copy has arrived, the packet has.
                if !matches!(fate.end, Some(Ending::Delivered { .. })) {
                    fate.end = Some(end);
                }
            }
            Ok(())
        })?;
        Ok((Fates { fates, wanted: filter.asks_for_events().then_some(wanted) }, rendered))
    }

    /// True if a packet has the events that the filter asks for.
    pub fn wants(&self, pdu: PduId) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&pdu))
    }

    /// Describes the fate of `pdu` in a few words.
    pub fn words(&self, pdu: PduId) -> String {
        let Some(fate) = self.fates.get(&pdu) else { return "fate not recorded".into() };
        let mut damage = if fate.flipped > 0 { format!("{} bits flipped, ", fate.flipped) } else { String::new() };
        if let Some(bytes) = fate.kept_bytes {
            damage += &format!("truncated to {bytes} bytes, ");
        }
        let after = |at_ns: u64| show::span(at_ns.saturating_sub(fate.entered_ns));
        match &fate.end {
            None => format!("{damage}still in the link at the end"),
            Some(Ending::Delivered { at_ns, times }) => {
                let copies = if *times > 1 { format!(", {times} times in all") } else { String::new() };
                format!("{damage}delivered after {}{copies}", after(*at_ns))
            }
            Some(Ending::Dropped { at_ns, cause, hop }) if *at_ns == fate.entered_ns => {
                format!("{damage}dropped: {cause} at {hop}")
            }
            Some(Ending::Dropped { at_ns, cause, hop }) => {
                format!("{damage}dropped: {cause} at {hop} after {}", after(*at_ns))
            }
        }
    }
}
