// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cells: the laws with many users, a cell of one user against its path, and shared media by hand.

use airpath_core::{Bits, End, EventKind, PortId, Seed};
use airpath_models::cell::{
    CellConfig, MediumOfCell, SharedMediumConfig, UserConfig,
    continuous::{Order, SharedContinuousConfig},
    ofdm::{Directions, OfdmConfig},
    wifi::AccessCategory,
};
use airpath_models::channel::ErrorsConfig;
use airpath_models::entity::EntityConfig;
use airpath_models::fading::FadingConfig;
use airpath_models::medium::{MediumChoice, RateConfig};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::classes::MatchConfig;
use airpath_models::schedule::PerBearer;
use airpath_models::{BearerConfig, Cell, HopConfig, LinkConfig, Path, PathConfig};
use proptest::prelude::*;
use proptest::sample::select;

use crate::common::*;

fn continuous(uplink: Option<RateConfig>, downlink: Option<RateConfig>, order: Order) -> MediumOfCell {
    let config = SharedMediumConfig::Continuous(SharedContinuousConfig { uplink, downlink, order, queue: None });
    MediumOfCell { name: "cell".into(), config }
}

fn on_cell(link: LinkConfig) -> LinkConfig {
    let fading = serde_json::json!({ "type": "jakes", "speed": "75 km/h", "snr": "16 dB", "prediction_error": 0.1 });
    let fading: FadingConfig = serde_json::from_value(fading).unwrap();
    LinkConfig {
        medium: MediumChoice::Shared("cell".into()),
        rate: RateConfig::default(),
        fading: Some(Box::new(fading)),
        ..link
    }
}

fn user(name: &str, path: PathConfig) -> UserConfig {
    UserConfig { name: name.into(), is_unnamed: false, path }
}

/// Users of one hop, both directions of which are on the medium `cell`.
fn users(count: usize, link: &LinkConfig) -> Vec<UserConfig> {
    let path = one_hop("radio", on_cell(link.clone()), on_cell(link.clone()));
    (0..count).map(|number| user(&format!("user{number}"), path.clone())).collect()
}

fn from(user: u16, end: End, at: u64, len: u32) -> (airpath_core::Time, Action) {
    offer(ms(at), PortId::of(user, end), len)
}

/// 1 Mbit/s: a packet of 125 bytes takes 1 ms. The first user has three packets before the second one has any.
#[test]
fn users_are_served_in_order_of_arrival_or_in_turn() {
    let script = vec![
        from(0, End::Server, 0, 125),
        from(0, End::Server, 0, 125),
        from(0, End::Server, 0, 125),
        from(1, End::Server, 0, 125),
    ];
    for (order, expected) in
        [(Order::FirstCome, [(1, 0), (2, 0), (3, 0), (4, 1)]), (Order::RoundRobin, [(1, 0), (2, 1), (3, 0), (4, 0)])]
    {
        let media = vec![continuous(None, Some(read("1 Mbit/s")), order)];
        let mut config = CellConfig { media, users: users(2, &LinkConfig::default()) };
        for user in &mut config.users {
            user.path.hops[0].uplink = LinkConfig::default();
        }
        let trace = check_laws(|| Cell::new(&config, Seed(1)), &script, 1);
        let left: Vec<(u64, u16)> =
            trace.departures.iter().map(|left| (left.at.nanos() / 1_000_000, left.port.user())).collect();
        assert_eq!(left, expected, "{order:?}");
        assert!(trace.departures.iter().all(|left| left.port.end() == End::Client));
    }
}

/// Two users who always have something to send get half of the rate each, within a packet.
#[test]
fn a_busy_medium_is_divided_evenly_in_turn() {
    let media = vec![continuous(Some(read("1 Mbit/s")), None, Order::RoundRobin)];
    let mut config = CellConfig { media, users: users(2, &LinkConfig::default()) };
    config.users.iter_mut().for_each(|user| user.path.hops[0].downlink = LinkConfig::default());
    // One user sends packets of twice the length: frames take turns, not bits.
    let script: Script = (0..40).flat_map(|_| [from(0, End::Client, 0, 250), from(1, End::Client, 0, 125)]).collect();
    let trace = run_to(Cell::new(&config, Seed(1)), &script, ms(60));
    assert_eq!([0, 1].map(|user| trace.times(PortId::of(user, End::Server)).len()), [20, 20]);
}

/// Events of a user have places of their own: the whole path, then its hops.
#[test]
fn events_tell_users_apart() {
    let media = vec![continuous(Some(read("1 Mbit/s")), Some(read("1 Mbit/s")), Order::FirstCome)];
    let mut config = CellConfig { media, users: users(3, &LinkConfig::default()) };
    config.users[1].path.hops.push(HopConfig::new("core", LinkConfig::default(), LinkConfig::default()));
    let trace =
        run_to(Cell::new(&config, Seed(1)), &vec![from(1, End::Client, 0, 125), from(2, End::Client, 5, 125)], ms(50));
    let places = |kind| trace.of_kind(kind).iter().map(|event| event.hop).collect::<Vec<_>>();
    assert_eq!(places(EventKind::Offered), [2, 5]);
    assert_eq!(places(EventKind::Enqueued), [3, 4, 6]);
    assert_eq!(places(EventKind::Delivered), [2, 5]);
}

