// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Rates that vary: against lists made by hand, and against naïve references, one for each kind of
//! rate.

mod cellreplay;
mod changes;
mod curves;
mod files;
mod opportunities;
mod slots;

use airpath_core::{PortId, Seed, Time};
use airpath_models::medium::RateConfig;
use airpath_models::{LinkConfig, Path};

use crate::common::{Script, Trace, check_laws, ms, offer, one_hop};

pub fn play(rate: impl Into<RateConfig>, script: &Script) -> Trace {
    play_link(LinkConfig { rate: rate.into(), ..LinkConfig::default() }, script)
}

pub fn play_link(link: LinkConfig, script: &Script) -> Trace {
    check_laws(|| Path::new(&one_hop("radio", link.clone(), LinkConfig::default()), Seed(1)), script, 1)
}

pub fn sends(packets: &[(u64, u32)]) -> Script {
    packets.iter().map(|(at, len)| offer(Time::from_nanos(*at), PortId::CLIENT, *len)).collect()
}

/// Packets at times in milliseconds.
pub fn sends_ms(packets: &[(u64, u32)]) -> Script {
    packets.iter().map(|(at, len)| offer(ms(*at), PortId::CLIENT, *len)).collect()
}

pub const MS: u64 = 1_000_000;

pub fn arrivals_ms(trace: &Trace) -> Vec<u64> {
    let times = trace.times(PortId::SERVER);
    assert!(times.iter().all(|at| at % MS == 0), "{times:?}");
    times.iter().map(|at| at / MS).collect()
}
