// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! CellReplay's two traces, for trains and for what follows them.

use airpath_core::{PortId, Time};
use airpath_models::LinkConfig;
use airpath_models::file::{FileFormat, FileRef};
use airpath_models::medium::rate::cellreplay::{CellReplayConfig, LightTrace};
use airpath_models::medium::rate::mahimahi::MahimahiTrace;
use airpath_models::medium::{RateConfig, VaryingConfig};

use super::{arrivals_ms, play_link, sends_ms};
use crate::common::{Script, offer, read};

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