/// On a medium in order of arrival, frames of a link entity wait since its oldest packet came, or since its last frame:
/// a user who always has something to send starves none of them.
#[test]
fn entities_with_frames_of_their_own_are_served_beside_a_busy_user() {
    let mut kinds = std::collections::HashSet::new();
    let entities = EntityConfig::examples().into_iter().filter(EntityConfig::has_own_frames);
    // The first example of each kind.
    for entity in entities.filter(|entity| kinds.insert(std::mem::discriminant(entity))) {
        let busy = LinkConfig { send_buffer: read("4 packets"), ..LinkConfig::default() };
        let link = LinkConfig { entity: entity.clone(), ..busy.clone() };
        let media = vec![continuous(Some(read("24 kbit/s")), Some(read("24 kbit/s")), Order::FirstCome)];
        let users = vec![users(1, &link).remove(0), user("busy", users(1, &busy).remove(0).path)];
        let config = CellConfig { media, users };
        // The busy user has a packet every 100 ms, which takes 100 ms.
        let mut script: Script = (0..500).map(|packet| from(1, End::Client, packet * 100, 300)).collect();
        script.push(from(0, End::Client, 2050, 40));
        script.sort_by_key(|(at, _)| *at);
        let trace = run_to(Cell::new(&config, Seed(1)), &script, ms(60_000));
        let left = trace.times(PortId::of(0, End::Server));
        assert!(left.len() == 1 && left[0] < 40_000_000_000, "{left:?}: {entity:?}");
    }
    assert!(kinds.len() > 5, "{}", kinds.len());
}

/// Any link on a shared medium of its rate, with one user, leaves the trace of the path alone.
#[test]
fn a_cell_of_one_user_leaves_the_trace_of_the_path() {
    let mut compared = 0;
    for (number, link) in LinkConfig::examples().into_iter().enumerate() {
        let alone = one_hop("radio", link.clone(), link.clone());
        let path = one_hop("radio", on_cell(link.clone()), on_cell(link.clone()));
        let rate = Some(link.rate.clone());
        let media = vec![continuous(rate.clone(), rate, Order::FirstCome)];
        let config = CellConfig { media, users: vec![user("alice", path)] };
        let script: Script = (0..60u64)
            .map(|step| {
                let port = if step % 3 == 0 { PortId::SERVER } else { PortId::CLIENT };
                offer(ms(step * step % 97), port, 40 + (step * 37 % 400) as u32)
            })
            .collect();
        let mut script = script;
        script.sort_by_key(|(at, _)| *at);
        let end = ms(20_000);
        let expected = run_to(Path::new(&alone, Seed(3).of_user("alice")), &script, end);
        let trace = run_to(Cell::new(&config, Seed(3)), &script, end);
        expected.assert_same(&trace, &format!("example {number}: {link:?}"));
        compared += expected.departures.len();
    }
    assert!(compared > 1000, "{compared} packets are too few to compare");
}

/// Draws of a user do not depend on who else is there.
#[test]
fn a_user_draws_the_same_beside_others() {
    let link = LinkConfig {
        errors: serde_json::from_value(serde_json::json!({ "type": "bernoulli", "probability": 0.3, "per": "packet" }))
            .unwrap(),
        ..LinkConfig::default()
    };
    let config = |count| CellConfig {
        media: vec![continuous(Some(read("1 Gbit/s")), Some(read("1 Gbit/s")), Order::RoundRobin)],
        users: users(count, &link),
    };
    let script =
        |count: u16| (0..100).flat_map(|at| (0..count).map(move |user| from(user, End::Client, at, 100))).collect();
    let lost = |count: u16| {
        let trace = run_to(Cell::new(&config(count.into()), Seed(9)), &script(count), ms(1_000));
        let drops = trace.of_kind(EventKind::Dropped);
        drops.iter().filter(|event| event.hop == 0).map(|event| event.at.nanos() / 1_000_000).collect::<Vec<_>>()
    };
    assert!(lost(1).len() > 10);
    assert_eq!(lost(1), lost(3));
}

/// None to three bearers by the lengths of packets, with queues and errors of their own. The last takes what is left.
fn any_bearers() -> impl Strategy<Value = Vec<BearerConfig>> {
    let own =
        (proptest::option::of(select(QueueConfig::examples())), proptest::option::of(select(ErrorsConfig::examples())));
    let all = proptest::collection::vec((own, 1u64..300), 0..=3);
    all.prop_map(|all| {
        let last = all.len().saturating_sub(1);
        let bearer = |(number, ((queue, errors), longest)): (usize, (_, u64))| {
            let longest = (number < last).then(|| Bits::from_bytes(longest));
            let matching = MatchConfig { longest, ..MatchConfig::default() };
            BearerConfig { queue, errors, ..BearerConfig::new(format!("bearer{number}"), matching) }
        };
        all.into_iter().enumerate().map(bearer).collect()
    })
}

