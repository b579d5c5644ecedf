// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Messages that set up and release flows of GPRS, by hand: blocks of 20 ms with CS-2 on one timeslot, a propagation
//! delay of 90 ms, and 200 ms for an exchange on the common channels. What becomes due as a block begins waits for the
//! next one.

use airpath_core::{Cause, Direction, EventKind, Origin, PortId, Seed, Span, Time};
use airpath_models::channel::positions::PositionsConfig;
use airpath_models::entity::gprs::{Access, FlowConfig, GprsConfig, SetUpConfig};
use airpath_models::{LinkConfig, Path, PathConfig};

use super::*;

/// Blocks of a list are lost, counted over all of a direction.
fn lose(positions: &str) -> ErrorsConfig {
    let process =
        ErrorProcessConfig::Positions(PositionsConfig { positions: Some(read(positions)), file: None, repeat: None });
    ErrorsConfig { process, per: Per::Frame, ..ErrorsConfig::default() }
}

fn play(flow: FlowConfig, lost: [&str; 2], script: &Script, end: u64, seed: u64) -> Trace {
    let config = GprsConfig { flow, ..GprsConfig::default() };
    let link = cell(EntityConfig::Gprs(config), 456, ErrorsConfig::default());
    assert_eq!(link.problems(), []);
    let mut hop = hop(&link);
    for (link, positions) in [&mut hop.uplink, &mut hop.downlink].into_iter().zip(lost) {
        if !positions.is_empty() {
            link.errors = lose(positions);
        }
    }
    run_to(Path::new(&PathConfig { hops: vec![hop], ..PathConfig::default() }, Seed(seed)), script, ms(end))
}

fn with(set_up: SetUpConfig) -> FlowConfig {
    FlowConfig { set_up, ..FlowConfig::default() }
}

fn sent(trace: &Trace, direction: Direction, origin: Origin) -> u64 {
    trace.counters.site(0, direction, origin).kind(EventKind::FrameSent).count
}

fn resets(trace: &Trace) -> Vec<Time> {
    trace.of_kind(EventKind::LinkReset).iter().map(|event| event.at).collect()
}

fn milliseconds(times: &[u64]) -> Vec<u64> {
    times.iter().map(|at| at * 1_000_000).collect()
}

const NOTHING: [&str; 2] = ["", ""];

/// The flow is there at 200. The first block, from 220, arrives at 330, and its acknowledgement goes from 340 to 360
/// and is there at 450: up to 440 twelve blocks have a TLLI and 26 octets. The other 188 octets are seven blocks from
/// 460 on, the last of which arrives at 690. The final acknowledgement goes at 700 and is there at 810: eleven blocks
/// are repeated. The answer is due at 850, goes at 860 and is there at 970, before the poll is 300 ms old.
#[test]
fn an_uplink_flow_begins_with_contention_and_ends_with_an_answer() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    let trace = play(FlowConfig::default(), NOTHING, &script, 5_000, 1);
    assert_eq!(trace.times(PortId::SERVER), milliseconds(&[690]));
    assert_eq!(sent(&trace, Direction::Uplink, Origin::User), 19 + 11);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::Control), 1);
    assert_eq!(sent(&trace, Direction::Downlink, Origin::Control), 2);
    assert_eq!(trace.held, 0);
}

/// Without the final acknowledgement at 700 the mobile goes on, up to the block at 1120. The network asks again at 1020,
/// which is there at 1130, and, because it has heard twenty blocks at 1070, at 1080.
#[test]
fn a_lost_final_acknowledgement_is_sent_again() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    let trace = play(FlowConfig::default(), ["", "1"], &script, 5_000, 1);
    assert_eq!(trace.times(PortId::SERVER), milliseconds(&[690]));
    assert_eq!(sent(&trace, Direction::Uplink, Origin::User), 19 + 27);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::Control), 1);
    assert_eq!(sent(&trace, Direction::Downlink, Origin::Control), 4);
}

/// The answer is the block behind thirty with data. The network asks at 700, 1020, 1340 and 1660, four times in all.
#[test]
fn a_lost_answer_is_asked_for_n3103_times() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    for (n3103, asked) in [(4, 4), (1, 1), (2, 2)] {
        let flow = with(SetUpConfig { n3103, ..SetUpConfig::default() });
        let trace = play(flow, ["30", ""], &script, 9_000, 1);
        assert_eq!(trace.times(PortId::SERVER), milliseconds(&[690]));
        assert_eq!(sent(&trace, Direction::Downlink, Origin::Control), 1 + asked);
        assert_eq!((resets(&trace).len(), trace.held), (0, 0));
    }
}

