// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Runs and captures brought onto another clock, packet by packet.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use airpath_clocks::correct::{Correction, RECORD, Request, capture, correct};
use airpath_clocks::estimate::{Counts, Host};
use airpath_clocks::segments::HostSide;
use airpath_clocks::{ClockError, Estimate};
use airpath_log::manifest::{LogResults, Results, Status, TimingResults};
use airpath_log::pcapng::{Interface, Kept, PacketBlock, write_head, write_packet};
use airpath_log::read::capture::{CaptureLog, CapturedPacket};
use airpath_log::{Clock, Level, Lost, Manifest, Snaplen, Verdict, WriterReport};
use tempfile::TempDir;

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;

/// The remote clock is 2.5 s ahead 50 s after the start, and gains 40 µs a second.
fn estimate() -> Estimate {
    let host = |name: &str, identity: &str| Host { name: name.into(), identity: identity.into() };
    Estimate {
        format_version: 1,
        airpath_version: "0".into(),
        local: host("here", "aa"),
        remote: host("there", "bb"),
        at_unix_ns: START + 50 * SECOND,
        offset_ns: 2_500_000_000,
        bound_ns: 1_000_000,
        offset_interval_ns: [2_499_000_000, 2_501_000_000],
        monotonic_offset_ns: 0,
        drift_ppm: 40.0,
        drift_interval_ppm: [39.0, 41.0],
        drift_bound_ppm: [-10.0, 90.0],
        from_unix_ns: START - 10 * SECOND,
        to_unix_ns: START + 110 * SECOND,
        bound_at_ends_ns: [2_000_000, 3_000_000],
        least_round_trip_ns: 2_000_000,
        median_round_trip_ns: 2_000_000,
        wander_ns: 0,
        steps: Vec::new(),
        exchanges: Counts::default(),
        warnings: Vec::new(),
    }
}

/// Returns the time of the remote clock, computed in whole numbers.
fn there(unix_ns: u64) -> u64 {
    let since = i128::from(unix_ns) - i128::from(START + 50 * SECOND);
    (i128::from(unix_ns) + 2_500_000_000 + (since * 40 + since.signum() * 500_000) / 1_000_000) as u64
}

fn own_capture() -> Vec<u8> {
    let mut bytes = Vec::new();
    write_head(&mut bytes, "client", Kept { snaplen: 200, link_headers: false });
    for number in 0..100u64 {
        write_packet(
            &mut bytes,
            &PacketBlock {
                interface: if number % 2 == 0 { Interface::Rx } else { Interface::Tx },
                unix_ns: START + number * SECOND + number * 7,
                length: 20 + number as u32,
                bytes: &[0x45; 20],
                pdu: Some(number),
                comment: (number == 3).then_some("dropped: noise"),
            },
        );
    }
    bytes
}

fn packets(path: &Path) -> Vec<CapturedPacket> {
    CaptureLog::open(path).unwrap().collect::<Result<_, _>>().unwrap()
}

/// A run of 100 s, with two captures and other files.
fn run(identity: &str) -> (TempDir, PathBuf) {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("run");
    fs::create_dir_all(folder.join("files")).unwrap();
    let mut manifest = Manifest::new(Level::Packets, Snaplen::Full);
    manifest.start_unix_ns = START;
    manifest.status = Status::Finished;
    manifest.host.clock = (!identity.is_empty()).then(|| serde_json::json!({ "identity": identity }));
    manifest.results = Some(Results {
        duration_ns: 100 * SECOND,
        counters: Vec::new(),
        timings: TimingResults::default(),
        log: LogResults::new(Lost::default(), WriterReport::default()),
        machine: None,
        live_loop: None,
        wall_clock: None,
        ends: None,
        verdict: Verdict::default(),
    });
    manifest.write(&folder).unwrap();
    for name in ["client.pcapng", "server.pcapng"] {
        fs::write(folder.join(name), own_capture()).unwrap();
    }
    fs::write(folder.join("events.arrow"), b"times of the run").unwrap();
    fs::write(folder.join("files/up.trace"), b"1\n").unwrap();
    (base, folder)
}

fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let names = ["run.json", "client.pcapng", "server.pcapng", "events.arrow", "files/up.trace"];
    names.into_iter().map(|name| (name.into(), fs::read(folder.join(name)).unwrap())).collect()
}

fn do_it(
    original: &Path,
    out: &Path,
    recorded_at: Option<HostSide>,
    estimate: &Estimate,
) -> Result<Correction, ClockError> {
    correct(&Request { original, estimate, recorded_at, extrapolate: false, out })
}

