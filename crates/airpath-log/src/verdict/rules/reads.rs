//! Packets that entered the link later than they came.

use super::super::share::by_packets;
use super::super::{Grade, Measurements, Reads, Reason};
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
                "{} packets may have waited more than {bound} before they entered the link, {} at most",
                if late == 1 { "once".into() } else { format!("{} times", show::count(late)) },
                show::span(longest_ns)
            );
            (by_packets(late, measured.offered), what)
        }
        _ => return Vec::new(),
    };
    vec![Reason::new(grade, "late_reads", what, LESS_LOAD)]
}

/// Without stamps, and without the kernel's account of the loop's own waiting, short delays are not seen.
pub(super) fn unwatched(measured: &Measurements) -> Vec<Reason> {
    if measured.unwatched_reads_ns == 0 {
        return Vec::new();
    }
    let what = format!(
        "reads were unwatched for {}: this kernel tells neither when packets came nor how long the engine waited for a \
         processor, so that delays below 100 ms were not seen",
        show::span(measured.unwatched_reads_ns)
    );
    let mend = "use --port packet, whose packets bear stamps, or a kernel with CONFIG_SCHEDSTATS";
    vec![Reason::new(Grade::Suspect, "unwatched_reads", what, mend)]
}
