//! Rates that vary: against lists made by hand, and against an integration that steps through every
//! nanosecond.

use airpath_core::{Direction, EventKind, PortId, RateStep, Seed, Time};
use airpath_models::file::{FileFormat, FileRef};
use airpath_models::medium::rate::cellreplay::{CellReplayConfig, LightTrace};
use airpath_models::medium::rate::mahimahi::{Accounting, MahimahiConfig, MahimahiTrace};
use airpath_models::medium::rate::slotted::SlottedConfig;
use airpath_models::medium::rate::steps::StepsConfig;
use airpath_models::medium::rate::trace::{Interpolation, RateTrace, TraceConfig};
use airpath_models::medium::{RateConfig, VaryingConfig};
use airpath_models::{Fragmentation, LastFrame, LinkConfig, Path, PathConfig, StateConfig};
use proptest::prelude::*;

use crate::common::*;

fn play(rate: impl Into<RateConfig>, script: &Script) -> Trace {
    play_link(LinkConfig { rate: rate.into(), ..LinkConfig::default() }, script)
}

fn play_link(link: LinkConfig, script: &Script) -> Trace {
    check_laws(|| Path::new(&one_hop("radio", link.clone(), LinkConfig::default()), Seed(1)), script, 1)
}

fn sends(packets: &[(u64, u32)]) -> Script {
    packets.iter().map(|(at, len)| offer(Time::from_nanos(*at), PortId::CLIENT, *len)).collect()
}

/// Packets at times in milliseconds.
fn sends_ms(packets: &[(u64, u32)]) -> Script {
    packets.iter().map(|(at, len)| offer(ms(*at), PortId::CLIENT, *len)).collect()
}

const MS: u64 = 1_000_000;

fn arrivals_ms(trace: &Trace) -> Vec<u64> {
    let times = trace.times(PortId::SERVER);
    assert!(times.iter().all(|at| at % MS == 0), "{times:?}");
    times.iter().map(|at| at / MS).collect()
}

// mm-link's traces.

fn mahimahi(text: &str) -> MahimahiConfig {
    let file = FileRef::with_data("up.trace", MahimahiTrace::parse(text.as_bytes()).unwrap());
    MahimahiConfig { file, repeat: true, accounting: Accounting::Ip }
}