/// With a BS_CV_MAX of 0, N3104_MAX is 12. The accesses begin with blocks at 220, 680, 1140 and 1600, and have twelve
/// blocks each; at 1840 the packet is given up.
#[test]
fn contention_that_is_never_resolved_ends_after_four_accesses() {
    let script = vec![offer(ms(0), PortId::CLIENT, 1_000)];
    let flow = FlowConfig { bs_cv_max: 0, ..FlowConfig::default() };
    let trace = play(flow, ["", "0-999"], &script, 9_000, 1);
    assert_eq!(resets(&trace), [460, 920, 1_380, 1_840].map(ms));
    let drops: Vec<_> = trace.of_kind(EventKind::Dropped).iter().map(|drop| (drop.at, drop.cause)).collect();
    assert_eq!(drops, [(ms(1_840), Cause::LinkReset)]);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::User), 48);
    assert_eq!(trace.held, 0);
}

/// Only the first acknowledgement is lost. The second access sends the twelve blocks again from 680 to 920; the
/// acknowledgement of its first one is there at 910. The other 688 octets are 23 blocks from 920 on.
#[test]
fn the_next_access_sends_the_same_blocks() {
    let script = vec![offer(ms(0), PortId::CLIENT, 1_000)];
    let flow = FlowConfig { bs_cv_max: 0, ..FlowConfig::default() };
    let trace = play(flow, ["", "0"], &script, 9_000, 1);
    assert_eq!(resets(&trace), [ms(460)]);
    assert_eq!(trace.times(PortId::SERVER), milliseconds(&[920 + 23 * 20 + 90]));
    assert_eq!((trace.of_kind(EventKind::Dropped).len(), trace.held), (0, 0));
}

/// The flow of the first packet ends at 810, and the mobile listens. The assignment of the second goes at 1020, its
/// answer at 1180, the block at 1300. Without the assignment or the answer the network assigns again at 1340. At 2400 the
/// mobile does not listen any more.
#[test]
fn a_downlink_flow_is_assigned_while_the_mobile_listens() {
    let at = |second, lost| {
        let script = vec![offer(ms(0), PortId::SERVER, 500), offer(ms(second), PortId::SERVER, 20)];
        let trace = play(FlowConfig::default(), lost, &script, 9_000, 1);
        assert_eq!((resets(&trace).len(), trace.held), (0, 0));
        trace.times(PortId::CLIENT)
    };
    assert_eq!(at(1_000, NOTHING), milliseconds(&[650, 1_410]));
    // 17 blocks and 13 repetitions are before the assignment; one acknowledgement is before the answer.
    assert_eq!(at(1_000, ["", "30"]), milliseconds(&[650, 1_730]));
    assert_eq!(at(1_000, ["1", ""]), milliseconds(&[650, 1_730]));
    assert_eq!(at(2_400, NOTHING), milliseconds(&[650, 2_730]));
}

/// Nothing comes back: the last block polls at 540, then every 300 ms, eight times in all, and the flow is given up 300 ms
/// later. N3105 of 2 gives up at 540 + 600.
#[test]
fn polls_that_nobody_answers_end_a_downlink_flow() {
    let script = vec![offer(ms(0), PortId::SERVER, 500)];
    for (n3105, ends) in [(8, 2_940), (2, 1_140)] {
        let flow = with(SetUpConfig { n3105, ..SetUpConfig::default() });
        let trace = play(flow, ["0-999", ""], &script, 9_000, 1);
        assert_eq!(trace.times(PortId::CLIENT), milliseconds(&[650]));
        assert_eq!(resets(&trace), [ms(ends)]);
        assert_eq!(trace.held, 0);
    }
}

