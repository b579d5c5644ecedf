// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Advice about what is allowed.

use airpath_scenario::Scenario;

fn advice(scenario: &str, mtu: Option<u32>) -> Vec<String> {
    Scenario::from_toml(scenario, "test.toml").unwrap().advice(mtu).unwrap()
}

fn hop(uplink: &str, downlink: &str) -> String {
    format!("[[hops]]\nname = \"radio\"\n[hops.uplink]\n{uplink}\n[hops.downlink]\n{downlink}\n")
}

const DUALPI2: &str = "queue = { type = \"dualpi2\" }";

/// 1500 bytes take 2.4 ms at 5 Mbit/s and exactly the default threshold, 0.8 ms, at 15 Mbit/s.
#[test]
fn dualpi2_of_a_slow_link_is_advised_about() {
    let slow = format!("rate = \"5 Mbit/s\"\n{DUALPI2}");
    let fast = format!("rate = \"15 Mbit/s\"\n{DUALPI2}");
    let found = advice(&hop(&slow, &fast), None);
    assert_eq!(found.len(), 1, "{found:?}");
    for part in ["radio.uplink.queue: ", "a wait of 800 us", "at 5 Mbit/s", "1500 bytes takes 2.4 ms", "='4.8 ms'"] {
        assert!(found[0].contains(part), "{}", found[0]);
    }
    // With what is advised nothing is left to be said.
    let advised = "rate = \"5 Mbit/s\"\nqueue = { type = \"dualpi2\", threshold = \"4.8 ms\" }";
    assert_eq!(advice(&hop(advised, &fast), None), [""; 0]);
    // Larger packets take longer, smaller ones are sent faster.
    assert_eq!(advice(&hop("", &fast), Some(1501)).len(), 1);
    assert_eq!(advice(&hop(&slow, ""), Some(500)), [""; 0]);
    // What marks nothing, or has no rate, needs no advice.
    let single = "rate = \"5 Mbit/s\"\nqueue = { type = \"dualpi2\", ecn = false }";
    assert_eq!(advice(&hop(single, DUALPI2), None), [""; 0]);
    assert_eq!(advice(&hop("rate = \"5 Mbit/s\"", ""), None), [""; 0]);
}

#[test]
fn states_and_classes_are_looked_at_too() {
    let state = "[[states]]\nname = \"far\"\nat = \"5 s\"\nset = { \"radio.downlink.rate\" = \"1 Mbit/s\" }\n";
    let fast = format!("rate = \"50 Mbit/s\"\n{DUALPI2}");
    let found = advice(&(hop("", &fast) + state), None);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("in the state `far`, radio.downlink.queue: "), "{}", found[0]);
    let classes = "rate = \"2 Mbit/s\"\nqueue = { type = \"classes\", order = \"strict\", classes = [\
        { name = \"fast\", match = { dscp = [46] }, queue = { type = \"dualpi2\" } }, { name = \"rest\" }] }";
    let found = advice(&hop(classes, ""), None);
    assert!(found[0].contains("--set radio.uplink.queue.classes.fast.queue.threshold='12 ms'"), "{found:?}");
}

/// A link of RLP in blocks of 20 ms with a propagation delay of 200 ms.
fn rlp(entity: &str) -> String {
    format!(
        "[[hops]]\nname = \"radio\"\n[hops.link]\nrate = {{ type = \"slotted\", slot = \"20 ms\", bits = \"240 bit\" }}\n\
         propagation = \"200 ms\"\nentity = {{ type = \"rlp\"{entity} }}\n"
    )
}

/// Blocks take 20 ms each way, or three of them for a long frame: round trips of 440 ms and 520 ms.
#[test]
fn a_timer_of_rlp_below_the_round_trip_is_told() {
    assert_eq!(advice(&rlp(""), None), [""; 0]);
    assert_eq!(advice(&rlp(", t1 = \"440 ms\""), None), [""; 0]);
    let short = advice(&rlp(", t1 = \"430 ms\""), None);
    assert_eq!(short.len(), 1);
    for words in ["radio.entity: T1 of RLP is 430 ms", "takes 440 ms", "--set radio.link.entity.t1='450 ms'"] {
        assert!(short[0].contains(words), "{short:?}");
    }
    let long = advice(&rlp(", frame = \"long\""), None);
    assert!(long.len() == 1 && long[0].contains("takes 520 ms") && long[0].contains("'530 ms'"), "{long:?}");
    assert_eq!(advice(&rlp(", frame = \"long\", t1 = \"530 ms\""), None), [""; 0]);
}

/// Two blocks of 20 ms, an answer that is reserved 40 ms later, and a propagation delay of 120 ms each way: 320 ms.
#[test]
fn polls_that_count_as_unanswered_too_early_are_told() {
    let gprs = |entity: &str| {
        format!(
            "[[hops]]\nname = \"radio\"\n[hops.link]\nrate = {{ type = \"slotted\", slot = \"20 ms\", bits = \"456 bit\" \
             }}\npropagation = \"120 ms\"\nentity = {{ type = \"gprs\"{entity} }}\n"
        )
    };
    let short = advice(&gprs(""), None);
    assert_eq!(short.len(), 1);
    let words = ["radio.entity: a poll", "unanswered after 300 ms", "takes 320 ms", "entity.poll_timeout='360 ms'"];
    for words in words {
        assert!(short[0].contains(words), "{short:?}");
    }
    assert_eq!(advice(&gprs(", poll_timeout = \"320 ms\""), None), [""; 0]);
    assert_eq!(advice(&gprs(", signalling = \"ideal\""), None), [""; 0]);
}

#[test]
fn windows_below_a_packet_or_beyond_the_queue_are_told() {
    let with = |queue: &str, window: &str| {
        let link = format!(
            "queue = {{ type = \"tail_drop\", limit = \"{queue}\" }}\nflow_control = {{ type = \"window\", {window} }}"
        );
        advice(&hop(&link, ""), None)
    };
    assert_eq!(with("7 packets", "packets = 7"), [""; 0]);
    assert_eq!(with("unlimited", "packets = 700"), [""; 0]);
    assert_eq!(with("6 kB", "bytes = \"6 kB\", packets = 9"), [""; 0]);
    let short = with("unlimited", "bytes = \"1499 bytes\"");
    assert_eq!(short.len(), 1, "{short:?}");
    for words in
        ["radio.uplink.flow_control: a window of 1499 bytes", "--set radio.uplink.flow_control.bytes='6000 bytes'"]
    {
        assert!(short[0].contains(words), "{short:?}");
    }
    // A window of bytes says nothing of the number of packets, and a queue without its limit holds 1000.
    for (queue, window) in [("7 packets", "packets = 8"), ("7 packets", "bytes = \"6 kB\""), ("6 kB", "packets = 4")] {
        let found = with(queue, window);
        assert!(found.len() == 1 && found[0].contains("can be dropped in spite of it"), "{found:?}");
    }
}