#[test]
fn every_stamp_of_a_run_is_moved_and_nothing_else() {
    let (base, folder) = run("aa");
    let before = contents(&folder);
    let out = base.path().join("corrected");
    let correction = do_it(&folder, &out, None, &estimate()).unwrap();
    assert_eq!(contents(&folder), before);
    let after = contents(&out);
    for name in ["events.arrow", "files/up.trace"] {
        assert_eq!(after[Path::new(name)], before[Path::new(name)]);
    }
    for name in ["client.pcapng", "server.pcapng"] {
        let (old, new) = (packets(&folder.join(name)), packets(&out.join(name)));
        assert_eq!(old.len(), 100);
        for (old, new) in old.into_iter().zip(new) {
            assert_eq!(new, CapturedPacket { unix_ns: there(old.unix_ns), ..old });
        }
    }
    let manifest = Manifest::read(&out).unwrap();
    assert_eq!(manifest.start_unix_ns, there(START));
    // 2.5 s less 50 s of 40 µs each.
    assert_eq!((correction.offset_ns, correction.drift_ppm), (2_498_000_000, 40.0));
    // 50 of 60 s of the way from 1 to 3 ms.
    assert_eq!(correction.bound_ns, 2_666_667);
    assert_eq!(correction.original_start_unix_ns, Some(START));
    assert_eq!((correction.recorded_at, correction.extrapolated), (HostSide::Local, false));
    let record: Correction = serde_json::from_slice(&fs::read(out.join(RECORD)).unwrap()).unwrap();
    assert_eq!(record, correction);
    assert_eq!(
        serde_json::from_value::<Correction>(manifest.settings["clock_correction"].clone()).unwrap(),
        correction
    );
    let error = do_it(&out, &base.path().join("again"), None, &estimate()).unwrap_err().to_string();
    assert!(error.contains("was corrected already"), "{error}");
}

#[test]
fn a_run_of_the_other_host_comes_onto_the_clock_of_this_one() {
    let (base, folder) = run("bb");
    let far = Estimate { offset_ns: -2_500_000_000, ..estimate() };
    let out = base.path().join("corrected");
    let correction = do_it(&folder, &out, None, &far).unwrap();
    assert_eq!(correction.recorded_at, HostSide::Remote);
    let start = Manifest::read(&out).unwrap().start_unix_ns;
    // Back again it is what it was.
    assert!(far.remote_ns(start).unwrap().abs_diff(START) <= 1, "{start}");
    let error = do_it(&folder, &base.path().join("b"), Some(HostSide::Local), &far).unwrap_err().to_string();
    assert!(error.contains("recorded at the remote host"), "{error}");
}

#[test]
fn what_cannot_be_corrected_is_refused_and_leaves_nothing() {
    let (base, folder) = run("");
    let out = base.path().join("corrected");
    let refused = |folder: &Path, estimate: &Estimate, expected: &str| {
        let error = do_it(folder, &out, None, estimate).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!out.exists(), "{expected}");
    };
    let short = Estimate { to_unix_ns: START + 80 * SECOND, ..estimate() };
    refused(
        &folder,
        &short,
        "the estimate holds from 1699999990.000000000 to 1700000080.000000000: it is 20.000000000 s too late",
    );
    refused(&folder, &short, "--extrapolate");
    refused(&base.path().join("none"), &estimate(), "check the name");
    refused(&folder.join("files"), &estimate(), "holds no run.json");
    let inside = folder.join("inner");
    let error = do_it(&folder, &inside, None, &estimate()).unwrap_err().to_string();
    assert!(error.contains("lies in the original") && !inside.exists(), "{error}");
    let error = do_it(&folder, &folder, None, &estimate()).unwrap_err().to_string();
    assert!(error.contains("is not empty"), "{error}");
    let change = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = Manifest::read(&folder).unwrap();
        change(&mut manifest);
        manifest.write(&folder).unwrap();
    };
    change(&|manifest| manifest.host.clock = Some(serde_json::json!({ "identity": "cc" })));
    refused(&folder, &estimate(), "recorded at neither host");
    change(&|manifest| (manifest.host.clock, manifest.clock) = (None, Clock::Virtual));
    refused(&folder, &estimate(), "a run by the clock virtual");
    change(&|manifest| (manifest.clock, manifest.status) = (Clock::Live, Status::Running));
    refused(&folder, &estimate(), "goes on or was killed");
    change(&|manifest| manifest.status = Status::Failed);
    let whole = own_capture();
    fs::write(folder.join("server.pcapng"), &whole[..whole.len() - 5]).unwrap();
    refused(&folder, &estimate(), "ends in the middle of it");
    fs::write(folder.join("server.pcapng"), b"no capture at all").unwrap();
    refused(&folder, &estimate(), "neither a pcapng nor a pcap");
    fs::write(folder.join("server.pcapng"), whole).unwrap();
    assert!(do_it(&folder, &out, None, &estimate()).is_ok());
}

