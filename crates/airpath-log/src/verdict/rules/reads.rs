//! Packets that entered the link later than they came.

use super::super::share::by_packets;
use super::super::{Measurements, Reads, Reason};
use super::LESS_LOAD;
use crate::show;

pub(super) fn late(measured: &Measurements) -> Vec<Reason> {
    let bound = show::span(measured.bound_ns);
    let (grade, what) = match measured.reads {
        Reads::Stamped { late, delay } if late > 0 => {
            let what = format!(
                "{} of {} ({}) entered the link more than {bound} after they came, the slowest reading took {}",
                show::count(late),
                show::counted(delay.count, "packet"),
                show::percent(late, delay.count),
                show::span(delay.max_ns)
            );
            (by_packets(late, delay.count), what)
        }
        Reads::Gaps { late, longest_ns } if late > 0 => {
            let what = format!(
                "{} more than {bound} passed between two readings, {} at most: packets may have entered late",
                if late == 1 { "once".into() } else { format!("{} times", show::count(late)) },
                show::span(longest_ns)
            );
            (by_packets(late, measured.offered), what)
        }
        _ => return Vec::new(),
    };
    vec![Reason::new(grade, "late_reads", what, LESS_LOAD)]
}
