// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Two models that are not yet there, to show that the roles of a hop carry them: link entities that
//! talk to each other over the link, and a medium of several resources with grants of fixed size.

mod arq;
pub mod bins;

use airpath_core::{
    Bits, Cause, Direction, DrawKey, DrawScope, EventKind, Origin, PortId, Probability, Seed, Span, Time,
};
use airpath_models::blackout::{BlackoutConfig, InFlight, Parts};
use airpath_models::channel::gilbert_elliott::GilbertElliottConfig;
use airpath_models::channel::{Effect, ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::entity::Simple;
use airpath_models::hop::Hop;
use airpath_models::medium::Continuous;
use airpath_models::queueing::QueueConfig;
use airpath_models::states::Stay;
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig, StateConfig};
use proptest::prelude::*;
use proptest::sample::select;

use self::arq::GoBackN;
use self::bins::{Bin, TwoBins};
use crate::common::*;

type ArqPath = Path<GoBackN, Continuous>;

fn arq_path(hops: &[HopConfig], states: Vec<StateConfig>, window: usize, timeout: Span, seed: u64) -> ArqPath {
    let hop = |(index, config): (usize, &HopConfig)| {
        let ends = [(); 2].map(|()| GoBackN::new(window, timeout));
        let key = |direction| {
            let scope = DrawScope { hop: &config.name, direction, role: "rate", instance: 0 };
            DrawKey::new(Seed(seed), &scope)
        };
        let medium = Continuous::new([&config.uplink.rate, &config.downlink.rate], Direction::ALL.map(key));
        Hop::with_parts(index as u16, config, Seed(seed), ends, medium)
    };
    let config = PathConfig { hops: hops.to_vec(), states, ..PathConfig::default() };
    Path::with_hops(hops.iter().enumerate().map(hop).collect(), &config, Seed(seed))
}

fn slow(errors: ErrorsConfig) -> LinkConfig {
    LinkConfig { rate: read("8 kbit/s"), propagation: read("10 ms"), errors, ..LinkConfig::default() }
}

/// Every second frame is hit, the second first.
fn every_second_frame() -> ErrorsConfig {
    let probability = |text: &str| read::<Probability>(text);
    let process = ErrorProcessConfig::GilbertElliott(GilbertElliottConfig {
        good_to_bad: probability("1"),
        bad_to_good: probability("1"),
        error_in_good: probability("0"),
        error_in_bad: probability("1"),
    });
    ErrorsConfig { process, per: Per::Frame, ..ErrorsConfig::default() }
}

/// Errors that flip bits hit acknowledgements where the entities have a checksum over the whole frame, and only
/// there: without one, no bit of a packet is in them.
#[test]
fn errors_in_positions_of_the_frame_hit_control_frames() {
    let mut errors = every_second_frame();
    errors.effect.effect = Effect::Corrupt;
    let config = one_hop("radio", slow(clean()), slow(errors));
    let script: Script = (0..6).map(|k| offer(ms(k * 1000), PortId::CLIENT, 100)).collect();
    let lost = |with_checksum: bool| {
        let machine = || {
            let end = || {
                let end = GoBackN::new(1, span("400 ms"));
                if with_checksum { end.with_checksum() } else { end }
            };
            let medium = Continuous::new(
                [&config.hops[0].uplink.rate, &config.hops[0].downlink.rate],
                Direction::ALL.map(|_| key(1)),
            );
            let hop = Hop::with_parts(0, &config.hops[0], Seed(1), [end(), end()], medium);
            Path::with_hops(vec![hop], &config, Seed(1))
        };
        let trace = check_laws(machine, &script, 1);
        assert_eq!(trace.ids(PortId::SERVER), (1..=6).collect::<Vec<_>>());
        let control = |kind| trace.of_kind(kind).iter().filter(|event| event.origin == Origin::Control).count();
        (control(EventKind::FrameSent), control(EventKind::FrameLost))
    };
    assert_eq!(lost(false), (6, 0));
    // Acknowledgements 2, 4, 6, 8 and 10 are hit; each is sent again after its packet.
    assert_eq!(lost(true), (11, 5));
}