/// A mobile that receives asks in its answer to the poll of the twentieth block, at 760. The assignment goes at 880, the
/// block at 1000. If the assignment (block 33) is lost, T3168 ends at 1260, the mobile asks at 1580, and the assignment
/// goes at 1700.
#[test]
fn a_mobile_that_receives_asks_when_it_is_polled() {
    let script = vec![offer(ms(0), PortId::SERVER, 3_000), offer(ms(500), PortId::CLIENT, 20)];
    let trace = play(FlowConfig::default(), NOTHING, &script, 9_000, 1);
    assert_eq!(trace.times(PortId::SERVER), milliseconds(&[1_110]));
    let trace = play(FlowConfig::default(), ["", "33"], &script, 9_000, 1);
    assert_eq!(trace.times(PortId::SERVER), milliseconds(&[1_930]));
    assert_eq!((resets(&trace).len(), trace.held), (0, 0));
}

/// The flow is idle from 490 on and polls at 700, which the mobile answers at 860 with its request; the assignment goes
/// at 980, the block at 1100. The flow ends: nothing is sent in the end.
#[test]
fn an_idle_downlink_flow_polls() {
    let script = vec![offer(ms(0), PortId::SERVER, 20), offer(ms(600), PortId::CLIENT, 20)];
    let flow = FlowConfig { release_delay: Span::from_secs(1), ..FlowConfig::default() };
    let trace = play(flow.clone(), NOTHING, &script, 5_000, 1);
    assert_eq!(trace.times(PortId::CLIENT), milliseconds(&[330]));
    assert_eq!(trace.times(PortId::SERVER), milliseconds(&[1_210]));
    let later = play(flow, NOTHING, &script, 20_000, 1);
    let count = |trace: &Trace| trace.of_kind(EventKind::FrameSent).len();
    assert_eq!(count(&trace), count(&later));
    assert_eq!(resets(&later), []);
}

/// The request goes from 220 to 240, the assignment at 340, the block at 460. A request that is lost is made again by
/// another access when T3168 ends, at 720: it goes at 960, the assignment at 1080, the block at 1200.
#[test]
fn access_in_two_phases_asks_in_a_block() {
    let script = vec![offer(ms(0), PortId::CLIENT, 20)];
    let flow = with(SetUpConfig { access: Access::TwoPhase, ..SetUpConfig::default() });
    assert_eq!(play(flow.clone(), NOTHING, &script, 5_000, 1).times(PortId::SERVER), milliseconds(&[570]));
    assert_eq!(play(flow.clone(), ["0", ""], &script, 5_000, 1).times(PortId::SERVER), milliseconds(&[1_310]));
    assert_eq!(play(flow.clone(), ["", "0"], &script, 5_000, 1).times(PortId::SERVER), milliseconds(&[1_310]));
    // Four requests, then the failure is told and it begins anew.
    let trace = play(flow, ["0-3", ""], &script, 9_000, 1);
    assert_eq!((resets(&trace).len(), trace.departures.len()), (1, 1));
}

/// The exchange on the common channels is lost with probability 1/2: the number of losses is geometric, with a mean of 1
/// and a variance of 2. The mean of 400 lies in its 99 % interval.
#[test]
fn lost_accesses_are_tried_again() {
    let script = vec![offer(ms(0), PortId::CLIENT, 20)];
    let flow = with(SetUpConfig { access_loss: read("0.5"), ..SetUpConfig::default() });
    let retries = |seed| {
        let at = play(flow.clone(), NOTHING, &script, 30_000, seed).times(PortId::SERVER)[0];
        // At 330 ms without a loss; an access takes 500 ms.
        let late = at - 330_000_000;
        assert_eq!(late % 500_000_000, 0);
        late / 500_000_000
    };
    let mean = (0..400).map(retries).sum::<u64>() as f64 / 400.0;
    assert!((mean - 1.0).abs() < 2.576 * (2.0f64 / 400.0).sqrt(), "{mean}");
}

/// T3182 begins with the last block, at 580. N3102 of 4 falls to 0 by 7 when it expires: the next access waits for 1 s.
#[test]
fn a_mobile_without_acknowledgements_selects_another_cell() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500), offer(ms(5_600), PortId::CLIENT, 20)];
    for (pan_max, arrives) in [(4, 6_910), (0, 5_930), (32, 5_930)] {
        let flow = with(SetUpConfig { pan_dec: 7, pan_max, ..SetUpConfig::default() });
        let trace = play(flow, ["", "1-999"], &script, 8_000, 1);
        assert_eq!(resets(&trace)[0], ms(5_580));
        assert_eq!(trace.times(PortId::SERVER), milliseconds(&[690, arrives]), "{pan_max}");
    }
}

