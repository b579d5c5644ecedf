// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Durations of states and what follows them: sequences computed by hand, and chains against their
//! stationary distribution.

use std::sync::Arc;

use airpath_core::{
    Command, CommandError, Cx, EventKind, LogLevel, Machine, Outputs, PortId, Probability, Seed, Span, Time,
};
use airpath_models::random::{Distribution, Exponential, Random, Uniform};
use airpath_models::states::Stay;
use airpath_models::{LinkConfig, Path, PathConfig, Setting, StateConfig};

use crate::common::*;

/// 100 bytes take 100 ms at 8 kbit/s, 50 ms at 16 kbit/s, and so on.
fn kilobits(rate: u64) -> LinkConfig {
    LinkConfig { rate: read(&format!("{rate} kbit/s")), ..LinkConfig::default() }
}

fn state(name: &str, at: Option<u64>, rate: u64, stay: Stay) -> StateConfig {
    let hops = one_hop("radio", kilobits(rate), LinkConfig::default()).hops;
    StateConfig { name: name.into(), at: at.map(ms), hops, stay }
}

fn path(initial: Stay, states: Vec<StateConfig>) -> PathConfig {
    PathConfig { states, initial, ..one_hop("radio", kilobits(8), LinkConfig::default()) }
}

fn lasts(duration: &str, next: &[(u16, &str)]) -> Stay {
    let next = next.iter().map(|(state, probability)| (*state, read(probability))).collect();
    Stay { duration: Some(Random::Constant(read(duration))), next }
}

/// The states of `path` as they come until `end`, in nanoseconds.
fn sequence(config: &PathConfig, seed: u64, end: Time) -> Vec<(u64, u16)> {
    let mut runner = Runner::new(Path::new(config, Seed(seed)), LogLevel::Events);
    runner.advance(end);
    let trace = runner.trace();
    trace.of_kind(EventKind::StateChanged).iter().map(|event| (event.at.nanos(), event.state)).collect()
}

fn ms_of(sequence: &[(u64, u16)]) -> Vec<(u64, u16)> {
    sequence.iter().map(|(at, state)| (at / 1_000_000, *state)).collect()
}

#[test]
fn after_its_duration_a_state_gives_way_to_the_beginning() {
    let config = path(Stay::default(), vec![state("tunnel", Some(20), 16, lasts("3 ms", &[]))]);
    assert_eq!(ms_of(&sequence(&config, 1, ms(1_000))), [(20, 1), (23, 0)]);
    // To the nanosecond, and with what it does: half of the rate for packets that start before.
    let config = path(Stay::default(), vec![state("fast", Some(0), 16, lasts("100000001 ns", &[]))]);
    let script: Script = (0..4).map(|_| offer(Time::ZERO, PortId::CLIENT, 100)).collect();
    let trace = check_laws(|| Path::new(&config, Seed(1)), &script, 3);
    assert_eq!(trace.times(PortId::SERVER), [50_000_000, 100_000_000, 150_000_000, 250_000_000]);
    assert_eq!(trace.of_kind(EventKind::StateChanged)[1].at.nanos(), 100_000_001);
}

#[test]
fn states_follow_one_another() {
    // The beginning lasts 10 ms, then a (5 ms), b (7 ms), and the beginning again.
    let a = state("a", None, 16, lasts("5 ms", &[(2, "1")]));
    let b = state("b", None, 32, lasts("7 ms", &[]));
    let config = path(lasts("10 ms", &[(1, "1")]), vec![a, b]);
    let expected = [(10, 1), (15, 2), (22, 0), (32, 1), (37, 2), (44, 0), (54, 1)];
    assert_eq!(ms_of(&sequence(&config, 1, ms(55))), expected);
}

/// A state may follow itself: each is a change of its own.
#[test]
fn a_state_may_follow_itself() {
    let config = path(lasts("10 ms", &[(0, "1")]), Vec::new());
    assert_eq!(ms_of(&sequence(&config, 1, ms(35))), [(10, 0), (20, 0), (30, 0)]);
}