fn clean() -> ErrorsConfig {
    ErrorsConfig::default()
}

/// 100 bytes and the header take 105 ms, an acknowledgement 5 ms, the way 10 ms.
#[test]
fn stop_and_wait_by_hand() {
    let hop = one_hop("radio", slow(clean()), slow(clean())).hops;
    let script = vec![offer(ms(0), PortId::CLIENT, 100), offer(ms(0), PortId::CLIENT, 100)];
    // On the air 0–105, there at 115; acknowledged 115–120, heard at 130; again 130–235, 245.
    let trace = run(arq_path(&hop, vec![], 1, span("150 ms"), 1), &script);
    assert_eq!(trace.times(PortId::SERVER), [115_000_000, 245_000_000]);
    // A packet of the other direction keeps the acknowledgement waiting until 155: 155–160, 170.
    let mut busy = script.clone();
    busy.push(offer(ms(50), PortId::SERVER, 100));
    let trace = run(arq_path(&hop, vec![], 1, span("150 ms"), 1), &busy);
    assert_eq!(trace.times(PortId::SERVER), [115_000_000, 285_000_000]);
    assert_eq!(trace.times(PortId::CLIENT), [165_000_000]);
}

#[test]
fn lost_frames_and_lost_acknowledgements_are_repeated_by_hand() {
    let script = vec![offer(ms(0), PortId::CLIENT, 100), offer(ms(0), PortId::CLIENT, 100)];
    // The second packet, on the air 130–235, is lost; its timer ends at 385; 385–490, there at 500.
    let hop = one_hop("radio", slow(every_second_frame()), slow(clean())).hops;
    let trace = run(arq_path(&hop, vec![], 1, span("150 ms"), 1), &script);
    assert_eq!(trace.times(PortId::SERVER), [115_000_000, 500_000_000]);
    // The second acknowledgement is lost: the packet is repeated, and not handed up twice.
    let hop = one_hop("radio", slow(clean()), slow(every_second_frame())).hops;
    let trace = run(arq_path(&hop, vec![], 1, span("150 ms"), 1), &script);
    assert_eq!(trace.times(PortId::SERVER), [115_000_000, 245_000_000]);
    assert_eq!(trace.of_kind(EventKind::FrameLost).len(), 1);
    let control = trace.counters.site(0, Direction::Downlink, Origin::Control);
    assert_eq!((control.kind(EventKind::FrameSent).count, control.kind(EventKind::FrameSent).bits), (3, 120));
    let user = trace.counters.site(0, Direction::Downlink, Origin::User);
    assert_eq!(user.kind(EventKind::FrameSent).count, 0, "acknowledgements are not goodput");
}

/// A timer shorter than the round trip: repetitions are on the air when the packet is acknowledged
/// and gone.
#[test]
fn repetitions_outlive_their_packets() {
    let hop = one_hop("radio", slow(clean()), slow(clean())).hops;
    let script: Script = (0..5).map(|_| offer(ms(0), PortId::CLIENT, 100)).collect();
    let trace = run(arq_path(&hop, vec![], 2, span("1 ms"), 1), &script);
    assert_eq!(trace.ids(PortId::SERVER), [1, 2, 3, 4, 5]);
    assert!(trace.of_kind(EventKind::FrameSent).len() > 10, "nothing was repeated");
}

/// Errors from which an entity that never gives up recovers before the end of the test.
fn passable_errors() -> impl Strategy<Value = ErrorsConfig> {
    let passable = |errors: &ErrorsConfig| {
        let often = format!("{:?}", errors.process).contains("1000000000000");
        // What is not drawn for each frame may hit every repetition.
        let drawn = !matches!(
            errors.process,
            ErrorProcessConfig::Pattern(_) | ErrorProcessConfig::Positions(_) | ErrorProcessConfig::Trace(_)
        );
        drawn && !often && matches!(errors.per, Per::Packet | Per::Frame)
    };
    select(ErrorsConfig::examples().into_iter().filter(passable).collect::<Vec<_>>())
}

