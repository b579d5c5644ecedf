// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Opportunities to send, as those of mm-link's traces.

use airpath_core::PortId;
use airpath_models::file::{FileFormat, FileRef};
use airpath_models::medium::VaryingConfig;
use airpath_models::medium::rate::mahimahi::{Accounting, MahimahiConfig, MahimahiTrace};
use airpath_models::{Fragmentation, LastFrame, LinkConfig};
use proptest::prelude::*;

use super::{MS, arrivals_ms, play, play_link, sends, sends_ms};
use crate::common::{cases, read};

fn mahimahi(text: &str) -> MahimahiConfig {
    let file = FileRef::with_data("up.trace", MahimahiTrace::parse(text.as_bytes()).unwrap());
    MahimahiConfig { file, repeat: true, accounting: Accounting::Ip }
}

pub fn mm(text: &str) -> VaryingConfig {
    VaryingConfig::Mahimahi(mahimahi(text))
}

#[test]
fn an_opportunity_sends_a_packet_and_is_wasted_when_idle() {
    // Those at 2 and 4 ms find nothing; the packets of 5 ms go at 7 and 9, and that of 12 ms at 15:
    // nothing was saved up.
    let trace = play(mm("2\n4\n7\n9\n11\n15\n30\n"), &sends_ms(&[(5, 1500), (5, 1500), (12, 1500)]));
    assert_eq!(arrivals_ms(&trace), [7, 9, 15]);
}

#[test]
fn a_packet_at_the_very_instant_misses_the_opportunity() {
    let trace = play(mm("0\n10\n20\n"), &sends(&[(0, 100), (10 * MS, 100), (20 * MS - 1, 100)]));
    // The packet of 0 goes at 10; that of 10 at 20, together with that of just before 20.
    assert_eq!(arrivals_ms(&trace), [10, 20, 20]);
}

#[test]
fn repeated_lines_are_several_opportunities() {
    let trace = play(mm("5\n5\n5\n8\n20\n"), &sends_ms(&[(1, 1500), (1, 1500), (1, 1500), (1, 1500), (1, 1500)]));
    assert_eq!(arrivals_ms(&trace), [5, 5, 5, 8, 20]);
}

#[test]
fn a_packet_takes_several_opportunities_and_leaves_the_rest_to_others() {
    // 4000 bytes take 1500 + 1500 + 1000; the 500 that are left at 9 ms carry 300 and 150 of the next
    // two, and 50 bytes of the fourth, which needs 1450 more at 12.
    let trace = play(mm("3\n6\n9\n12\n50\n"), &sends_ms(&[(1, 4000), (1, 300), (1, 150), (1, 1500)]));
    assert_eq!(arrivals_ms(&trace), [9, 9, 9, 12]);
}

#[test]
fn small_packets_share_an_opportunity_as_far_as_it_reaches() {
    // 37 of 40 bytes make 1480; the 38th has 20 bytes of it and 20 of the next.
    let trace = play(mm("5\n10\n15\n"), &sends_ms(&[(1, 40); 40]));
    let times = arrivals_ms(&trace);
    assert_eq!(times, [vec![5; 37], vec![10; 3]].concat());
}

#[test]
fn what_a_packet_leaves_is_lost_when_none_waits() {
    // 2000 bytes end at 6 ms and leave 1000 bytes, which are gone when the next comes.
    let trace = play(mm("3\n6\n9\n12\n50\n"), &sends_ms(&[(1, 2000), (7, 1500), (10, 1500)]));
    assert_eq!(arrivals_ms(&trace), [6, 9, 12]);
}

#[test]
fn the_trace_begins_anew_with_its_last_line() {
    // 0, 4 and 10 | 10, 14 and 20 | 20, 24 and 30: at 10 there are two opportunities, the last one and
    // the first of the next round.
    let trace = play(mm("0\n4\n10\n"), &sends_ms(&[(1, 1500); 6]));
    assert_eq!(arrivals_ms(&trace), [4, 10, 10, 14, 20, 20]);
    // The very first instant is over before a packet can be there.
    assert_eq!(arrivals_ms(&play(mm("0\n0\n7\n"), &sends_ms(&[(0, 1500)]))), [7]);
}

#[test]
fn without_repetition_nothing_is_sent_after_the_last_line() {
    let rate = VaryingConfig::Mahimahi(MahimahiConfig { repeat: false, ..mahimahi("4\n10\n") });
    let trace = play(rate, &sends_ms(&[(1, 1500), (1, 1500), (1, 1500), (60, 20)]));
    assert_eq!(arrivals_ms(&trace), [4, 10]);
    assert_eq!(trace.held, 2);
}

#[test]
fn the_accounting_of_mm_link_counts_the_header_of_tun() {
    let tun = |text| VaryingConfig::Mahimahi(MahimahiConfig { accounting: Accounting::Tun, ..mahimahi(text) });
    // 1504 bytes carry one packet of 1500, and 34 of 40, which count 44; 8 bytes of the 35th.
    assert_eq!(arrivals_ms(&play(tun("5\n10\n15\n"), &sends_ms(&[(1, 1500), (1, 1500)]))), [5, 10]);
    let trace = play(tun("5\n10\n15\n"), &sends_ms(&[(1, 40); 35]));
    assert_eq!(arrivals_ms(&trace), [vec![5; 34], vec![10]].concat());
    // A packet cut into frames has one header: 3 x 500 + 4 bytes fit.
    let fragmentation = Some(Fragmentation {
        frame_payload: read("500 bytes"),
        frame_header: read("0 bit"),
        last_frame: LastFrame::Short,
    });
    let link = LinkConfig { rate: tun("5\n10\n15\n").into(), fragmentation, ..LinkConfig::default() };
    assert_eq!(arrivals_ms(&play_link(link, &sends_ms(&[(1, 1500), (1, 1500)]))), [5, 10]);
}

/// mm-link as its sources describe it, an opportunity at a time, over random traces and packets.
fn mm_link(times: &[u64], packets: &[(u64, u32)], rounds: u64) -> Vec<u64> {
    let period = *times.last().unwrap();
    let mut waiting: Vec<(u64, u64)> = packets.iter().map(|(at, len)| (*at, u64::from(*len))).collect();
    let mut arrivals = Vec::new();
    for opportunity in (0..rounds).flat_map(|round| times.iter().map(move |ms| (round * period + ms) * MS)) {
        let mut bytes = 1500;
        while bytes > 0 && waiting.first().is_some_and(|(at, _)| *at < opportunity) {
            let sent = waiting[0].1.min(bytes);
            bytes -= sent;
            waiting[0].1 -= sent;
            if waiting[0].1 == 0 {
                waiting.remove(0);
                arrivals.push(opportunity);
            }
        }
    }
    arrivals
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_trace_is_replayed_as_by_mm_link(
        gaps in prop::collection::vec(0u64..6, 1..30),
        packets in prop::collection::vec((0u64..200, 0u64..2, prop::sample::select(vec![40u32, 500, 1499, 1500, 2900, 9000])), 1..40),
    ) {
        let mut times: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        times.push(times.last().unwrap() + 3);
        let mut packets: Vec<(u64, u32)> =
            packets.into_iter().map(|(at, odd, len)| (at * MS + odd * 300_000, len)).collect();
        packets.sort();
        let text: String = times.iter().map(|ms| format!("{ms}\n")).collect();
        // A queue that holds them all.
        let trace = play(mm(&text), &sends(&packets));
        prop_assert_eq!(trace.times(PortId::SERVER), mm_link(&times, &packets, 2_000));
    }
}
