// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Folders of runs with damaged files: every reader says so, none panics, and none takes more memory than
//! the files are worth.

mod common;

use std::fs;
use std::io::sink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use airpath_core::{Direction, End};
use airpath_log::read::capture::CaptureLog;
use airpath_log::read::{open_inputs, open_tcp_state};
use airpath_log::render::{
    Filter, MahimahiLog, TimeRange, events_json, events_table, mahimahi, tcp_state_json, tcp_state_table, tcpdump,
};
use airpath_log::tables::inputs::InputBatch;
use airpath_log::tcp_state::{Row, TcpStateLog};
use airpath_log::{Level, Manifest, Snaplen};

const SEED: u64 = 20_261_122;
const FILES: [&str; 6] = ["events.arrow", "input.arrow", "tcp.arrow", "client.pcapng", "server.pcapng", "run.json"];
/// Of address space, over all that the test did before: threads and heaps come in large pieces.
const MOST_MEMORY_KB: u64 = 512 << 10;

/// Numbers from a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Damages a file as a bad disk, a bad copy or a bad neighbour does.
fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    const WORDS: [u64; 8] = [0, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];
    for _ in 0..=numbers.below(4) {
        let length = bytes.len();
        if length < 16 {
            return;
        }
        let at = numbers.below(length - 8);
        match numbers.below(7) {
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = numbers.next() as u8,
            2 => {
                let word = WORDS[numbers.below(WORDS.len())].to_le_bytes();
                let width = [1, 2, 4, 8][numbers.below(4)];
                bytes[at..at + width].copy_from_slice(&word[..width]);
            }
            3 => bytes.truncate(at),
            4 => {
                let end = (at + numbers.below(64)).min(length);
                bytes[at..end].fill(0);
            }
            5 => {
                let piece = bytes[at..(at + numbers.below(256)).min(length)].to_vec();
                let to = numbers.below(length);
                bytes.splice(to..to, piece);
            }
            _ => drop(bytes.drain(at..(at + numbers.below(64)).min(length))),
        }
    }
}

/// Everything that reads a run's folder; how many of the readers refused.
fn read(folder: &Path) -> usize {
    let (all, range) = (Filter::default(), TimeRange::default());
    let inputs = || {
        open_inputs(folder).and_then(|log| {
            let path = folder.join("input.arrow");
            log.map(|batch| Ok(InputBatch::new(&batch?, &path)?.rows().count())).sum::<Result<usize, _>>()
        })
    };
    let filtered = Filter { hop: Some("radio".into()), pdu: Some(3), ..Filter::default() };
    let tcp =
        || open_tcp_state(folder).map(|log| log.filter_map(Result::ok).map(|batch| batch.num_rows()).sum::<usize>());
    let link = MahimahiLog {
        hop: "radio",
        direction: Direction::Uplink,
        head: &[],
        init_timestamp_ms: 0,
        extra_bytes: 0,
        end_ns: Some(1_000_000_000),
        drops: true,
    };
    // One opportunity of each millisecond: as many as damage makes of time.
    let mut granted = |from: u64, to: u64, _: &str| {
        Some((from / 1_000_000 + 1..=to / 1_000_000).map(|ms: u64| (ms * 1_000_000, 1500)).collect())
    };
    [
        mahimahi(folder, &link, &mut granted, &mut sink()).is_err(),
        events_table(folder, &all, &mut sink()).is_err(),
        events_table(folder, &filtered, &mut sink()).is_err(),
        events_json(folder, &all, &mut sink()).is_err(),
        tcpdump(folder, &all, &mut sink()).is_err(),
        tcp_state_table(folder, range, &mut sink()).is_err(),
        tcp_state_json(folder, range, &mut sink()).is_err(),
        inputs().is_err(),
        tcp().is_err(),
        CaptureLog::check(&folder.join("client.pcapng")).is_err(),
        CaptureLog::check(&folder.join("server.pcapng")).is_err(),
        Manifest::read(folder).is_err(),
    ]
    .into_iter()
    .filter(|refused| *refused)
    .count()
}