fn passable_link() -> impl Strategy<Value = LinkConfig> {
    let rates = select(vec!["1 Mbit/s", "100 kbit/s", "unlimited"]);
    // Order is looked at below.
    let mut queues = QueueConfig::examples();
    queues.retain(|queue| !matches!(queue, QueueConfig::Classes(_) | QueueConfig::Dualpi2(_)));
    (link_with(select(queues), passable_errors()), rates).prop_map(|(link, rate)| LinkConfig {
        rate: read(rate),
        reorder: None,
        duplicate: None,
        ..link
    })
}

fn passable_hop(name: &'static str) -> impl Strategy<Value = HopConfig> {
    (passable_link(), passable_link()).prop_map(move |(uplink, downlink)| HopConfig {
        name: name.into(),
        uplink,
        downlink,
    })
}

fn small_offers() -> impl Strategy<Value = Script> {
    let port = select(vec![PortId::CLIENT, PortId::SERVER]);
    script_of((port, select(vec![1u32, 40, 120])).prop_map(|(port, len)| Action::Offer { port, len, header_len: 20 }))
}

/// Nothing but the queue drops anything, and order is kept.
fn check_recovery(trace: &Trace) -> Result<(), TestCaseError> {
    prop_assert_eq!(trace.held, 0);
    for port in [PortId::CLIENT, PortId::SERVER] {
        let ids = trace.ids(port);
        prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", ids);
    }
    let queue = [Cause::QueuePackets, Cause::QueueBytes, Cause::QueueAge, Cause::QueueManagement];
    let elsewhere = trace.of_kind(EventKind::Dropped).into_iter().filter(|event| !queue.contains(&event.cause)).count();
    prop_assert_eq!(elsewhere, 0);
    Ok(())
}

/// A slow bin and a fast one; only the fast one has room for the largest frames.
fn two_bins() -> impl Strategy<Value = [Bin; 2]> {
    let bin = |slot: &str, bits| Bin { slot: span(slot), bits: Bits::new(bits) };
    select(vec![
        [bin("5 ms", 100), bin("1 ms", 1_000)],
        [bin("20 ms", 1_000), bin("1 ms", 1_000)],
        [bin("5 ms", 1_000), bin("5 ms", 360)],
    ])
    .prop_filter("a bin takes the largest frame", |bins| bins.iter().any(|bin| bin.bits.get() >= 1_000))
}

impl std::fmt::Debug for Bin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bit in {:?}", self.bits.get(), self.slot)
    }
}

/// Blackouts: start, duration, and treatment of frames in flight.
fn any_dark() -> impl Strategy<Value = (Time, Span, InFlight)> {
    let fates = vec![InFlight::Store, InFlight::Drop, InFlight::Pass];
    (any_time(), (1u64..20).prop_map(|step| Span::from_millis(step * 5)), select(fates))
}