#[test]
fn what_brings_a_state_ends_the_stay_of_the_one_before() {
    let a = state("a", Some(20), 16, lasts("50 ms", &[(2, "1")]));
    let b = state("b", Some(30), 32, lasts("5 ms", &[]));
    let config = path(Stay::default(), vec![a.clone(), b]);
    // The end of a's stay, at 70 ms, is not heard of.
    assert_eq!(ms_of(&sequence(&config, 1, ms(500))), [(20, 1), (30, 2), (35, 0)]);
    // At one instant a state with a time of its own comes instead of what would follow.
    let b = state("b", Some(70), 32, lasts("5 ms", &[]));
    let c = state("c", None, 64, lasts("5 ms", &[]));
    let a = StateConfig { stay: lasts("50 ms", &[(3, "1")]), ..a };
    let config = path(Stay::default(), vec![a, b, c]);
    assert_eq!(ms_of(&sequence(&config, 1, ms(500))), [(20, 1), (70, 2), (75, 0)]);
}

#[test]
fn commands_enter_states_whose_stay_begins_then() {
    let config = path(lasts("100 ms", &[(1, "1")]), vec![state("a", None, 16, lasts("10 ms", &[]))]);
    let enter = |at, name: &str| (ms(at), Action::Enter(name.into()));
    let mut runner = Runner::new(Path::new(&config, Seed(1)), LogLevel::Events);
    // Over the beginning's end at 100 ms, at the very instant of a's end, and twice at one instant.
    for (at, action) in [enter(95, "a"), enter(205, "a"), enter(215, "initial"), enter(215, "a")] {
        runner.act(at, &action);
    }
    runner.advance(ms(300));
    assert_eq!(runner.machine.state_in_force(0).entries, 8);
    let trace = runner.trace();
    let states: Vec<(u64, u16)> = trace
        .of_kind(EventKind::StateChanged)
        .iter()
        .map(|event| (event.at.nanos() / 1_000_000, event.state))
        .collect();
    // 105: after the command at 95. 205: the beginning's 100 ms are over when the command comes.
    assert_eq!(states, [(95, 1), (105, 0), (205, 1), (205, 1), (215, 0), (215, 0), (215, 1), (225, 0)]);
}

/// The draws of a state bear its name and the number of its stay: other states redraw nothing.
#[test]
fn durations_and_transitions_are_drawn_by_name_and_number() {
    let random =
        || Random::Drawn(Distribution::Exponential(Exponential { mean: read("20 ms"), bounds: Default::default() }));
    let stay = |next| Stay { duration: Some(random()), next };
    let (a, b) = (state("a", None, 16, stay(Vec::new())), state("b", None, 32, stay(Vec::new())));
    let one = path(stay(vec![(1, Probability::ONE)]), vec![a.clone()]);
    let durations = |config: &PathConfig, seed| -> Vec<u64> {
        let mut times: Vec<u64> = sequence(config, seed, ms(2_000)).iter().map(|(at, _)| *at).collect();
        times.insert(0, 0);
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    };
    let alone = durations(&one, 5);
    assert_eq!(alone, durations(&one, 5));
    assert_ne!(alone, durations(&one, 6));
    // With a third state that never comes, and in another place of the list.
    let more = path(stay(vec![(2, Probability::ONE)]), vec![b, a]);
    assert_eq!(durations(&more, 5), alone);
    assert!(alone.len() > 50);
}