/// Every pattern of losses in the first six blocks of both directions: nothing is lost, doubled or out of order.
#[test]
fn every_loss_at_the_beginning_is_repaired() {
    let script: Script = [(0, PortId::CLIENT), (10, PortId::SERVER), (300, PortId::SERVER), (450, PortId::CLIENT)]
        .into_iter()
        .map(|(at, port)| offer(ms(at), port, 45))
        .collect();
    let listed = |pattern: u32| {
        let lost: Vec<_> = (0..12).filter(|bit| pattern >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
        lost.join(", ")
    };
    for access in [Access::OnePhase, Access::TwoPhase] {
        let flow = with(SetUpConfig { access, ..SetUpConfig::default() });
        for pattern in 0..1u32 << 12 {
            // Six blocks of each direction, later ones for two thirds of the patterns.
            let shift = pattern % 3 * 3;
            let (up, down) = (listed((pattern & 63) << shift), listed((pattern >> 6) << shift));
            let trace = play(flow.clone(), [&up, &down], &script, 20_000, 1);
            assert_eq!(trace.ids(PortId::SERVER), [1, 4], "{access:?} without {up} and {down}");
            assert_eq!(trace.ids(PortId::CLIENT), [2, 3], "{access:?} without {up} and {down}");
            assert_eq!((trace.of_kind(EventKind::Dropped).len(), trace.held), (0, 0));
        }
    }
}

/// The countdown counts rounds: on four timeslots nothing joins with 60 blocks behind the next one. 2000 octets are 67
/// blocks, four from 220 on; the third from 240 on has 60 behind it.
#[test]
fn the_countdown_counts_rounds_of_timeslots() {
    let last = |at, slots: u64| {
        let script = vec![offer(ms(0), PortId::CLIENT, 2_000), offer(ms(at), PortId::CLIENT, 20)];
        let config = GprsConfig { flow: FlowConfig::ideal(), ..GprsConfig::default() };
        let link: LinkConfig = cell(EntityConfig::Gprs(config), 456 * slots, ErrorsConfig::default());
        let path = Path::new(&PathConfig { hops: vec![hop(&link)], ..PathConfig::default() }, Seed(1));
        let times = run_to(path, &script, ms(9_000)).times(PortId::SERVER);
        times[1] - times[0]
    };
    assert!(last(239, 4) < 100_000_000, "{}", last(239, 4));
    assert!(last(261, 4) > 300_000_000, "{}", last(261, 4));
    assert!(last(261, 1) < 100_000_000);
}

#[test]
fn bad_parameters_of_set_up_are_named() {
    let problems = |set_up: SetUpConfig| {
        let config = GprsConfig { flow: with(set_up), ..GprsConfig::default() };
        let link = cell(EntityConfig::Gprs(config), 456, ErrorsConfig::default());
        link.problems().into_iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect::<Vec<_>>()
    };
    let plain = SetUpConfig::default;
    assert_eq!(problems(plain()), [""; 0]);
    let t3168 = SetUpConfig { t3168: Span::from_millis(600), ..plain() };
    assert_eq!(problems(t3168), ["entity.t3168: is 600 ms; it is a multiple of 500 ms, from 500 ms to 4 s"]);
    let t3192 = SetUpConfig { t3192: Span::from_millis(300), ..plain() };
    assert_eq!(problems(t3192), ["entity.t3192: is 300 ms; it is 0, 80, 120, 160, 200, 500, 1000 or 1500 ms"]);
    let loss = SetUpConfig { access_loss: read("1"), ..plain() };
    assert!(problems(loss)[0].starts_with("entity.access_loss: is 1; with more than 0.9"));
    let timeout = SetUpConfig { poll_timeout: Span::from_millis(70), ..plain() };
    assert!(problems(timeout)[0].starts_with("entity.poll_timeout: is 70 ms, less than rrbp"));
    let counts = SetUpConfig { n3103: 0, n3105: 0, pan_dec: 8, pan_inc: 8, pan_max: 6, ..plain() };
    let keys: Vec<_> = problems(counts).iter().map(|text| text.split(':').next().unwrap().to_string()).collect();
    assert_eq!(keys, ["entity.n3103", "entity.n3105", "entity.pan_dec", "entity.pan_inc", "entity.pan_max"]);
    let spans = SetUpConfig { t3190: Span::ZERO, idle_poll: Span::ZERO, access_retry: Span::ZERO, ..plain() };
    assert_eq!(problems(spans).len(), 3);
}