fn mm(text: &str) -> VaryingConfig {
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

// Curves.

fn steps(steps: &[&str], period: Option<&str>, interpolation: Interpolation) -> VaryingConfig {
    let steps = steps.iter().map(|step| read::<RateStep>(step)).collect();
    let config = VaryingConfig::Steps(StepsConfig { steps, interpolation, period: period.map(read) });
    assert_eq!(config.problems(), []);
    config
}

#[test]
fn a_frame_spans_steps_and_outages() {
    // 10 kbit: 2 ms at 1 Mbit/s (2000 bit), nothing until 5 ms, then 8000 bit at 2 Mbit/s: 4 ms.
    let rate = steps(&["0 s: 1 Mbit/s", "2 ms: 0 bit/s", "5 ms: 2 Mbit/s"], None, Interpolation::Step);
    assert_eq!(play(rate.clone(), &sends(&[(0, 1250)])).times(PortId::SERVER), [9 * MS]);
    // What ends exactly with the step ends there, and not behind the outage; what begins in the
    // outage begins to be sent at 5 ms.
    let trace = play(rate.clone(), &sends(&[(0, 250), (3 * MS, 250)]));
    assert_eq!(trace.times(PortId::SERVER), [2 * MS, 6 * MS]);
    // 8 bit at 3 bit/s take 2.666… s; 24 bit 8 s: fractions are carried over, and through an outage.
    let slow = steps(&["0 s: 3 bit/s", "3 s: 0 bit/s", "4 s: 3 bit/s"], None, Interpolation::Step);
    let trace = play(slow, &sends(&[(0, 1), (0, 1), (0, 1)]));
    assert_eq!(trace.times(PortId::SERVER), [2_666_666_666, 6_333_333_333, 9_000_000_000]);
}

#[test]
fn a_period_repeats_and_an_outage_at_its_end_delays_only_what_is_not_done() {
    let rate = steps(&["0 s: 1 Mbit/s", "1 ms: 0 bit/s"], Some("10 ms"), Interpolation::Step);
    // 1000 bit a period.
    let trace = play(rate, &sends(&[(0, 125), (0, 125), (0, 250), (45 * MS, 1)]));
    assert_eq!(trace.times(PortId::SERVER), [MS, 11 * MS, 31 * MS, 50 * MS + 8_000]);
}

#[test]
fn a_line_is_integrated() {
    // From 0 to 2 Mbit/s in 10 ms: t² · 10⁸ bit after t seconds. 2500 bit are done after 5 ms, 10000
    // after 10, and from then on 2 Mbit/s hold.
    let rate = steps(&["0 s: 0 bit/s", "10 ms: 2 Mbit/s"], None, Interpolation::Linear);
    let lens = [(0, 100), (0, 200), (0, 950), (0, 125)];
    let exact = |bits: f64| ((bits / 1e8).sqrt() * 1e9).floor() as u64;
    let trace = play(rate, &sends(&lens));
    assert_eq!(trace.times(PortId::SERVER), [exact(800.0), exact(2_400.0), 10 * MS, 10 * MS + 500_000]);
    assert_eq!(exact(800.0), 2_828_427);
    // Down to nothing: 10 Mbit/s to 0 in 1 ms carries 5000 bit, the last of them in no time at the end.
    let rate = steps(&["0 s: 10 Mbit/s", "1 ms: 0 bit/s", "3 ms: 8 Mbit/s"], None, Interpolation::Linear);
    // From 1 ms: 2·10⁹ · t² bit after t s, 1000 bit after 0.000707106… s.
    let trace = play(rate, &sends(&[(0, 625), (0, 125)]));
    assert_eq!(trace.times(PortId::SERVER), [MS, MS + 707_106]);
}

/// The end of each frame by adding up every nanosecond. The work of a nanosecond is that of the
/// curve's definition: whole billionths of a bit since the beginning of its piece.
struct Naive {
    points: Vec<(u64, u64)>,
    period: Option<u64>,
    linear: bool,
}

impl Naive {
    /// Work from the beginning of the piece that `x` lies in to `x`, and that beginning.
    fn in_piece(&self, x: u64) -> (u64, u128) {
        let index = self.points.iter().rposition(|(at, _)| *at <= x).unwrap();
        let (from, rate) = self.points[index];
        let gone = u128::from(x - from);
        match self.points.get(index + 1).filter(|_| self.linear) {
            None => (from, u128::from(rate) * gone),
            Some((to, next)) => {
                let length = u128::from(to - from);
                let (rate, next) = (u128::from(rate), u128::from(*next));
                // The area of a trapezium, doubled: both sides by what is left and what is gone.
                let twice = 2 * length * rate * gone + next * gone * gone - rate * gone * gone;
                (from, twice / (2 * length))
            }
        }
    }

    /// Work done in the nanosecond that begins at `at`.
    fn work(&self, at: u64) -> u128 {
        let x = self.period.map_or(at, |period| at % period);
        let (from, before) = self.in_piece(x);
        // The end of the nanosecond may be that of the piece, whose own work counts to the end.
        let end = Naive { points: self.points.clone(), ..*self };
        let index = self.points.iter().rposition(|(at, _)| *at <= x).unwrap();
        let piece = Naive { points: end.points[index..(index + 2).min(end.points.len())].to_vec(), ..end };
        let after = piece.to_end(from, x + 1);
        after - before
    }

    fn to_end(&self, from: u64, x: u64) -> u128 {
        let (_, rate) = self.points[0];
        let gone = u128::from(x - from);
        match self.points.get(1).filter(|_| self.linear) {
            None => u128::from(rate) * gone,
            Some((to, next)) => {
                let length = u128::from(to - from);
                let (rate, next) = (u128::from(rate), u128::from(*next));
                (2 * length * rate * gone + next * gone * gone - rate * gone * gone) / (2 * length)
            }
        }
    }

    fn ends(&self, packets: &[(u64, u32)], until: u64) -> Vec<u64> {
        let mut waiting: std::collections::VecDeque<(u64, u32)> = packets.iter().copied().collect();
        let (mut left, mut ends): (Option<u128>, Vec<u64>) = (None, Vec::new());
        let mut now = 0;
        let mut work = 0;
        while now < until && (left.is_some() || !waiting.is_empty()) {
            // `work` is what this nanosecond has left.
            work += self.work(now);
            loop {
                let needed = match left {
                    Some(needed) => needed,
                    None => match waiting.front() {
                        Some((at, len)) if *at <= now => {
                            let needed = u128::from(*len) * 8 * 1_000_000_000;
                            waiting.pop_front();
                            needed
                        }
                        _ => {
                            work = 0;
                            break;
                        }
                    },
                };
                if needed > work {
                    left = Some(needed - work);
                    work = 0;
                    break;
                }
                // Done within this nanosecond, or exactly at its end.
                work -= needed;
                left = None;
                let exactly = work == 0;
                ends.push(if exactly { now + 1 } else { now });
                if exactly {
                    break;
                }
                // What follows without a gap has the rest of the nanosecond; another packet does not.
                if waiting.front().is_none_or(|(at, _)| *at > now) {
                    work = 0;
                }
            }
            now += 1;
        }
        ends
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn any_curve_is_integrated_as_nanosecond_by_nanosecond(
        points in prop::collection::vec((1u64..400, prop::sample::select(vec![0u64, 1, 333, 1_000, 12_345])), 1..6),
        repeats in any::<bool>(),
        linear in any::<bool>(),
        packets in prop::collection::vec((0u64..3_000, prop::sample::select(vec![1u32, 2, 7, 40])), 1..12),
    ) {
        // Rates in Mbit/s, so that a nanosecond matters.
        let mut at = 0;
        let mut all = vec![(0, 250_000_000)];
        for (gap, mbit) in points {
            at += gap;
            all.push((at, mbit * 1_000_000));
        }
        // Something arrives in the end.
        all.push((at + 50, 77_777_777));
        let period = repeats.then_some(at + 173);
        let config = StepsConfig {
            steps: all.iter().map(|(at, rate)| RateStep { at: airpath_core::Span::from_nanos(*at), bits_per_second: *rate }).collect(),
            interpolation: if linear { Interpolation::Linear } else { Interpolation::Step },
            period: period.map(airpath_core::Span::from_nanos),
        };
        let mut packets = packets;
        packets.sort();
        let trace = play(VaryingConfig::Steps(config), &sends(&packets));
        let naive = Naive { points: all, period, linear };
        prop_assert_eq!(trace.times(PortId::SERVER), naive.ends(&packets, 500_000));
    }
}

#[test]
fn a_constant_curve_is_a_constant_rate() {
    let script = sends(&[(0, 1500), (0, 40), (0, 333), (7_000_001, 999), (7_000_001, 1)]);
    for rate in ["9600 bit/s", "7_777_777 bit/s", "3 Gbit/s"] {
        let constant = play(read::<RateConfig>(rate), &script);
        let curve = steps(&[&format!("0 s: {rate}")], None, Interpolation::Step);
        let repeated = steps(&[&format!("0 s: {rate}")], Some("13 us"), Interpolation::Step);
        assert_eq!(play(curve, &script).events, constant.events);
        assert_eq!(play(repeated, &script).events, constant.events);
    }
}

#[test]
fn after_its_end_a_curve_keeps_its_last_rate_even_if_that_is_none() {
    let rate = steps(&["0 s: 1 Mbit/s", "1 ms: 0 bit/s"], None, Interpolation::Step);
    let trace = play(rate, &sends(&[(0, 125), (0, 1)]));
    assert_eq!((trace.times(PortId::SERVER), trace.held), (vec![MS], 1));
}

// Slots.

fn slots(slot: &str, bits: &str, period: Option<&str>, offset: &str) -> VaryingConfig {
    VaryingConfig::Slotted(SlottedConfig {
        slot: read(slot),
        bits: read(bits),
        period: period.map(read),
        offset: read(offset),
    })
}

/// With a send buffer that does not matter.
fn play_slots(rate: &VaryingConfig, script: &Script) -> Trace {
    let rate = rate.clone().into();
    play_link(LinkConfig { rate, send_buffer: read("unlimited"), ..LinkConfig::default() }, script)
}

#[test]
fn what_is_there_when_a_slot_begins_arrives_when_it_ends() {
    // Slots from 2 to 3 ms, 12 to 13 ms, …
    let rate = slots("1 ms", "1000 bit", Some("10 ms"), "2 ms");
    let trace = play_slots(&rate, &sends(&[(0, 100), (2 * MS, 100), (12 * MS - 1, 1), (22 * MS + 1, 1)]));
    // 800 + 8 bit fit into the second slot, which the packet of 2 ms has to wait for.
    assert_eq!(arrivals_ms(&trace), [3, 13, 13, 33]);
}

#[test]
fn frames_span_slots_and_share_them() {
    // Slots without gaps; the packets are there for the one from 1 to 2 ms.
    let rate = slots("1 ms", "1000 bit", None, "0 s");
    let trace = play_slots(&rate, &sends(&[(1, 300), (1, 50), (1, 50)]));
    // 2400 bit end in the third slot (3 to 4 ms), together with the 400 bit of the second packet and
    // 200 of the third, whose other 200 go in the slot behind.
    assert_eq!(arrivals_ms(&trace), [4, 4, 5]);
    // A send buffer of one packet takes the next one when a slot has ended, for the one that begins.
    let trace = play(rate.clone(), &sends(&[(1, 300), (1, 50), (1, 50)]));
    assert_eq!(arrivals_ms(&trace), [4, 5, 6]);
    // A slot without anything to send is lost: nothing is saved up.
    let trace = play_slots(&rate, &sends(&[(10 * MS + 1, 125), (10 * MS + 1, 125)]));
    assert_eq!(arrivals_ms(&trace), [12, 13]);
}

#[test]
fn radio_blocks_of_gprs_in_slots() {
    // CS-1 (3GPP TS 45.003): a block of 181 bit every 20 ms; an IP packet of 40 bytes is two blocks.
    let fragmentation = Some(Fragmentation {
        frame_payload: read("160 bit"),
        frame_header: read("21 bit"),
        last_frame: LastFrame::Padded,
    });
    let link =
        LinkConfig { rate: slots("20 ms", "181 bit", None, "0 s").into(), fragmentation, ..LinkConfig::default() };
    let trace = play_link(link, &sends_ms(&[(5, 40), (5, 60)]));
    assert_eq!(arrivals_ms(&trace), [60, 120]);
    assert_eq!(trace.of_kind(EventKind::FrameSent).len(), 5);
}

// CellReplay.

fn cellreplay(light: &str, heavy: &str) -> LinkConfig {
    let config = CellReplayConfig {
        light: FileRef::with_data("light", LightTrace::parse(light.as_bytes()).unwrap()),
        heavy: FileRef::with_data("heavy", MahimahiTrace::parse(heavy.as_bytes()).unwrap()),
        timer: read("20 ms"),
    };
    let rate = VaryingConfig::Cellreplay(config).into();
    LinkConfig { rate, send_buffer: read("unlimited"), ..LinkConfig::default() }
}

#[test]
fn a_train_is_sent_by_the_light_trace_and_what_follows_by_the_heavy_one() {
    let link = cellreplay("0 10 0 2 4\n100 20 0\n200 10 0\n", "5\n");
    assert_eq!(link.problems(), []);
    // Base delay 10.1 ms, rounded down. The first packet leaves at 1 + 10; the next two behind the
    // opportunities of 2 and 4 ms; the fourth finds none, waits behind them to 15 and for the next
    // opportunity under heavy load, and the fifth for another.
    let trace = play_link(link.clone(), &sends_ms(&[(1, 1500); 5]));
    assert_eq!(arrivals_ms(&trace), [11, 13, 15, 20, 25]);
    // Small packets share opportunities: 15 of 100 bytes each.
    let trace = play_link(link.clone(), &sends_ms(&[(1, 100); 31]));
    assert_eq!(arrivals_ms(&trace), [vec![11; 1], vec![11; 14], vec![13; 15], vec![15; 1]].concat());
    // After an idle time a new train begins, with the delay of its time: 16 at 60 ms, 19 at 110.
    let trace = play_link(link.clone(), &sends_ms(&[(1, 1500), (60, 1500), (110, 1500)]));
    assert_eq!(arrivals_ms(&trace), [11, 76, 129]);
    // Before it is over the old one goes on: at 5 ms its opportunities are gone.
    assert_eq!(arrivals_ms(&play_link(link.clone(), &sends_ms(&[(1, 1500), (6, 1500)]))), [11, 20]);
    // With the light trace's end, 200 ms, it begins anew.
    assert_eq!(arrivals_ms(&play_link(link.clone(), &sends_ms(&[(260, 1500)]))), [276]);
    let limited = LinkConfig { send_buffer: read("2 packets"), ..link };
    assert_eq!(limited.problems()[0].key, "send_buffer");
    for (text, expected) in [
        ("0 10\n", "less than three lines"),
        ("0 10\n5\n", "line 2: a line has"),
        ("0 10\n5 x\n", "line 2: `x`"),
        ("0 10 0 5 2\n", "line 1: times go up"),
        ("5 10\n5 10\n", "line 2: times go up"),
    ] {
        let error = LightTrace::parse(text.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

/// Times are compared in whole milliseconds: what comes within one is one train, even without a timer.
#[test]
fn packets_of_one_millisecond_are_one_train() {
    let RateConfig::Varying(VaryingConfig::Cellreplay(config)) =
        cellreplay("0 10 0 2 4\n1000 10 0 2 4\n2000 10 0\n", "50\n").rate
    else {
        panic!("it is one of cellreplay")
    };
    let rate = VaryingConfig::Cellreplay(CellReplayConfig { timer: read("0 s"), ..config }).into();
    let link = LinkConfig { rate, send_buffer: read("unlimited"), ..LinkConfig::default() };
    let script: Script = (0..3).map(|step| offer(Time::from_nanos(step * 50_000), PortId::CLIENT, 1_400)).collect();
    assert_eq!(arrivals_ms(&play_link(link, &script)), [10, 12, 14]);
}

// Changes.

fn changing(before: impl Into<RateConfig>, at: u64, after: impl Into<RateConfig>) -> PathConfig {
    let hops =
        |rate: RateConfig| one_hop("radio", LinkConfig { rate, ..LinkConfig::default() }, LinkConfig::default()).hops;
    let state = StateConfig {
        name: "other".into(),
        at: Some(Time::from_nanos(at)),
        hops: hops(after.into()),
        stay: Default::default(),
    };
    PathConfig { hops: hops(before.into()), states: vec![state], ..PathConfig::default() }
}

fn play_change(before: impl Into<RateConfig>, at: u64, after: impl Into<RateConfig>, script: &Script) -> Vec<u64> {
    let config = changing(before, at, after);
    check_laws(|| Path::new(&config, Seed(1)), script, 1).times(PortId::SERVER)
}

#[test]
fn a_frame_that_began_at_a_constant_rate_keeps_it() {
    // 1000 bit at 100 kbit/s until 10 ms, then by the trace.
    let times = play_change(read::<RateConfig>("100 kbit/s"), 3 * MS, mm("4\n12\n"), &sends(&[(0, 125), (0, 1500)]));
    assert_eq!(times, [10 * MS, 12 * MS]);
    let outage = steps(&["0 s: 0 bit/s", "20 ms: 1 Mbit/s"], None, Interpolation::Step);
    let times = play_change(read::<RateConfig>("100 kbit/s"), 3 * MS, outage, &sends(&[(0, 125), (0, 125)]));
    assert_eq!(times, [10 * MS, 21 * MS]);
    let slotted = slots("4 ms", "1000 bit", None, "0 s");
    let times = play_change(read::<RateConfig>("100 kbit/s"), 3 * MS, slotted, &sends(&[(0, 125), (0, 125)]));
    // The slot from 8 ms on has begun when the frame ends.
    assert_eq!(times, [10 * MS, 16 * MS]);
}

#[test]
fn what_is_left_of_a_frame_of_a_curve_is_sent_at_the_new_rate() {
    // 1000 of 3000 bit in the first millisecond, then nothing; the state of 5 ms sends 2000 bit.
    let outage = || steps(&["0 s: 1 Mbit/s", "1 ms: 0 bit/s"], None, Interpolation::Step);
    let script = sends(&[(0, 375), (0, 125)]);
    assert_eq!(play_change(outage(), 5 * MS, read::<RateConfig>("2 Mbit/s"), &script), [6 * MS, 6_500_000]);
    assert_eq!(play_change(outage(), 5 * MS, read::<RateConfig>("unlimited"), &script), [5 * MS, 5 * MS]);
    assert_eq!(play_change(outage(), 5 * MS, mm("5\n8\n"), &script), [8 * MS, 8 * MS]);
    let later = steps(&["0 s: 4 Mbit/s"], None, Interpolation::Step);
    assert_eq!(play_change(outage(), 5 * MS, later, &script), [5_500_000, 5_750_000]);
    // The same parameters again change nothing.
    let curve = || steps(&["0 s: 1 Mbit/s"], None, Interpolation::Step);
    assert_eq!(play_change(curve(), 500_001, curve(), &script), [3 * MS, 4 * MS]);
}

#[test]
fn what_is_left_of_a_packet_of_opportunities_is_sent_at_the_new_rate() {
    // 1500 of 2500 bytes at 2 ms, then 1000 bytes at 1 Mbit/s from 5 ms on: 8 ms.
    let script = sends(&[(0, 2500), (0, 125)]);
    assert_eq!(play_change(mm("2\n20\n"), 5 * MS, read::<RateConfig>("1 Mbit/s"), &script), [13 * MS, 14 * MS]);
    assert_eq!(play_change(mm("2\n20\n"), 5 * MS, mm("7\n"), &script), [7 * MS, 7 * MS]);
}

#[test]
fn a_slot_that_is_cut_off_has_carried_nothing() {
    // A slot from 4 to 8 ms with 1000 of 1500 bit; from 6 ms on all 1500 bit at 1 Mbit/s.
    let rate = slots("4 ms", "1000 bit", None, "0 s");
    assert_eq!(
        play_change(rate.clone(), 6 * MS, read::<RateConfig>("1.5 Mbit/s"), &sends(&[(1, 187)])),
        [6 * MS + 997_333]
    );
    // The slot before counts.
    assert_eq!(play_change(rate, 9 * MS, read::<RateConfig>("1 Mbit/s"), &sends(&[(1, 250)])), [10 * MS]);
}

#[test]
fn an_unsent_packet_finds_its_way_from_each_kind_of_rate_to_each() {
    let mut all: Vec<RateConfig> = VaryingConfig::examples().into_iter().map(RateConfig::from).collect();
    all.extend([read("1 Mbit/s"), read("unlimited")]);
    let script = sends(&[(0, 1500), (0, 40), (1_000_000, 1500), (9_000_001, 4000), (30_000_000, 1)]);
    for before in &all {
        for after in &all {
            for at in [0, 500_000, 5_000_000, 9_500_000] {
                let config = changing(before.clone(), at, after.clone());
                let trace = check_laws(|| Path::new(&config, Seed(1)), &script, at);
                assert_eq!(trace.ids(PortId::SERVER), [1, 2, 3, 4, 5], "{before:?} to {after:?} at {at}");
                let started = trace.of_kind(EventKind::FrameStarted).len();
                assert_eq!(started, trace.of_kind(EventKind::FrameSent).len());
            }
        }
    }
}

#[test]
fn directions_have_rates_of_their_own() {
    let config = one_hop(
        "radio",
        LinkConfig { rate: mm("5\n9\n").into(), ..LinkConfig::default() },
        LinkConfig { rate: slots("3 ms", "8000 bit", None, "0 s").into(), ..LinkConfig::default() },
    );
    let script: Script = vec![offer(ms(1), PortId::CLIENT, 100), offer(ms(1), PortId::SERVER, 100)];
    let trace = check_laws(|| Path::new(&config, Seed(1)), &script, 1);
    assert_eq!((trace.times(PortId::SERVER), trace.times(PortId::CLIENT)), (vec![5 * MS], vec![6 * MS]));
    assert_eq!(trace.of_kind(EventKind::FrameSent)[0].direction, Direction::Uplink);
}

// Files.

fn points(text: &str) -> Vec<(u64, u64)> {
    let trace = RateTrace::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error} in {text}"));
    trace.points().iter().map(|point| (point.at_ns, point.rate)).collect()
}

#[test]
fn rate_traces_are_read_in_each_spelling() {
    let expected = [(0, 1_000_000), (500_000_000, 0), (2_000_000_000, 64_000)];
    for text in [
        "0,1000000\n0.5,0\n2,64000\n",
        "# a comment\ntime,rate\n0 s, 1 Mbit/s\n500 ms, 0\n\n2 s, 64 kbit/s",
        "time_ms;rate_mbps\r\n0;1\r\n500;0\r\n2000;0.064\r\n",
        "cell,throughput (kbit/s),timestamp\na,1000,1700000000.0\nb,0,1700000000.5\nb,64,1700000002\n",
        r#"[[0, 1e6], [0.5, 0], ["2 s", "64 kbit/s"]]"#,
        r#"{"points": [{"time": 0, "rate": 1000000}, {"time": "500 ms", "rate": 0}, {"time": 2, "rate": 64000}]}"#,
    ] {
        assert_eq!(points(text), expected, "{text}");
    }
    let period = |text: &str| RateTrace::parse(text.as_bytes()).unwrap().period_ns();
    assert_eq!(period("0,1\n1,2\n3,4\n"), 5_000_000_000, "the last lasts as long as the one before");
    assert_eq!(period(r#"{"period": "4 s", "points": [[0, 1], [3, 4]]}"#), 4_000_000_000);
}

#[test]
fn malformed_traces_are_explained_with_the_line() {
    let csv = |text: &str| RateTrace::parse(text.as_bytes()).unwrap_err();
    for (text, expected) in [
        ("", "no rates"),
        ("# nothing\n", "no rates"),
        ("0,1 Mbit/s\n1\n", "line 2: `1` has no rate"),
        ("0,1 Mbit/s\n1,fast\n", "line 2"),
        ("0,1 Mbit/s\n1,-5\n", "line 2"),
        ("0,1 Mbit/s\n1,2 Mb/s\n", "line 2: `Mb/s` is not a unit of rate"),
        ("0,1 Mbit/s\n\n2,1\n1,1\n", "line 4: its time is not later"),
        ("0,1 Mbit/s\n0,2 Mbit/s\n", "line 2: its time is not later"),
        ("seconds,rate\n0,1\n", "line 1: no column of the heading is a time"),
        ("time,speed\n0,1\n", "line 1: no column of the heading is a rate"),
        ("0,0\n1,0\n", "no rate above 0"),
        ("0,1e30\n", "line 1"),
        ("0,2000000000000\n", "line 1: its rate is above"),
        ("{\"points\": [[0, 1],\n", "line 2"),
        ("{\"points\": [[0, 1], [1]]}", "point 2: it is no pair"),
        ("{\"points\": [[1, 1], [0, 1]]}", "point 2: its time is before"),
        ("{\"points\": [[0, 1], [0, 1]]}", "the time of point 2"),
        ("{\"period\": 1, \"points\": [[0, 1], [2, 1]]}", "its period ends before"),
        ("{\"rates\": []}", "neither a list of points"),
        ("{\"DelayConfig\": {}}", "neither a list of points"),
    ] {
        let error = csv(text);
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    assert!(RateTrace::parse(b"0,1\n1,\xff\n").unwrap_err().contains("line 2: not text"));
    let mahimahi = |text: &str| MahimahiTrace::parse(text.as_bytes()).unwrap_err();
    for (text, expected) in [
        ("", "it is empty"),
        ("0\n0\n", "all its times are 0"),
        ("1\n\n2\n", "line 2: it is empty"),
        ("1\n5\n4\n", "line 3: 4 comes after 5"),
        ("1\n2.5\n", "line 2: `2.5` is no time"),
        ("1\n-2\n", "line 2: `-2` is no time"),
        ("1\n99999999999999\n", "line 2"),
    ] {
        let error = mahimahi(text);
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn the_models_of_netem_trace_expand() {
    let both = r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":{"gbps":0,"bps":12000000},"duration":{"secs":1,"nanos":0}}},{"StaticBwConfig":{"bw":"24Mbps","duration":"1s 500ms"}}],"count":2}}"#;
    let trace = RateTrace::parse(both.as_bytes()).unwrap();
    let rates: Vec<_> = trace.points().iter().map(|point| (point.at_ns / MS, point.rate / 1_000_000)).collect();
    assert_eq!(rates, [(0, 12), (1_000, 24), (2_500, 12), (3_500, 24)]);
    assert_eq!((trace.period_ns(), trace.repeats()), (5_000 * MS, false));
    let forever = RateTrace::parse(both.replace("\"count\":2", "\"count\":0").as_bytes()).unwrap();
    assert_eq!((forever.period_ns(), forever.repeats()), (2_500 * MS, true));
    // The values that netem-trace documents for a sawtooth without noise.
    let sawtooth = r#"{"SawtoothBwConfig":{"bottom":"12Mbps","top":"16Mbps","duration":"1s","step":"100ms","interval":"500ms","duty_ratio":0.8}}"#;
    let rates: Vec<u64> = points(sawtooth).iter().map(|(_, rate)| rate / 1_000_000).collect();
    assert_eq!(rates, [12, 13, 14, 15, 16, 12, 13, 14, 15, 16]);
    // Noise: its own for each seed, the same each time, within its bounds.
    let noisy = |seed: u64| {
        points(&format!(
            r#"{{"NormalizedBwConfig":{{"mean":"12Mbps","std_dev":"1Mbps","lower_bound":"10Mbps","duration":"10s","step":"1ms","seed":{seed}}}}}"#
        ))
    };
    assert_eq!(noisy(1), noisy(1));
    assert_ne!(noisy(1), noisy(2));
    let rates: Vec<f64> = noisy(7).iter().map(|(_, rate)| *rate as f64 / 1e6).collect();
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let deviation = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count).sqrt();
    // Cut off at two deviations below: mean 12.0085, deviation 0.9767 (by the normal integrals); five
    // standard errors of 10000 samples.
    assert!((mean - 12.0085).abs() < 0.05 && (deviation - 0.977).abs() < 0.035, "{mean} {deviation}");
    assert!(rates.iter().all(|rate| *rate >= 10.0) && rates.iter().any(|rate| *rate > 14.0));
    for (text, expected) in [
        (r#"{"WavyBwConfig":{}}"#, "`WavyBwConfig` is no model"),
        (r#"{"StaticBwConfig":{"bw":"fast"}}"#, "`bw` of StaticBwConfig is no bandwidth"),
        (r#"{"StaticBwConfig":{"duration":-1}}"#, "`duration` of StaticBwConfig is no duration"),
        (r#"{"RepeatedBwPatternConfig":{"pattern":[]}}"#, "no list of models"),
        (
            r#"{"RepeatedBwPatternConfig":{"pattern":[{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{}}]}}],"count":1}}"#,
            "would repeat for ever",
        ),
        (r#"{"NormalizedBwConfig":{"step":"0s"}}"#, "the `step` of NormalizedBwConfig is 0"),
        (r#"{"SawtoothBwConfig":{"duty_ratio":2}}"#, "`duty_ratio`"),
    ] {
        let error = RateTrace::parse(text.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_trace_repeats_unless_told_otherwise() {
    let trace = |repeat| {
        let file = FileRef::with_data("x.csv", RateTrace::parse(b"0,1 Mbit/s\n0.001,0\n0.002,2 Mbit/s\n").unwrap());
        VaryingConfig::Trace(TraceConfig { file, interpolation: Interpolation::Step, repeat })
    };
    // 3000 bit a round of 3 ms.
    let script = sends(&[(0, 750)]);
    assert_eq!(play(trace(None), &script).times(PortId::SERVER), [6 * MS]);
    assert_eq!(play(trace(Some(true)), &script).times(PortId::SERVER), [6 * MS]);
    assert_eq!(play(trace(Some(false)), &script).times(PortId::SERVER), [4_500_000]);
}

#[test]
fn bad_parameters_are_problems() {
    let problems = |config: VaryingConfig| {
        let found = LinkConfig { rate: config.into(), ..LinkConfig::default() }.problems();
        found.into_iter().map(|problem| (problem.key, problem.message)).collect::<Vec<_>>()
    };
    let of_steps = |steps: &[&str], period: Option<&str>, interpolation| {
        let steps = steps.iter().map(|step| read::<RateStep>(step)).collect();
        let found = problems(VaryingConfig::Steps(StepsConfig { steps, interpolation, period: period.map(read) }));
        assert_eq!(found.len(), 1);
        found[0].clone()
    };
    for (steps, period, interpolation, key, message) in [
        (&[][..], None, Interpolation::Step, "rate.steps", "empty"),
        (&["1 s: 1 Mbit/s"], None, Interpolation::Step, "rate.steps", "begins at 1 s"),
        (
            &["0 s: 1 Mbit/s", "2 s: 1 bit/s", "2 s: 3 bit/s"],
            None,
            Interpolation::Step,
            "rate.steps",
            "has 2 s after 2 s",
        ),
        (&["0 s: 0 bit/s"], None, Interpolation::Step, "rate.steps", "no rate above 0"),
        (&["0 s: 2000 Gbit/s"], None, Interpolation::Step, "rate.steps", "highest rate"),
        (&["0 s: 1 Mbit/s", "2 s: 1 bit/s"], Some("2 s"), Interpolation::Step, "rate.period", "must be later"),
        (&["0 s: 1 Mbit/s", "2 h: 1 bit/s"], None, Interpolation::Linear, "rate.steps", "more than an hour"),
    ] {
        let (found, text) = of_steps(steps, period, interpolation);
        assert!(found == key && text.contains(message), "{found}: {text}");
    }
    let keys = |config| problems(config).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    assert_eq!(keys(slots("0 s", "0 bit", None, "0 s")), ["rate.slot", "rate.bits"]);
    assert_eq!(keys(slots("5 ms", "1 bit", Some("4 ms"), "0 s")), ["rate.period"]);
}
