//! The rules of the verdict: one file for each way in which a result can be distorted, one line in
//! [`RULES`].

mod demoted;
mod departures;
mod log;
mod outside;
mod reads;
mod workload;

use super::{Measurements, Reason};

pub(super) use workload::broken_off;

/// A rule: the reasons that it finds in what was measured.
pub(super) type Rule = fn(&Measurements) -> Vec<Reason>;

/// All rules. Reasons of one grade stand in the order of this list.
pub(super) const RULES: [Rule; 7] = [
    workload::was_broken_off,
    workload::never_started,
    departures::late,
    reads::late,
    outside::lost,
    demoted::demoted,
    log::incomplete,
];