/// A chain of three states: how often each follows which agrees with the probabilities, and the share
/// of time with the stationary distribution of the semi-Markov chain.
#[test]
fn a_chain_occupies_its_states_as_its_stationary_distribution_says() {
    let half = Span::from_millis(10);
    let drawn = |mean: &str| {
        Random::Drawn(Distribution::Exponential(Exponential { mean: read(mean), bounds: Default::default() }))
    };
    let uniform = Random::Drawn(Distribution::Uniform(Uniform { from: Span::ZERO, to: half, ..Uniform::default() }));
    let next = |all: &[(u16, &str)]| all.iter().map(|(state, p)| (*state, read(p))).collect::<Vec<_>>();
    // From the beginning to a or b alike, from a to b mostly, from b to the beginning, or to itself.
    let a = Stay { duration: Some(drawn("20 ms")), next: next(&[(2, "0.75"), (0, "0.25")]) };
    let b = Stay { duration: Some(uniform), next: next(&[(0, "60%"), (2, "40%")]) };
    let first = Stay { duration: Some(drawn("50 ms")), next: next(&[(1, "0.5"), (2, "0.5")]) };
    let config = path(first, vec![state("a", None, 16, a), state("b", None, 32, b)]);
    let matrix = [[0.0, 0.5, 0.5], [0.25, 0.0, 0.75], [0.6, 0.0, 0.4]];
    let means_ms = [50.0, 20.0, 5.0];
    // The embedded chain by power iteration, then weighted by the mean durations.
    let mut visits = [1.0 / 3.0; 3];
    for _ in 0..1_000 {
        visits = [0, 1, 2].map(|to| (0..3).map(|from| visits[from] * matrix[from][to]).sum());
    }
    let weights = [0, 1, 2].map(|state| visits[state] * means_ms[state]);
    let expected = weights.map(|weight| weight / weights.iter().sum::<f64>());

    let end = ms(2_000_000);
    let changes = sequence(&config, 11, end);
    let mut times = [0u64; 3];
    let mut counts = [[0f64; 3]; 3];
    let mut before = (0, 0u16);
    for change in changes.iter().copied().chain([(end.nanos(), u16::MAX)]) {
        times[usize::from(before.1)] += change.0 - before.0;
        if change.1 != u16::MAX {
            counts[usize::from(before.1)][usize::from(change.1)] += 1.0;
        }
        before = change;
    }
    let total: f64 = counts.iter().flatten().sum();
    assert!(total > 70_000.0, "{total}");
    for from in 0..3 {
        let visits: f64 = counts[from].iter().sum();
        for to in 0..3 {
            let p: f64 = matrix[from][to];
            // Five standard errors of a binomial proportion.
            let error = 5.0 * (p * (1.0 - p) / visits).sqrt();
            assert!((counts[from][to] / visits - p).abs() <= error, "{from} to {to}: {counts:?}");
        }
        let share = times[from] as f64 / end.nanos() as f64;
        // Some 20 000 cycles, whose lengths vary by about their mean: five standard errors are below 4 %.
        assert!((share / expected[from] - 1.0).abs() < 0.04, "state {from}: {share} against {}", expected[from]);
    }
}

/// Cycles without end keep the laws, too: the same whenever it is woken.
#[test]
fn a_chain_is_the_same_however_often_it_is_woken() {
    let drawn = |mean: &str| {
        Some(Random::Drawn(Distribution::Exponential(Exponential { mean: read(mean), bounds: Default::default() })))
    };
    let half = || vec![(0, read("0.5")), (1, read("0.5"))];
    let other = state("other", None, 80, Stay { duration: drawn("3 ms"), next: half() });
    let config = path(Stay { duration: drawn("7 ms"), next: half() }, vec![other]);
    let run = |step: u64| {
        let mut runner = Runner::new(Path::new(&config, Seed(3)), LogLevel::Events);
        for packet in 0..100 {
            let at = ms(packet * 20);
            let mut now = ms(packet * 20).nanos().saturating_sub(20_000_000);
            while step > 0 && now < at.nanos() {
                runner.advance(Time::from_nanos(now));
                now += step;
            }
            runner.act(at, &Action::Offer { port: PortId::CLIENT, len: 50, header_len: 20 });
        }
        runner.advance(ms(3_000));
        runner.trace()
    };
    let once = run(0);
    assert!(once.of_kind(EventKind::StateChanged).len() > 400);
    for step in [1_234_567, 5_000_000] {
        once.assert_same(&run(step), "extra wake-ups");
    }
}