#[test]
fn beyond_the_estimate_the_bound_grows() {
    let (base, folder) = run("aa");
    let short = Estimate { to_unix_ns: START + 80 * SECOND, ..estimate() };
    let out = base.path().join("corrected");
    let request = Request { original: &folder, estimate: &short, recorded_at: None, extrapolate: true, out: &out };
    let correction = correct(&request).unwrap();
    assert!(correction.extrapolated);
    // 20 s beyond the end at 50 ppm of doubt: 1 ms more than at the end.
    assert_eq!(correction.bound_ns, 4_000_000);
}

#[test]
fn a_capture_by_itself_is_read_by_other_programs() {
    let base = tempfile::tempdir().unwrap();
    let original = base.path().join("client.pcapng");
    fs::write(&original, own_capture()).unwrap();
    let out = base.path().join("corrected");
    let correction = do_it(&original, &out, Some(HostSide::Local), &estimate()).unwrap();
    assert_eq!(correction.captures["client.pcapng"].count, 100);
    assert_eq!(correction.captures["client.pcapng"].corrected_first_unix_ns, there(START));
    let Ok(output) = Command::new("tshark")
        .args(["-r", &out.join("client.pcapng").to_string_lossy(), "-T", "fields", "-e", "frame.time_epoch"])
        .env("HOME", base.path())
        .output()
    else {
        println!("tshark is not installed: what it makes of the capture is not checked");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Some versions write seconds, some the date.
    let first = there(START);
    let expected = format!("{}.{:09}", first / SECOND, first % SECOND);
    assert_eq!(text.lines().count(), 100, "{text}");
    let line = text.lines().next().unwrap();
    assert!(line == expected || line.contains(&format!(".{:09}", first % SECOND)), "{line}, not {expected}");
}

/// A block of pcapng in either byte order.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let length = word(body.len() as u32 + 12);
    [&word(kind)[..], &length, body, &length].concat()
}

/// A section, an interface of this resolution that counts from `epoch_s`, a packet and statistics at `units`.
fn foreign(big: bool, resolution: u8, epoch_s: i64, units: u64) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let long = |value: i64| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let stamp = [word((units >> 32) as u32), word(units as u32)].concat();
    let section = [&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat();
    let interface = [
        &half(1)[..],
        &half(0),
        &word(0), // Ethernet, no limit
        &half(9),
        &half(1),
        &[resolution, 0, 0, 0],
        &half(14),
        &half(8),
        &long(epoch_s),
        &half(0),
        &half(0),
    ]
    .concat();
    let packet = [&word(0)[..], &stamp, &word(5), &word(5), b"hello\0\0\0"].concat();
    let statistics = [&word(0)[..], &stamp, &half(2), &half(8), &stamp, &half(0), &half(0)].concat();
    [block(big, 0x0a0d_0d0a, &section), block(big, 1, &interface), block(big, 6, &packet), block(big, 5, &statistics)]
        .concat()
}

fn copied(input: &[u8], by_ns: i64) -> (Vec<u8>, Vec<u64>) {
    let (mut output, mut seen) = (Vec::new(), Vec::new());
    let mut change = |unix_ns: u64| {
        seen.push(unix_ns);
        Ok(unix_ns.saturating_add_signed(by_ns))
    };
    capture::copy(&mut &input[..], &mut output, &mut change).unwrap();
    (output, seen)
}

#[test]
fn stamps_of_any_order_and_resolution() {
    for big in [false, true] {
        for (resolution, units, after) in [
            (6, 1_700_000_000_000_001, 1_700_000_001_500_001),
            (9, 1_700_000_000_000_000_001, 1_700_000_001_500_000_001),
            (3, 1_700_000_000_123, 1_700_000_001_623),
            (0x80 | 20, 1_700_000_000 << 20, (1_700_000_000 << 20) + (3 << 19)),
        ] {
            let (output, seen) = copied(&foreign(big, resolution, 0, units), 1_500_000_000);
            assert_eq!(output, foreign(big, resolution, 0, after), "{big} {resolution}");
            assert_eq!(seen.len(), 3);
            assert_eq!(seen[0] / SECOND, 1_700_000_000);
        }
        let (output, seen) = copied(&foreign(big, 6, 1_600_000_000, 100_000_000_000_000), -1_499_600);
        assert_eq!(seen[0], START);
        assert_eq!(output, foreign(big, 6, 1_600_000_000, 100_000_000_000_000 - 1_500));
    }
}

#[test]
fn pcap_files_of_either_order_and_both_resolutions() {
    for big in [false, true] {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        for (magic, part, moved) in [(0xa1b2_c3d4u32, 999_999, 0), (0xa1b2_3c4d, 999_999_999, 999)] {
            let file = |seconds: u32, part: u32| {
                let head = [&word(magic)[..], &[2, 0, 4, 0], &[0; 12], &word(1)].concat();
                [&head[..], &word(seconds), &word(part), &word(3), &word(9), b"abc"].concat()
            };
            let (output, seen) = copied(&file(1_700_000_000, part), 1_000);
            assert_eq!(seen.len(), 1);
            assert_eq!(output, file(1_700_000_001, moved));
        }
    }
}
