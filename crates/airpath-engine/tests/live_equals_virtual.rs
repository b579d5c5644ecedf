//! Law 6 across drivers: the input log of a live run, played through the same scenario in virtual
//! time with packets that have a length only, gives the trace of the live run.

use std::path::Path as Folder;
use std::process::Command;

use airpath_core::{Ecn, LogLevel, Pdu, PortId, Seed, Time};
use airpath_log::Manifest;
use airpath_log::batch::InputKind;
use airpath_log::read::events::EventBatch;
use airpath_log::read::inputs::InputBatch;
use airpath_log::read::{open_events, open_inputs};
use airpath_models::Path;
use airpath_scenario::Scenario;
use airpath_virtual::{End, TimedInput, VirtualDriver};

/// Two hops, two states, corruption and delay: much that could go wrong.
const SCENARIO: &str = r#"
[[hops]]
name = "radio"
[hops.link]
rate = "400 kbit/s"
propagation = "15 ms"
queue = { type = "tail_drop", limit = "20 packets" }
fragmentation = { frame_payload = "1000 bit", frame_header = "24 bit", last_frame = "padded" }
send_buffer = "4 packets"
allocation_delay = "30 ms"
errors = { type = "gilbert_elliott", per = "frame", good_to_bad = 0.05, bad_to_good = 0.3, error_in_bad = 0.5, effect = "corrupt", flips = 3 }

[[hops]]
name = "core"
[hops.link]
rate = "2 Mbit/s"
propagation = "3 ms"
errors = { type = "bernoulli", per = "packet", probability = 0.05, effect = "delay", delay = "40 ms", keep_order = false }

[[states]]
name = "fast"
at = "700 ms"
set = { "radio.link.rate" = "900 kbit/s", "radio.link.errors.error_in_bad" = 0.9 }
"#;

/// Sends datagrams of many sizes both ways, for about a second and a half.
const CLIENT: &str = r#"
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.001)
for i in range(300):
    s.sendto(bytes(20 + i * 37 % 1400), ("server", 9000))
    try:
        s.recv(4096)
    except OSError:
        pass
    time.sleep(0.004)
time.sleep(0.3)
"#;
const SERVER: &str = r#"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 9000))
while True:
    data, peer = s.recvfrom(4096)
    s.sendto(data[: len(data) // 2], peer)
"#;

#[test]
fn a_live_run_played_again_virtually_gives_the_same_trace() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("scenario.toml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    std::fs::write(folder.path().join("server.py"), SERVER).unwrap();
    std::fs::write(folder.path().join("client.py"), CLIENT).unwrap();
    let out = folder.path().join("run");
    let status = Command::new(env!("CARGO_BIN_EXE_airpath-engine"))
        .current_dir(folder.path())
        .args(["exec", "--quiet", "--log", "events", "--seed", "7", "--server", "python3 server.py"])
        .arg("--scenario")
        .arg(&scenario)
        .arg("--out")
        .arg(&out)
        .args(["--", "python3", "client.py"])
        .status()
        .unwrap();
    assert!(status.success(), "{status}");

    let manifest = Manifest::read(&out).unwrap();
    assert!(manifest.results.as_ref().is_some_and(|results| results.log.complete), "the log is complete");
    let (live, last) = live_trace(&out);
    assert!(live.len() > 2_000, "only {} events", live.len());
    assert!(live.iter().any(|row| row.contains("damaged")) && live.iter().any(|row| row.contains("frame_delayed")));

    let scenario = Scenario::from_toml(&manifest.scenario_toml, "run.json").unwrap();
    let config = scenario.paths().unwrap().remove(0).config;
    let mut driver = VirtualDriver::new(Path::new(&config, Seed(manifest.seed)), LogLevel::Events);
    driver.run(inputs(&out), End::At(last), |_| {}).unwrap();
    let name = |hop: u16| manifest.hops.get(usize::from(hop)).map_or("path", String::as_str);
    let played: Vec<String> = driver
        .outputs()
        .events
        .iter()
        .map(|event| {
            let state = &manifest.states[usize::from(event.state)];
            let place = [name(event.hop), event.direction.name(), event.kind.name(), event.cause.name(), state];
            row(event.at.nanos(), place, [event.pdu, event.bits, u64::from(event.queue_packets), event.queue_bytes])
        })
        .collect();
    // The live loop may have been stopped before the last instant was done.
    for (index, (live, played)) in live.iter().zip(&played).enumerate() {
        assert_eq!(live, played, "event {index}");
    }
    assert!(played.len() >= live.len(), "{} events against {}", played.len(), live.len());
}

fn row(at: u64, words: [&str; 5], numbers: [u64; 4]) -> String {
    format!("{at} {} {numbers:?}", words.join(" "))
}

fn live_trace(out: &Folder) -> (Vec<String>, Time) {
    let mut rows = Vec::new();
    let mut last = 0;
    for batch in open_events(out).unwrap() {
        let batch = EventBatch::new(&batch.unwrap(), out).unwrap();
        for event in batch.rows() {
            let words = [event.hop, event.direction, event.kind, event.cause, event.state];
            let numbers = [event.pdu, event.bits, u64::from(event.queue_packets), event.queue_bytes];
            rows.push(row(event.time_ns, words, numbers));
            last = event.time_ns;
        }
    }
    (rows, Time::from_nanos(last))
}

fn inputs(out: &Folder) -> Vec<TimedInput> {
    let mut inputs = Vec::new();
    for batch in open_inputs(out).unwrap() {
        let batch = InputBatch::new(&batch.unwrap(), out).unwrap();
        for input in batch.rows().filter(|input| input.kind == InputKind::Offer) {
            let pdu = Pdu {
                id: input.pdu.unwrap(),
                len: input.length.unwrap(),
                header_len: input.header_len.unwrap(),
                class: input.class.unwrap(),
                ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(input.ecn.unwrap())],
                flow: input.flow.unwrap(),
                ..Pdu::default()
            };
            inputs.push(TimedInput::packet(Time::from_nanos(input.time_ns), PortId(input.port.unwrap()), pdu));
        }
    }
    inputs
}