/// The state of that blackout, on all hops, which keeps what waits.
fn blacked_out(hops: &[HopConfig], (at, duration, in_flight): (Time, Span, InFlight)) -> StateConfig {
    let blackout = BlackoutConfig::Parts(Parts { in_flight, ..Parts::default() });
    let mut hops = hops.to_vec();
    hops.iter_mut().flat_map(|hop| [&mut hop.uplink, &mut hop.downlink]).for_each(|link| link.blackout = blackout);
    let stay = Stay { duration: Some(duration.into()), next: Vec::new() };
    StateConfig { name: "dark".into(), at: Some(at), hops, stay }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn two_way_arq_keeps_the_laws(
        hops in (passable_hop("near"), passable_hop("far")).prop_map(|(near, far)| vec![near, far]),
        other in (passable_hop("near"), passable_hop("far")).prop_map(|(near, far)| vec![near, far]),
        change in any_time(),
        dark in any_dark(),
        script in small_offers(),
        window in 1usize..6,
        timeout in select(vec!["1 ms", "50 ms", "600 ms"]),
        seed in any::<u64>(),
    ) {
        let other = StateConfig { name: "other".into(), at: Some(change), hops: other, stay: Default::default() };
        let states = vec![other, blacked_out(&hops, dark)];
        let trace = check_laws(|| arq_path(&hops, states.clone(), window, span(timeout), seed), &script, seed);
        check_recovery(&trace)?;
    }

    #[test]
    fn two_bins_keep_the_laws(
        uplink in any_link(),
        downlink in any_link(),
        bins in two_bins(),
        dark in any_dark(),
        script in script_of(any_offer()),
        seed in any::<u64>(),
    ) {
        // Frames of 1000 bit at most fit into a bin.
        let framed = |link: LinkConfig| {
            let framed = link.fragmentation.filter(|frames| frames.frame_payload.get() + frames.frame_header.get() <= 1_000);
            let fragmentation = framed.or(LinkConfig::examples()[3].fragmentation);
            LinkConfig { fragmentation, ..link }
        };
        let config = one_hop("radio", framed(uplink), framed(downlink));
        let config = PathConfig { states: vec![blacked_out(&config.hops, dark)], ..config };
        let machine = || -> Path<Simple, TwoBins> {
            let HopConfig { uplink, downlink, .. } = &config.hops[0];
            let (up, down) = (uplink.of_entity(), downlink.of_entity());
            let ends = [Simple::new(&up, &down, key(seed)), Simple::new(&down, &up, key(!seed))];
            Path::with_hops(vec![Hop::with_parts(0, &config.hops[0], Seed(seed), ends, TwoBins::new(bins))], &config, Seed(seed))
        };
        prop_assert_eq!(check_laws(machine, &script, seed).held, 0);
    }

    #[test]
    fn two_way_arq_over_two_bins_keeps_the_laws(
        hop in passable_hop("radio"),
        bins in two_bins(),
        script in small_offers(),
        window in 1usize..6,
        seed in any::<u64>(),
    ) {
        let config = PathConfig { hops: vec![hop.clone()], ..PathConfig::default() };
        let machine = || {
            let ends = [(); 2].map(|()| GoBackN::new(window, span("90 ms")));
            Path::with_hops(vec![Hop::with_parts(0, &hop, Seed(seed), ends, TwoBins::new(bins))], &config, Seed(seed))
        };
        check_recovery(&check_laws(machine, &script, seed))?;
    }
}

fn key(seed: u64) -> DrawKey {
    let scope = DrawScope { hop: "radio", direction: Direction::Uplink, role: "allocation", instance: 0 };
    DrawKey::new(Seed(seed), &scope)
}

/// Two frames side by side: the slow bin's takes 20 ms, the fast bin's 5 ms, and its next slot 5 ms.
#[test]
fn two_bins_by_hand() {
    let bin = |slot: &str| Bin { slot: span(slot), bits: Bits::new(1_000) };
    let link = LinkConfig { send_buffer: read("unlimited"), ..LinkConfig::default() };
    let config = one_hop("radio", link.clone(), link.clone());
    let both = link.of_entity();
    let ends = [Simple::new(&both, &both, key(1)), Simple::new(&both, &both, key(2))];
    let medium = TwoBins::new([bin("20 ms"), bin("5 ms")]);
    let path = Path::with_hops(vec![Hop::with_parts(0, &config.hops[0], Seed(1), ends, medium)], &config, Seed(1));
    // They come at 12 ms: the fast bin's slots begin at 15, 20, 25 …, the slow bin's at 20, 40.
    let script: Script = (0..6).map(|_| offer(ms(12), PortId::CLIENT, 125)).collect();
    let trace = run(path, &script);
    let left: Vec<(u64, u64)> = trace.times(PortId::SERVER).into_iter().zip(trace.ids(PortId::SERVER)).collect();
    let expected = [(20, 1), (25, 3), (30, 4), (35, 5), (40, 2), (40, 6)];
    assert_eq!(left, expected.map(|(at, id)| (at * 1_000_000, id)));
}
