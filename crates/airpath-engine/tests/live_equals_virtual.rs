// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Law 6 across drivers: the input log of a live run, played through the same scenario in virtual
//! time with packets that have a length only, gives the trace of the live run.

use std::collections::BTreeSet;
use std::process::Command;

use airpath_log::read::open_events;
use airpath_log::tables::events::EventBatch;

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

    let replay = Command::new(env!("CARGO_BIN_EXE_airpath-engine")).arg("replay").arg(&out).output().unwrap();
    let said = String::from_utf8(replay.stdout).unwrap();
    assert!(replay.status.success(), "{said}{}", String::from_utf8_lossy(&replay.stderr));
    let (mut events, mut kinds) = (0, BTreeSet::new());
    for batch in open_events(&out).unwrap() {
        let batch = EventBatch::new(&batch.unwrap(), &out).unwrap();
        events += batch.len();
        kinds.extend(batch.rows().map(|row| row.kind.to_owned()));
    }
    assert!(events > 2_000, "only {events} events");
    assert!(["damaged", "frame_delayed", "state_changed"].iter().all(|kind| kinds.contains(*kind)), "{kinds:?}");
    let digits: String = said.split(',').take(2).flat_map(|part| part.chars()).filter(char::is_ascii_digit).collect();
    assert!(said.starts_with("identical: ") && digits.starts_with(&events.to_string()), "{said}");
}
