// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The opening, slow start, acknowledgements, the end: computed by hand.

use airpath_core::{Span, Time};
use airpath_tcp::{BufferSize, Config, CongestionControl, Flags, State};

use crate::common::{Line, Verdict, config, transfer};

const MS: u64 = 1_000_000;
/// No stall.
const NEVER: (Time, Time) = (Time::ZERO, Time::ZERO);
const FOREVER: Time = Time::from_nanos(3_600_000 * MS);

/// 12 Mbit/s: a full packet of 1500 bytes takes a millisecond, one of 52 bytes 34.666 µs.
fn line() -> Line {
    Line { rate_bits_per_second: 12_000_000, delay: Span::from_millis(50), queue: 1_000, stall: NEVER }
}

#[test]
fn slow_start_is_exact_to_the_nanosecond() {
    let configs = (config(CongestionControl::Reno), config(CongestionControl::Reno));
    let run = transfer(&line(), configs, 40 * 1_448, FOREVER, &mut |_, _, _, _| Verdict::Passes);
    assert_eq!((run.got, run.sender.counts().retransmissions), (40 * 1_448, 0));
    // SYN and its answer have 60 bytes, which take 40 µs each way.
    let open = 2 * (50 * MS + 40_000);
    let data = run.data();
    let first: Vec<u64> = data.iter().take(10).map(|(at, _, _)| *at).collect();
    assert_eq!(first, vec![open; 10]);
    // The acknowledgement of the opening is before them. Each is acknowledged at once, since the connection is new:
    // two more segments leave for each of ten acknowledgements.
    let acknowledgement = 52 * 8 * 1_000 / 12;
    let arrival = |number: u64| open + acknowledgement + number * MS + 50 * MS + acknowledgement + 50 * MS;
    let second: Vec<u64> = data.iter().skip(10).take(20).map(|(at, _, _)| *at).collect();
    let expected: Vec<u64> = (1..=10).flat_map(|number| [arrival(number); 2]).collect();
    assert_eq!(second, expected);
    // Segments are full and in order.
    assert!(
        data.iter().enumerate().all(|(number, (_, begin, bytes))| (*begin, *bytes) == (number as u64 * 1_448, 1_448))
    );
}

#[test]
fn a_steady_stream_is_acknowledged_by_every_second_segment() {
    // A window that grows would be told with every segment.
    let steady = Config { receive_buffer: BufferSize::Fixed(500_000), ..config(CongestionControl::Reno) };
    let run = transfer(&line(), (steady, steady), 2_000_000, FOREVER, &mut |_, _, _, _| Verdict::Passes);
    let data = run.data().len() as f64;
    let acknowledgements = run.passed.iter().filter(|passed| !passed.by_sender).count() as f64;
    assert!((0.5..0.65).contains(&(acknowledgements / data)), "{acknowledgements} for {data}");
}

