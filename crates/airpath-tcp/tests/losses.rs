// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Losses, late segments and duplicates, one at a time.

use airpath_core::{Span, Time};
use airpath_tcp::{CongestionControl, CongestionState, Segment};

use crate::common::{Line, Run, Verdict, config, transfer};

const MS: u64 = 1_000_000;
/// No stall.
const NEVER: (Time, Time) = (Time::ZERO, Time::ZERO);
const FOREVER: Time = Time::from_nanos(3_600_000 * MS);

fn line() -> Line {
    Line { rate_bits_per_second: 12_000_000, delay: Span::from_millis(50), queue: 1_000, stall: NEVER }
}

/// Transfers `segments` full segments, the data segments of `fate` by their number of transmission from 0.
fn with(segments: u64, mut fate: impl FnMut(u64, &Segment, Time) -> Verdict) -> Run {
    let configs = (config(CongestionControl::Reno), config(CongestionControl::Reno));
    let mut number = 0;
    transfer(&line(), configs, segments * 1_448, FOREVER, &mut |by_sender, _, segment, at| {
        if !by_sender || segment.data_bytes == 0 {
            return Verdict::Passes;
        }
        number += 1;
        fate(number - 1, segment, at)
    })
}

fn losing(segments: u64, lost: &[u64]) -> Run {
    with(segments, |number, _, _| if lost.contains(&number) { Verdict::Lost } else { Verdict::Passes })
}

#[test]
fn one_loss_is_mended_by_one_retransmission_and_halves_the_window() {
    let run = losing(200, &[40]);
    let counts = run.sender.counts();
    assert_eq!((run.got, counts.retransmissions, counts.timeouts, counts.recoveries), (200 * 1_448, 1, 0, 1));
    let data = run.data();
    let lost = data[40];
    let again = data.iter().skip(41).find(|(_, begin, _)| *begin == lost.1).unwrap();
    // Three segments that were sent after it are known to be there; it was sent in slow start, in the third round.
    let sacks: Vec<u64> = run
        .passed
        .iter()
        .filter(|passed| !passed.by_sender && !passed.segment.sack.as_slice().is_empty())
        .map(|passed| passed.at.nanos())
        .collect();
    let third = sacks[2] + 50 * MS;
    // The third acknowledgement has three blocks' worth in one: 20 + 32 + 12 bytes.
    assert_eq!(again.0, third + 64 * 8 * 1_000 / 12);
    let threshold = run.sender.measurements().threshold.unwrap();
    assert!((15..=30).contains(&threshold), "{threshold}");
}

#[test]
fn many_losses_of_a_window_are_mended_without_a_timeout() {
    let lost: Vec<u64> = (40..60).step_by(2).collect();
    let run = losing(300, &lost);
    let counts = run.sender.counts();
    assert_eq!((run.got, counts.retransmissions, counts.timeouts, counts.recoveries), (300 * 1_448, 10, 0, 1));
}

/// RFC 8985, section 7: the tail is probed after two round trips, instead of a timeout.
#[test]
fn the_loss_of_the_tail_is_mended_by_a_probe() {
    let run = losing(20, &[19]);
    let counts = run.sender.counts();
    assert_eq!((run.got, counts.retransmissions, counts.timeouts, counts.probes), (20 * 1_448, 1, 0, 1));
    let data = run.data();
    let (last, again) = (data[19], data[20]);
    assert_eq!(last.1, again.1);
    // Two round trips of about 110 ms from the last acknowledgement.
    let wait = again.0 - last.0;
    assert!((200 * MS..500 * MS).contains(&wait), "{wait}");
}

#[test]
fn timeouts_back_off_by_doubling() {
    // Everything from the tenth data segment on is lost for 20 s.
    let run =
        with(
            100,
            |number, _, at| {
                if number >= 10 && at < Time::from_nanos(20_000 * MS) { Verdict::Lost } else { Verdict::Passes }
            },
        );
    assert_eq!(run.got, 100 * 1_448);
    let data = run.data();
    let first = data[10].1;
    let times: Vec<u64> = data.iter().filter(|(_, begin, _)| *begin == first).map(|(at, _, _)| at / MS).collect();
    // The waits double, within the slots of the timers.
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for pair in waits[1..].windows(2) {
        assert!((pair[1] as f64 / pair[0] as f64 - 2.0).abs() < 0.35, "{waits:?}");
    }
    assert!(waits.len() >= 5 && run.sender.counts().timeouts >= 5, "{waits:?}");
}

/// RFC 5682: a delay without a loss makes the timer fire; what arrives then tells that, and the window comes back.
#[test]
fn a_timeout_without_a_loss_is_found_out_and_taken_back() {
    // From 310 ms on nothing moves for 800 ms; then everything arrives, in order.
    let stall = (Time::from_nanos(310 * MS), Time::from_nanos(1_110 * MS));
    let configs = (config(CongestionControl::Reno), config(CongestionControl::Reno));
    let line = Line { stall, ..line() };
    let run = transfer(&line, configs, 200 * 1_448, FOREVER, &mut |_, _, _, _| Verdict::Passes);
    let counts = run.sender.counts();
    assert_eq!(run.got, 200 * 1_448);
    assert!(counts.timeouts >= 1 && counts.undone >= 1, "{counts:?}");
    // What is sent again is little: the first segment for each timeout, and a probe.
    assert!(counts.retransmissions <= 4, "{counts:?}");
    assert_eq!(run.sender.measurements().threshold, None);
}

/// RFC 8985, section 6.2: a segment that is overtaken waits for a quarter of the least round-trip time once reordering
/// is known, so that the second time nothing is sent again in vain.
#[test]
fn reordering_widens_the_window_of_rack() {
    let late = Span::from_millis(12);
    let run =
        with(400, |number, _, _| if number >= 40 && number % 40 == 0 { Verdict::Late(late) } else { Verdict::Passes });
    let counts = run.sender.counts();
    assert_eq!((run.got, counts.timeouts), (400 * 1_448, 0));
    // The first is sent again, before reordering is known; the other eight are not.
    assert!(counts.retransmissions <= 1, "{counts:?}");
    assert!(counts.retransmissions == 0 || counts.undone >= 1, "{counts:?}");
}

#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let mut seen = 0;
    let run = with(300, |_, segment, _| {
        let lost = segment.sequence == 4_294_960_001_u32.wrapping_add(40 * 1_448) && seen < 2;
        seen += u64::from(lost);
        if lost { Verdict::Lost } else { Verdict::Passes }
    });
    let counts = run.sender.counts();
    assert_eq!((run.got, counts.retransmissions, counts.timeouts), (300 * 1_448, 2, 0));
    assert_eq!(run.sender.measurements().state, CongestionState::Open);
}

/// RFC 6937: the window falls over a round trip, one segment for each two that are delivered.
#[test]
fn the_window_falls_gradually() {
    let run = losing(400, &[100]);
    let data = run.data();
    let lost = data[100];
    let again = data.iter().position(|(at, begin, _)| *begin == lost.1 && *at > lost.0).unwrap();
    // Sent in the round trip after the retransmission: about half of what was under way, and never a burst.
    let round: Vec<u64> =
        data[again..].iter().map(|(at, _, _)| *at).take_while(|at| *at < data[again].0 + 100 * MS).collect();
    let longest = round.chunk_by(|one, other| one == other).map(<[u64]>::len).max().unwrap();
    assert!(longest <= 3, "{longest}");
    assert!(round.len() > 20, "{}", round.len());
}