/// Settings from outside hold at once, and when a state is next entered its own settings do.
#[test]
fn what_is_set_concerns_the_state_in_force_and_every_later_one() {
    let config = path(Stay::default(), vec![state("a", Some(100), 16, lasts("100 ms", &[]))]);
    let hops = |rate| one_hop("radio", kilobits(rate), LinkConfig::default()).hops;
    let set = |beginning, a, now, since: Option<(u64, u64)>| {
        Action::Set(Setting {
            beginning: hops(beginning),
            states: vec![hops(a)],
            in_force: vec![Ok(hops(now)); 2],
            since: since.map(|(entries, rate)| (entries, hops(rate))),
        })
    };
    let rate_at = |script: &[(Time, Action)], at: u64| {
        // A packet of 100 bytes on its own, and how long it took.
        let mut script = script.to_vec();
        script.push(offer(ms(at), PortId::CLIENT, 100));
        script.sort_by_key(|(at, _)| *at);
        let trace = check_laws(|| Path::new(&config, Seed(1)), &script, 1);
        800_000_000 / (trace.times(PortId::SERVER)[0] - at * 1_000_000)
    };
    let early = [(ms(20), set(80, 160, 800, None))];
    assert_eq!([10, 20, 110, 250].map(|at| rate_at(&early, at)), [8, 800, 160, 80]);
    // Within the stay of a, which was the first to be entered: what was set since then counts.
    let late = [(ms(120), set(80, 160, 800, Some((1, 400))))];
    assert_eq!([110, 120, 250].map(|at| rate_at(&late, at)), [16, 400, 80]);
    let too_late = [(ms(220), set(80, 160, 800, Some((1, 400))))];
    assert_eq!([210, 230].map(|at| rate_at(&too_late, at)), [8, 800]);
    let trace = run(Path::new(&config, Seed(1)), &early.to_vec());
    let kinds: Vec<_> = trace.events.iter().map(|event| (event.at, event.kind, event.state)).collect();
    use EventKind::{ParameterSet, StateChanged};
    assert_eq!(kinds, [(ms(20), ParameterSet, 0), (ms(100), StateChanged, 1), (ms(200), StateChanged, 0)]);
}

#[test]
fn a_setting_that_does_not_fit_is_refused_and_changes_nothing() {
    let config = path(Stay::default(), vec![state("a", Some(0), 16, Stay::default())]);
    let hops = one_hop("radio", kilobits(80), LinkConfig::default()).hops;
    let good = Setting {
        beginning: hops.clone(),
        states: vec![hops.clone()],
        in_force: vec![Ok(hops.clone()), Err("there is no such key".into())],
        since: None,
    };
    let other_path = Setting { states: Vec::new(), ..good.clone() };
    let mut outputs = Outputs { level: LogLevel::Events, ..Outputs::default() };
    let mut path = Path::new(&config, Seed(1));
    let cx = &mut Cx::new(&mut outputs);
    path.advance(ms(1), cx);
    for (setting, why) in [(good, "no such key"), (other_path, "another path")] {
        let error = path.control(ms(2), &Command::Configure(Arc::new(setting)), cx).unwrap_err();
        assert!(matches!(&error, CommandError::Mismatch(text) if text.contains(why)), "{error}");
    }
    assert_eq!(outputs.events.len(), 1);
}

#[test]
fn what_cannot_be_a_stay_is_told() {
    let told = |stay: Stay| -> Vec<String> { stay.problems().into_iter().map(|problem| problem.key).collect() };
    assert!(told(lasts("3 s", &[])).is_empty());
    assert!(told(lasts("3 s", &[(0, "0.333333333333"), (1, "0.333333333333"), (2, "0.333333333334")])).is_empty());
    assert_eq!(told(lasts("3 s", &[(0, "0.5"), (1, "0.4")])), ["next"]);
    assert_eq!(told(lasts("0 s", &[])), ["duration"]);
    let never =
        Random::Drawn(Distribution::Uniform(Uniform { from: Span::ZERO, to: Span::ZERO, ..Uniform::default() }));
    assert_eq!(told(Stay { duration: Some(never), next: Vec::new() }), ["duration"]);
    assert_eq!(told(Stay { duration: None, next: vec![(0, Probability::ONE)] }), ["next"]);
}