/// The most address space that this process ever had.
fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A run as it is left, and as it is while it goes on.
fn runs() -> Vec<Vec<Vec<u8>>> {
    let finished = tempfile::tempdir().unwrap();
    let folder = finished.path();
    common::run(folder, Level::Packets, Snaplen::Full, 60);
    let row = |number| {
        let ends = (([10, 77, 0, 2].into(), 40_000), ([10, 77, 0, 1].into(), 80));
        Row { time_ns: number, ..Row::of(End::Client, 1, ends.0, ends.1, (7, 8)) }
    };
    let rows: Vec<Row> = (0..20).map(row).collect();
    let mut tcp = TcpStateLog::create(folder).unwrap();
    tcp.write(&rows);
    let growing = fs::read(folder.join("tcp.arrow")).unwrap();
    assert_eq!(tcp.finish().incomplete, None);
    Manifest::new(Level::Packets, Snaplen::Full).write(folder).unwrap();
    let files: Vec<_> = FILES.iter().map(|name| fs::read(folder.join(name)).unwrap()).collect();

    let unfinished = tempfile::tempdir().unwrap();
    let options = common::options(unfinished.path(), Level::Packets, Snaplen::Full);
    let (mut recorder, writer) = airpath_log::Writer::start(&options).unwrap();
    writer.set_start(common::START_UNIX_NS);
    common::drive(&mut recorder, 60);
    let path = unfinished.path().join("events.arrow");
    let begun = std::time::Instant::now();
    while airpath_log::read::arrow::ArrowLog::open(&path).is_ok_and(|log| log.count() == 0) {
        assert!(begun.elapsed().as_secs() < 60, "the writer writes nothing");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let mut streams: Vec<_> =
        FILES.iter().map(|name| fs::read(unfinished.path().join(name)).unwrap_or_default()).collect();
    drop(recorder);
    writer.finish();
    streams[2] = growing;
    streams[5].clone_from(&files[5]);
    vec![files, streams]
}

#[test]
fn damaged_files_are_refused_without_panic_or_memory() {
    let runs = runs();
    let scratch = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(SEED);
    let before_kb = peak_kb();
    let mut refused = 0;
    for number in 0..2000 {
        let files = &runs[number % 2];
        let hurt = numbers.below(FILES.len());
        for (index, (name, bytes)) in FILES.iter().zip(files).enumerate() {
            let mut bytes = bytes.clone();
            if index == hurt {
                damage(&mut bytes, &mut numbers);
            }
            fs::write(scratch.path().join(name), bytes).unwrap();
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| read(scratch.path())));
        let Ok(count) = outcome else { panic!("input {number} of seed {SEED}: a damaged {} panics", FILES[hurt]) };
        refused += usize::from(count > 0);
        let grown_kb = peak_kb() - before_kb;
        assert!(
            grown_kb < MOST_MEMORY_KB,
            "input {number} of seed {SEED}: a damaged {} takes {grown_kb} kB of memory",
            FILES[hurt]
        );
    }
    // Most damage shows; some falls on padding or leaves a value that may be.
    assert!(refused > 600, "{refused}");
}

/// Lengths and offsets in a message, and in the footer, that exceed the file.
#[test]
fn whatever_a_word_of_an_arrow_file_claims_is_held_against_its_size() {
    let runs = runs();
    let scratch = tempfile::tempdir().unwrap();
    let before_kb = peak_kb();
    for (files, name) in runs.iter().zip(["a file", "a stream"]) {
        let path = scratch.path().join("events.arrow");
        // From the end, where the footer is, and from the beginning, where the schema and the first heads are.
        let length = files[0].len();
        let words = (0..length / 8).map(|word| word * 8).filter(|at| *at < 1024 || *at + 1024 > length);
        for at in words {
            for claim in [0x7fff_fff8, 1i64 << 34, -1] {
                let mut bytes = files[0].clone();
                bytes[at..at + 8].copy_from_slice(&claim.to_le_bytes());
                fs::write(&path, bytes).unwrap();
                let outcome =
                    catch_unwind(AssertUnwindSafe(|| events_table(scratch.path(), &Filter::default(), &mut sink())));
                assert!(outcome.is_ok(), "{name}: byte {at} with {claim} panics");
            }
        }
    }
    let grown_kb = peak_kb() - before_kb;
    assert!(grown_kb < MOST_MEMORY_KB, "{grown_kb} kB");
}

#[test]
fn a_message_names_the_file_and_the_place() {
    let files = &runs()[0];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.arrow");
    let mut bytes = files[0].clone();
    let length = bytes.len();
    // The length of the footer.
    bytes[length - 10..length - 6].copy_from_slice(&i32::MAX.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let error = events_table(folder.path(), &Filter::default(), &mut sink()).unwrap_err().to_string();
    assert!(error.contains("events.arrow cannot be read: its footer is said to be longer than the file"), "{error}");
    assert!(error.contains("the file is damaged: copy it again"), "{error}");
}