#[test]
fn an_odd_segment_is_acknowledged_after_40_ms() {
    // The window is three segments: a pair is acknowledged at once, and the third waits for the timer, once the
    // sixteen quick acknowledgements of a new connection are used up.
    let three = Config { receive_buffer: BufferSize::Fixed(3 * 1_448), ..config(CongestionControl::None) };
    let run = transfer(&line(), (three, three), 200 * 1_448, FOREVER, &mut |_, _, _, _| Verdict::Passes);
    let arrivals: Vec<u64> =
        run.passed.iter().filter(|passed| !passed.by_sender).map(|passed| passed.at.nanos()).collect();
    let waits = arrivals.windows(2).filter(|pair| (40 * MS..44 * MS).contains(&(pair[1] - pair[0]))).count();
    assert!(waits >= 10, "{waits} of {}", arrivals.len());
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second() {
    let configs = (config(CongestionControl::Cubic), config(CongestionControl::Cubic));
    let mut lost = 0;
    let run = transfer(&line(), configs, 1_000, FOREVER, &mut |by_sender, number, _, _| {
        let loses = by_sender && number < 2;
        lost += u64::from(loses);
        if loses { Verdict::Lost } else { Verdict::Passes }
    });
    let syns: Vec<u64> =
        run.passed.iter().filter(|passed| passed.segment.flags == Flags::SYN).map(|passed| passed.at.nanos()).collect();
    // 1000 ticks from the wheel's slots of 64: at 1024 ms, and at 2048 + 64 ms.
    assert_eq!((syns, lost, run.got), (vec![0, 1_024 * MS, 2_048 * MS], 2, 1_000));
}

#[test]
fn a_connection_without_answers_gives_up_in_time() {
    let configs = (config(CongestionControl::Cubic), config(CongestionControl::Cubic));
    let run = transfer(&line(), configs, 1_000, FOREVER, &mut |_, _, _, _| Verdict::Lost);
    assert_eq!((run.sender.state(), run.now), (State::GivenUp, Time::from_nanos(900_000 * MS)));
    // The SYN alone: 5 s in steps of one, and then 2, 4, 8 up to 120 s.
    assert!((15..=22).contains(&run.passed.len()), "{}", run.passed.len());
}

#[test]
fn a_mark_of_congestion_lowers_the_window_without_a_loss() {
    let ecn = Config { ecn: true, ..config(CongestionControl::Reno) };
    let mut marked = 0;
    let run = transfer(&line(), (ecn, ecn), 500_000, FOREVER, &mut |by_sender, number, segment, _| {
        let marks = by_sender && number == 60 && segment.ecn_capable;
        marked += u64::from(marks);
        if marks { Verdict::Marked } else { Verdict::Passes }
    });
    assert_eq!((marked, run.got, run.sender.counts().retransmissions), (1, 500_000, 0));
    assert!(run.sender.measurements().threshold.is_some_and(|threshold| threshold < 60));
    let echoes = run.passed.iter().filter(|passed| !passed.by_sender && passed.segment.flags.has(Flags::ECE)).count();
    let answers: Vec<&crate::common::Passed> =
        run.passed.iter().filter(|passed| passed.by_sender && passed.segment.flags.has(Flags::CWR)).collect();
    // The SYN has both flags, its answer one; then one segment says that the window is lower.
    assert_eq!(answers.len(), 2);
    assert!(echoes > 2, "{echoes}");
    // Without ECN at one end nothing is capable.
    let plain = config(CongestionControl::Reno);
    let run = transfer(&line(), (ecn, plain), 50_000, FOREVER, &mut |_, _, _, _| Verdict::Passes);
    assert!(run.passed.iter().all(|passed| !passed.segment.ecn_capable));
}

#[test]
fn a_window_of_the_receiver_is_never_exceeded() {
    let small = Config { receive_buffer: BufferSize::Fixed(10_000), ..config(CongestionControl::None) };
    let run = transfer(&line(), (small, small), 200_000, FOREVER, &mut |_, _, _, _| Verdict::Passes);
    assert_eq!((run.got, run.sender.counts().retransmissions), (200_000, 0));
    // Six segments and what is left of the window, 10 kB, in each round trip of 100 ms and the segments' times.
    assert!((2_000 * MS..2_300 * MS).contains(&run.last.nanos()), "{:?}", run.last);
    assert!(
        run.data()
            .windows(8)
            .all(|sent| sent[7].1 + u64::from(sent[7].2) - sent[0].1 <= 10_000 || sent[7].0 > sent[0].0 + 100 * MS)
    );
    // A window below a segment still lets data through, in pieces of a half of it.
    let tiny = Config { receive_buffer: BufferSize::Fixed(900), ..config(CongestionControl::Reno) };
    let run = transfer(&line(), (tiny, tiny), 5_000, FOREVER, &mut |_, _, _, _| Verdict::Passes);
    assert_eq!(run.got, 5_000);
    assert!(run.data().iter().all(|(_, _, bytes)| *bytes <= 450));
}
