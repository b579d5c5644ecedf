// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP beside that of Linux 6.12, which sent over the same links with the same seed in warp.

use airpath_endpoints::{Options, WorkloadOutcome};

use crate::common::{link, run, seconds};

/// Link, congestion control, bytes; segments that the kernel sent again, and its time from the open connection to the
/// last acknowledgement in seconds.
const KERNEL: [(&str, &str, u64, u64, f64); 6] = [
    ("9600 bit/s,200 ms,7 packets,1%", "reno", 60_000, 14, 53.609),
    ("9600 bit/s,200 ms,7 packets,1%", "cubic", 60_000, 18, 53.609),
    ("1 Mbit/s,50 ms,20 packets,1%", "reno", 500_000, 34, 4.420),
    ("1 Mbit/s,50 ms,20 packets,1%", "cubic", 500_000, 39, 4.293),
    ("10 Mbit/s,10 ms,50 packets,0%", "reno", 3_000_000, 69, 2.516),
    ("10 Mbit/s,10 ms,50 packets,0%", "cubic", 3_000_000, 4, 2.516),
];
const SEED: u64 = 3;

#[test]
fn a_transfer_repeats_what_the_kernel_repeats_and_takes_as_long() {
    for (plain, control, bytes, retransmissions, kernel_s) in KERNEL {
        let text = format!("tcp bytes={bytes} from=client cc={control}");
        let run = run(link(plain, SEED), &[&text], &Options::default(), SEED, seconds(3_600.0));
        let report = &run.reports[0];
        assert_eq!(report.outcome, WorkloadOutcome::Complete, "{plain} {control}");
        let repeated = report.uplink.as_ref().unwrap().packets_retransmitted.unwrap();
        assert!(repeated.abs_diff(retransmissions) <= 1, "{plain} {control}: {repeated}, not {retransmissions}");
        // From the start to the last byte: a round trip more for the opening, half of one less for the end.
        let elapsed_s = report.elapsed_ns.unwrap() as f64 / 1e9;
        assert!((elapsed_s / kernel_s - 1.0).abs() < 0.015, "{plain} {control}: {elapsed_s} s, not {kernel_s} s");
    }
}
