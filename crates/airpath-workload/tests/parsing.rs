// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parsing of text and tables, and messages about mistakes.

use airpath_core::{End, Rate, Span};
use airpath_workload::{Bytes, Count, Kind, Period, TcpCongestionControl, UdpProtocol, Workload};
use proptest::prelude::*;

fn read(text: &str) -> Workload {
    Workload::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn mistakes(text: &str) -> String {
    Workload::parse(text).unwrap_err().to_string()
}

#[test]
fn a_transfer_has_its_keys_and_the_defaults_of_the_rest() {
    let workload = read("tcp bytes=102400 from=client cc=reno start='2 s' name=upload user=alice");
    assert_eq!(workload.user.as_deref(), Some("alice"));
    assert_eq!((workload.name.as_deref(), workload.start), (Some("upload"), Span::from_secs(2)));
    let Kind::Tcp(tcp) = workload.kind else { panic!() };
    assert_eq!((tcp.bytes, tcp.from, tcp.cc), (Some(Bytes(102_400)), End::Client, TcpCongestionControl::Reno));
    assert_eq!((tcp.mss, tcp.recv_window, tcp.duration), (None, None, None));
    let Kind::Tcp(tcp) = read("tcp bytes=\"1 MB\"").kind else { panic!() };
    assert_eq!((tcp.bytes, tcp.from, tcp.cc), (Some(Bytes(1_000_000)), End::Server, TcpCongestionControl::Cubic));
}

#[test]
fn quantities_are_those_of_scenarios() {
    let text =
        "on-off on='exponential 1.5 s' off=500ms rate=\"64 kbit/s\" size='200 bytes' protocol=udp-lite coverage=20";
    let Kind::OnOff(source) = read(text).kind else { panic!() };
    assert_eq!(source.on, Period::Exponential(Span::from_millis(1_500)));
    assert_eq!(source.off, Period::Fixed(Span::from_millis(500)));
    assert_eq!((source.rate, source.size), (Rate::new(64_000), Bytes(200)));
    assert_eq!((source.protocol, source.coverage), (UdpProtocol::UdpLite, Some(Bytes(20))));
    let Kind::Saturate(saturate) = read("saturate size=200B packets=1_000").kind else { panic!() };
    assert_eq!((saturate.size, saturate.packets), (Some(Bytes(200)), Some(Count(1_000))));
}

#[test]
fn a_mistake_is_shown_where_it_stands_with_what_was_meant() {
    assert_eq!(
        mistakes("tcp bites=102400 from=server"),
        "workload, word 2: `tcp` has no key `bites`; did you mean `bytes`?\n     \
         | tcp bites=102400 from=server\n     \
         |     ^^^^^^^^^^^^\n     \
         valid: bytes, duration, from, cc, mss, recv_window, timestamps, ecn, name, user, start"
    );
    assert_eq!(
        mistakes("tpc bytes=1"),
        "workload, word 1: `tpc` is not a kind of workload; did you mean `tcp`?\n     \
         | tpc bytes=1\n     \
         | ^^^\n     \
         valid: tcp, request, quic, cbr, poisson, on-off, saturate, media, adaptive-media, pcap"
    );
    assert_eq!(
        mistakes("tcp cc=cubik"),
        "workload, word 2: cc: `cubik` is not a valid value here; did you mean `cubic`?\n     \
         | tcp cc=cubik\n     \
         |     ^^^^^^^^\n     \
         valid: reno, cubic, none"
    );
}

#[test]
fn a_key_without_a_value_is_told_how_to_get_one() {
    assert_eq!(
        mistakes("tcp bytes"),
        "workload, word 2: `bytes` has no value; write `bytes=…`\n     \
         | tcp bytes\n     \
         |     ^^^^^"
    );
    let near = mistakes("tcp byte");
    assert!(near.contains("`byte` is not of the form key=value; did you mean `bytes=…`?"), "{near}");
}

#[test]
fn a_rate_of_zero_is_not_advised_to_be_unlimited() {
    let message = mistakes("cbr size=200 rate='0 bit/s'");
    assert!(message.contains("`0 bit/s` is a rate of zero"), "{message}");
    assert!(message.contains("9600 bit/s") && !message.contains("unlimited"), "{message}");
}

#[test]
fn all_mistakes_are_told_at_once_in_order() {
    let error = Workload::parse("cbr size=10 rate=64 form=client from=server from=client quick").unwrap_err();
    let words: Vec<usize> = error.problems.iter().map(|problem| problem.word).collect();
    assert_eq!(words, [2, 3, 4, 6, 7], "{error}");
    let text = error.to_string();
    for part in ["`64` has no unit", "did you mean `from`", "first in word 5", "`quick` is not of the form key=value"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn keys_that_are_missing_or_at_odds_are_told() {
    for (text, part) in [
        ("", "it begins with its kind"),
        ("request count=2", "`request` needs `response=…`"),
        ("cbr size=200", "`rate=…` or `interval=…` is required"),
        ("cbr size=200 rate=1kbit/s interval=1s", "use only one"),
        ("cbr size=200 interval=0s", "above 0"),
        ("cbr size=27 interval=1s", "from 28 (its headers) to 65535"),
        ("cbr size=200 interval=1s packets=0", "is zero"),
        ("cbr size=200 interval=1s coverage=20", "needs protocol=udp-lite"),
        ("cbr size=200 interval=1s coverage=7 protocol=udp-lite", "from 8 bytes"),
        ("on-off on=0s off=1s size=200 rate=1kbit/s", "on: it must be above 0"),
        ("on-off on='exponentiel 1 s' off=1s size=200 rate=1kbit/s", "did you mean `exponential`"),
        ("pcap file=x client=10.0.0.1 from=client", "use only one"),
        ("pcap file=x client=here", "not an IP address"),
        ("media bitrate=1Mbit/s mtu=40", "mtu: it must be above the 40 bytes"),
        ("adaptive-media mtu=56", "mtu: it must be above the 56 bytes"),
        ("adaptive-media least_rate=2Mbit/s", "is below least_rate"),
        ("adaptive-media resume=1s", "`resume` needs `pause`"),
        ("adaptive-media pause=2s resume=1s", "is not after the pause"),
        ("tcp bytes=0", "at least 1 byte"),
        ("tcp mss=8", "from 32"),
        ("tcp 'bytes=1", "the quote ' is not closed"),
        ("tcp bytes=-1", "negative"),
    ] {
        let message = mistakes(text);
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn what_ends_by_itself_is_known() {
    for (text, bounded) in [
        ("tcp", false),
        ("tcp duration=1s", true),
        ("request response=1", true),
        ("quic", false),
        ("cbr size=28 interval=1s", false),
        ("cbr size=28 interval=1s bytes=1", true),
        ("saturate packets=1", true),
        ("media bitrate=1Mbit/s", false),
        ("media bitrate=1Mbit/s frames=1", true),
        ("pcap file=x", true),
    ] {
        assert_eq!(read(text).is_bounded(), bounded, "{text}");
    }
}

#[test]
fn a_table_reads_as_its_text_does() {
    let table = r#"{"kind": "cbr", "rate": "64 kbit/s", "size": 200, "packets": 5, "name": "a \"b\""}"#;
    let workload: Workload = serde_json::from_str(table).unwrap();
    assert_eq!(workload, read(r#"cbr rate="64 kbit/s" size=200 packets=5 name="a \"b\"""#));
    assert_eq!(serde_json::from_str::<Workload>(&serde_json::to_string(&workload).unwrap()).unwrap(), workload);
    let text: Workload = serde_json::from_str("\"tcp bytes=1\"").unwrap();
    assert_eq!(serde_json::to_value(&text).unwrap()["cc"], "cubic");
    for (table, part) in [
        (r#"{"bytes": 1}"#, "missing field `kind`"),
        (r#"{"kind": "tcp", "bytes": [1]}"#, "must be text or a number"),
        (r#"{"kind": "tcp", "bites": 1}"#, "did you mean `bytes`"),
    ] {
        let error = serde_json::from_str::<Workload>(table).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_schema_has_every_key_and_its_default() {
    let schema = schemars::schema_for!(Workload).to_value();
    let forms = schema["anyOf"].as_array().unwrap();
    assert_eq!(forms.len(), 1 + Kind::NAMES.len());
    let cbr = forms.iter().find(|form| form["properties"]["kind"]["const"] == "cbr").unwrap();
    assert_eq!(cbr["required"], serde_json::json!(["kind", "size"]));
    assert_eq!(cbr["properties"]["from"]["default"], "server");
    assert!(cbr["properties"]["rate"]["description"].as_str().unwrap().contains("interval"));
}

/// Workloads as somebody might write them, each key with a few values.
fn texts() -> impl Strategy<Value = String> {
    fn some(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
        prop::sample::select(words)
    }
    let common = (
        some(&["", " start='1.5 s'", " start=7us"]),
        some(&["", " name=a", " name='a \"b\\ µ'", " user=bob", " name=c user='d e'"]),
    );
    let from = some(&["", " from=client", " from=server"]);
    let kind = prop_oneof![
        (1u64..1 << 40, some(&["", " cc=reno", " cc=none", " mss=1000 recv_window='64 kB'"]))
            .prop_map(|(bytes, rest)| format!("tcp bytes={bytes}{rest}")),
        (1u64..99, some(&["", " think='3 ms'"])).prop_map(|(n, rest)| format!("request response={n} count={n}{rest}")),
        some(&["quic bytes=5 cc=newreno", "quic duration='1 min'", "pcap file='a b'", "pcap file=x client=::1"])
            .prop_map(str::to_string),
        (28u64..1500, 1u64..1 << 33, some(&["", " protocol=udp-lite coverage=8", " packets=3 bytes=9 duration=1s"]))
            .prop_map(|(size, rate, rest)| format!("cbr size={size} rate={rate}bit/s{rest}")),
        (28u64..1500, 1u64..1 << 40).prop_map(|(size, ns)| format!("poisson size={size} interval={ns}ns")),
        (1u64..1 << 40, some(&["1 s", "exponential 3 ms"]))
            .prop_map(|(ns, off)| format!("on-off size=99 interval={ns}ns on='exponential {ns} ns' off='{off}'")),
        (1u64..999).prop_map(|n| format!("saturate window={n}")),
        (1u64..999, 0u32..100).prop_map(|(n, v)| format!("media bitrate={n}kbit/s variation={v}% gop={n}")),
    ];
    (kind, from, common).prop_map(|(kind, from, (start, name))| {
        let takes_from = !kind.starts_with("request") && !kind.contains("client=");
        format!("{kind}{start}{name}{}", if takes_from { from } else { "" })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_written_reads_back_as_the_same(text in texts()) {
        let workload = read(&text);
        prop_assert_eq!(&read(&workload.to_string()), &workload);
        let json = serde_json::to_string(&workload).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Workload>(&json).unwrap(), &workload);
    }

    #[test]
    fn nothing_makes_the_parser_panic(text in "[a-z=\"'\\\\ 0-9µ\t\n]{0,40}", kind in prop::sample::select(Kind::NAMES)) {
        for text in [text.clone(), format!("{kind} {text}")] {
            if let Err(error) = Workload::parse(&text) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn a_word_may_be_longer_than_what_a_format_takes_as_a_width() {
    let text = format!("tcp {} wrong", "x".repeat(70_000));
    assert!(Workload::parse(&text).unwrap_err().to_string().contains("not of the form"));
}