fn any_user(number: usize) -> impl Strategy<Value = UserConfig> {
    let bearers = (any_bearers(), any_bearers());
    (any_path(), any::<[bool; 2]>(), any::<bool>(), bearers).prop_map(move |((mut path, _), shared, named, bearers)| {
        let place = if named { 0 } else { path.hops.len() - 1 };
        let states = path.states.iter_mut().map(|state| &mut state.hops);
        for hops in states.chain([&mut path.hops]) {
            let hop = &mut hops[place];
            // Bearers are on shared media in both directions.
            let shared = if bearers.0.is_empty() { shared } else { [true; 2] };
            for (link, shared) in [&mut hop.uplink, &mut hop.downlink].into_iter().zip(shared) {
                if shared {
                    *link = on_cell(link.clone());
                    link.bearers.clone_from(&bearers.0);
                }
            }
        }
        // Other parameters in states; as many bearers.
        if bearers.0.len() == bearers.1.len() {
            for hop in path.states.iter_mut().map(|state| &mut state.hops[place]) {
                hop.uplink.bearers.clone_from(&bearers.1);
            }
        }
        // Commands are those of one path, and a cell would not know them.
        user(&format!("user{number}"), path)
    })
}

/// Gives hops on the cell entities that fit frames to grants, the same in all states.
fn fit_grants(path: &mut PathConfig) {
    let kinds = EntityConfig::examples().into_iter().filter(EntityConfig::fits_grants).collect::<Vec<_>>();
    let states = path.states.iter_mut().map(|state| &mut state.hops);
    for hops in states.chain([&mut path.hops]) {
        for hop in hops {
            if [&hop.uplink, &hop.downlink].iter().any(|link| link.medium.name().is_some()) {
                for link in [&mut hop.uplink, &mut hop.downlink] {
                    link.entity = kinds[link.overhead.get() as usize % kinds.len()].clone();
                    if let Some(first) = link.bearers.first_mut() {
                        first.entity = kinds.last().cloned();
                    }
                }
                hop.downlink.entity = hop.uplink.entity.clone();
            }
        }
    }
}

pub fn any_cell(count: usize) -> impl Strategy<Value = (CellConfig, Script)> {
    let users: Vec<_> = (0..count).map(any_user).collect();
    let media = proptest::sample::select(SharedMediumConfig::examples()).prop_map(|config| match config {
        // Users may be on it in either direction.
        SharedMediumConfig::Continuous(config) => {
            let rate = config.uplink.clone().or(config.downlink.clone());
            let config = SharedContinuousConfig { uplink: rate.clone(), downlink: rate, ..config };
            MediumOfCell { name: "cell".into(), config: SharedMediumConfig::Continuous(config) }
        }
        SharedMediumConfig::Ofdm(config) => {
            let config = SharedMediumConfig::Ofdm(OfdmConfig { direction: Directions::Both, ..config });
            MediumOfCell { name: "cell".into(), config }
        }
        SharedMediumConfig::Wifi(mut config) => {
            if config.edca.is_some() {
                // Stations with one category, and with several.
                let of = |(name, category): (&str, _)| (name.to_string(), category);
                let of_users = [
                    ("user0", AccessCategory::Background),
                    ("user0.bearer0", AccessCategory::Voice),
                    ("user0.bearer1", AccessCategory::Video),
                    ("user1", AccessCategory::Voice),
                    ("user2.bearer1", AccessCategory::Voice),
                ];
                config.access_categories = PerBearer(of_users.into_iter().map(of).collect());
            }
            if !config.hidden.is_empty() {
                let pair = |one: &str, other: &str| [one.to_string(), other.to_string()];
                config.hidden = vec![pair("user0", "user1"), pair("user1", "user3")];
            }
            MediumOfCell { name: "cell".into(), config: SharedMediumConfig::Wifi(config) }
        }
        config @ SharedMediumConfig::Poll(_) => MediumOfCell { name: "cell".into(), config },
    });
    let offers = (any_offer(), 0..count as u16).prop_map(|(action, user)| match action {
        Action::Offer { port, len, header_len } => {
            Action::Offer { port: PortId::of(user, port.end()), len, header_len }
        }
        other => other,
    });
    (users, media, script_of(offers)).prop_map(|(mut users, medium, script)| {
        if matches!(medium.config, SharedMediumConfig::Ofdm(_)) {
            users.iter_mut().for_each(|user| fit_grants(&mut user.path));
        }
        (CellConfig { media: vec![medium], users }, script)
    })
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn the_laws_hold_in_cells((config, script) in prop_oneof![any_cell(1), any_cell(2), any_cell(5)]) {
        check_laws_to(|| Cell::new(&config, Seed(1)), &script, 1, ms(2_000));
    }
}

proptest! {
    #![proptest_config(cases(3))]

    #[test]
    fn the_laws_hold_with_twenty_users((config, script) in any_cell(20)) {
        check_laws_to(|| Cell::new(&config, Seed(1)), &script, 1, ms(1_000));
    }
}
