// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files of rate traces: accepted and refused ones.

use airpath_core::{PortId, RateStep};
use airpath_models::LinkConfig;
use airpath_models::file::{FileFormat, FileRef};
use airpath_models::medium::VaryingConfig;
use airpath_models::medium::rate::mahimahi::MahimahiTrace;
use airpath_models::medium::rate::steps::StepsConfig;
use airpath_models::medium::rate::trace::{Interpolation, RateTrace, TraceConfig};

use super::slots::slots;
use super::{MS, play, sends};
use crate::common::read;

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
fn a_model_of_netem_trace_that_expands_too_far_is_refused_before_it_does() {
    let part = |bandwidth: u64| format!(r#"{{"StaticBwConfig":{{"bw":"{bandwidth}Mbps","duration":"1s"}}}}"#);
    let repeated = |parts: &[String], count: u64| {
        format!(r#"{{"RepeatedBwPatternConfig":{{"pattern":[{}],"count":{count}}}}}"#, parts.join(","))
    };
    let error = |text: &str| RateTrace::parse(text.as_bytes()).unwrap_err();
    let begun = std::time::Instant::now();
    let two = repeated(&[part(12), part(24)], u64::from(u32::MAX));
    assert!(error(&two).contains("has 2 rates 4294967295 times: it expands to more than 10000000 rates"), "{two}");
    let within = repeated(&[repeated(&[part(12), part(24)], 100), part(36)], u64::MAX);
    assert!(error(&within).contains("more than 10000000 rates"));
    // One rate, however often, is one rate; only its time has a limit.
    let one = RateTrace::parse(repeated(&[part(12), part(12)], 1_000_000_000).as_bytes()).unwrap();
    assert_eq!((one.points().len(), one.period_ns()), (1, 2_000_000_000_000_000_000));
    assert!(error(&repeated(&[part(12)], u64::MAX)).contains("lasts for more than 500 years"));
    // Samples count, also those that all have one rate.
    let sampled = r#"{"NormalizedBwConfig":{"duration":"3000s","step":"1ms"}}"#.to_string();
    let many = repeated(&vec![sampled; 4], 1);
    assert!(error(&many).contains("more than 10000000 steps together"));
    assert!(begun.elapsed().as_secs() < 60);
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
