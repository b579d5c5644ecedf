// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files that parameters and workloads name, and videos. Each input is read as every format: a file of one kind
//! given for another is the most common mistake.

use airpath_models::channel::PositionList;
use airpath_models::channel::trace_file::ErrorTrace;
use airpath_models::fading::{SnrTable, Track};
use airpath_models::file::FileFormat;
use airpath_models::load::trace::LoadTrace;
use airpath_models::medium::rate::cellreplay::LightTrace;
use airpath_models::medium::rate::mahimahi::MahimahiTrace;
use airpath_models::medium::rate::trace::RateTrace;
use airpath_models::random::{NetemTable, Numbers};

pub fn run(input: &[u8]) {
    parse::<ErrorTrace>(input);
    parse::<PositionList>(input);
    parse::<NetemTable>(input);
    parse::<Numbers>(input);
    parse::<LoadTrace>(input);
    parse::<LightTrace>(input);
    parse::<SnrTable>(input);
    if let Some(track) = parse::<Track>(input) {
        assert!(track.points.windows(2).all(|pair| pair[0].0 < pair[1].0), "points out of order");
    }
    if let Some(trace) = parse::<MahimahiTrace>(input) {
        assert!(trace.period_ms() > 0, "a trace that repeats without end at one instant");
    }
    if let Some(trace) = parse::<RateTrace>(input) {
        assert!(trace.period_ns() > 0 && !trace.points().is_empty());
        assert!(trace.points().windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns), "points out of order");
    }
    if let Err(problem) = airpath_engine::inside::split(input, 1 + input.len() % 50) {
        panic!("units of video are not the input: {problem}");
    }
    if let Err(problem) = airpath_endpoints::pcap::packets_in(input) {
        assert!(!problem.is_empty(), "refused without a reason");
    }
}

fn parse<T: FileFormat>(input: &[u8]) -> Option<T> {
    T::parse(input).map_err(|problem| assert!(!problem.is_empty(), "{} refused without a reason", T::WHAT)).ok()
}
