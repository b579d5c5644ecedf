// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The thread that writes the files of a run.

mod annotate;
mod captures;
#[cfg(test)]
mod full_disk;
mod in_flight;
pub(crate) mod sink;
#[cfg(test)]
mod stalled;
pub(crate) mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airpath_core::EventKinds;
use crossbeam_channel::TryRecvError;

use crate::batch::LogBatch;
use crate::error::LogError;
use crate::files;
use crate::level::{Level, Snaplen};
use crate::pcapng::Kept;
use crate::places::Places;
use crate::recorder::{Overflow, Recorder, Ring, RingSize};
use crate::show;
use crate::tables::events::{EventColumns, Left};
use crate::tables::inputs::InputColumns;
use crate::tables::links::LinkColumns;
use captures::Captures;
use sink::Sink;
use table::{FILE_ROWS, Table};

/// Maximum time that records of a live run wait in the writer. Together with the time they may stay in the
/// loop's hands, a run that is killed loses less than half a second.
const WRITE_AFTER: Duration = Duration::from_millis(200);
/// Interval of checks whether everything has been written.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Files and options of the writer.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The run's folder, made by [`folder::create`].
    pub folder: PathBuf,
    /// Level of recording.
    pub level: Level,
    /// Number of bytes that the captures keep of each packet.
    pub snaplen: Snaplen,
    /// True if packets come with Ethernet headers, which captures hold too.
    pub link_headers: bool,
    /// The users, their hops and their states.
    pub places: Places,
    /// True if the path has link entities with a protocol of their own, whose records are kept.
    pub links: bool,
    /// Kinds of events that are counted and not recorded.
    pub leaves_out: EventKinds,
    /// The size of the ring between the loop and the writer.
    pub ring: RingSize,
    /// Behaviour when that ring is full.
    pub overflow: Overflow,
    /// True if the memory of the first records is touched beforehand: a page fault makes a live link late, and
    /// in virtual time takes processor time only.
    pub touched: bool,
}

impl WriterOptions {
    /// Options for a path with these hops and states, the rest as by default.
    pub fn of_path(folder: &Path, level: Level, hops: Vec<String>, states: Vec<String>) -> WriterOptions {
        WriterOptions::of(folder, level, Places::of_path(hops, states))
    }

    /// Options for a run with these places, the rest as by default.
    pub fn of(folder: &Path, level: Level, places: Places) -> WriterOptions {
        WriterOptions {
            folder: folder.to_owned(),
            level,
            snaplen: Snaplen::default(),
            link_headers: false,
            places,
            links: false,
            leaves_out: EventKinds::NONE,
            ring: RingSize::default(),
            overflow: Overflow::default(),
            touched: true,
        }
    }
}

/// State of the finished files.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct WriterReport {
    /// Rows of `events.arrow`.
    pub events: u64,
    /// Rows of `input.arrow`.
    pub inputs: u64,
    /// Rows of `link.arrow`, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<u64>,
    /// Packets in the captures.
    pub packets: u64,
    /// Missing parts with the reasons; empty for a complete log.
    pub incomplete: Vec<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Time that the writer spent waiting; of no interest where nothing was lost, and different in equal runs.
    #[serde(skip)]
    pub kept_by: KeptBy,
}

/// Times that the writer of a log waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeptBy {
    /// Time in which it handed records to the system: to a disk, mostly.
    pub writing: Duration,
    /// Time in which it could have run and had no processor.
    pub no_processor: Duration,
}

impl KeptBy {
    /// Reason for lost records.
    pub fn reason(&self) -> String {
        let show = |time: Duration| show::span(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let (writing, waiting) = (show(self.writing), show(self.no_processor));
        if self.no_processor > self.writing {
            format!(
                "the log writer lacked CPU time: it waited {waiting} for a CPU, and writing took {writing}; stop \
                 other programs, or record less (--log events, --snaplen)"
            )
        } else {
            format!(
                "the disk could not keep up: writing took {writing}, and waiting for a CPU {waiting}; use a faster \
                 disk, record less (--log events, --snaplen), or raise --log-buffer"
            )
        }
    }
}

/// Time that the calling thread has waited for a processor so far; nothing where the kernel does not tell.
fn waited_for_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0))
}

/// The writer's side of a run's log.
#[derive(Debug)]
pub struct Writer {
    start_unix_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<WriterReport>>,
}

impl Writer {
    /// Makes the files and starts the thread; below [`Level::Events`] neither. The thread inherits
    /// the caller's scheduling policy and processor affinity: call this before raising them, and in
    /// the process that will run the loop.
    ///
    /// # Errors
    /// When a file or the thread cannot be made.
    pub fn start(options: &WriterOptions) -> Result<(Recorder, Writer), LogError> {
        let start_unix_ns = Arc::new(AtomicU64::new(0));
        if options.level < Level::Events {
            return Ok((Recorder::idle(options.level), Writer { start_unix_ns, thread: None }));
        }
        let files = Files::create(options, start_unix_ns.clone(), &Sink::create)?;
        Writer::over(files, options, start_unix_ns)
    }

    /// The same with files that are open already.
    fn over(
        files: Files,
        options: &WriterOptions,
        start_unix_ns: Arc<AtomicU64>,
    ) -> Result<(Recorder, Writer), LogError> {
        let (mut recorder, ring) =
            Recorder::connected(options.level, options.snaplen, options.ring, options.overflow, options.touched);
        recorder = recorder.with_links(options.links).leaving_out(options.leaves_out);
        let thread = std::thread::Builder::new()
            .name("airpath-log".into())
            .spawn(move || files.run(&ring))
            .map_err(|source| LogError::io("start the writer of", &options.folder, source))?;
        recorder.wakes(thread.thread().clone());
        Ok((recorder, Writer { start_unix_ns, thread: Some(thread) }))
    }

    /// Tells when the run's time 0 was, in nanoseconds since 1970; to be called before the first
    /// packet is recorded, for the stamps of the captures.
    pub fn set_start(&self, unix_ns: u64) {
        self.start_unix_ns.store(unix_ns, Ordering::Relaxed);
    }

    /// Waits until everything is written and in its final format. The recorder must have been
    /// finished or dropped before.
    pub fn finish(self) -> WriterReport {
        self.finish_within(Duration::MAX, || ())
    }

    /// The same, and calls `tell` once if that takes longer than `patience`.
    pub fn finish_within(mut self, patience: Duration, tell: impl FnOnce()) -> WriterReport {
        let Some(thread) = self.thread.take() else { return WriterReport::default() };
        let begun = Instant::now();
        while patience < Duration::MAX && !thread.is_finished() {
            if begun.elapsed() >= patience {
                tell();
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        thread.join().unwrap_or_else(|_| WriterReport {
            incomplete: vec!["the log writer failed; the data written before that is readable".into()],
            ..WriterReport::default()
        })
    }
}

/// Makes a file of the log.
type OpenSink<'a> = dyn Fn(PathBuf) -> Result<Sink, LogError> + 'a;

struct Files {
    start_unix_ns: Arc<AtomicU64>,
    events: EventColumns,
    inputs: InputColumns,
    event_table: Table,
    input_table: Table,
    /// Rows of the link log and its table, where there is one.
    links: Option<(LinkColumns, Table)>,
    captures: Option<Captures>,
    places: Places,
    /// Progress of the run's time.
    now_ns: u64,
    /// True if something has come since the last write.
    has_news: bool,
    /// True if a table has had all rows of a batch of its file since the last write.
    is_full: bool,
    /// True if a file that could not be written has been noticed.
    has_failed: bool,
    /// Maximum time that records may wait. Where nobody's clock counts there is no limit: what is written
    /// together is then a matter of its number alone, and equal runs leave equal bytes.
    patience: Option<Duration>,
}

impl Files {
    /// Files in the folder of `options`, each made by `open`.
    fn create(options: &WriterOptions, start_unix_ns: Arc<AtomicU64>, open: &OpenSink<'_>) -> Result<Files, LogError> {
        let events = EventColumns::new(&options.places);
        let inputs = InputColumns::new(&options.places);
        let kept = Kept { snaplen: options.snaplen.bytes(), link_headers: options.link_headers };
        let patience = match options.overflow {
            Overflow::Lose => Some(WRITE_AFTER),
            Overflow::Wait => None,
        };
        let captures = (options.level >= Level::Packets)
            .then(|| Captures::create(&options.folder, &options.places, kept, patience.is_none(), open))
            .transpose()?;
        let links = options.links.then(|| {
            let columns = LinkColumns::new(&options.places);
            let table = Table::new(open(options.folder.join(files::LINK))?, columns.schema());
            Ok((columns, table))
        });
        Ok(Files {
            start_unix_ns,
            links: links.transpose()?,
            event_table: Table::new(open(options.folder.join(files::EVENTS))?, events.schema()),
            input_table: Table::new(open(options.folder.join(files::INPUT))?, inputs.schema()),
            events,
            inputs,
            captures,
            places: options.places.clone(),
            now_ns: 0,
            has_news: false,
            is_full: false,
            has_failed: false,
            patience,
        })
    }

    /// Writes until the recorder is gone.
    fn run(mut self, ring: &Ring) -> WriterReport {
        let mut write_at: Option<Instant> = None;
        loop {
            match ring.full.try_recv() {
                Ok(mut batch) => {
                    self.take(&batch);
                    batch.clear();
                    let _ = ring.empty.try_send(batch);
                    write_at = write_at.or_else(|| self.deadline());
                }
                // The recorder wakes this thread; see there why not the channel.
                Err(TryRecvError::Empty) => match write_at {
                    None => std::thread::park(),
                    Some(at) => std::thread::park_timeout(at.saturating_duration_since(Instant::now())),
                },
                Err(TryRecvError::Disconnected) => break,
            }
            if self.patience.is_none() {
                let are_captures_due = self.captures.as_ref().is_some_and(Captures::is_worth_a_write);
                if are_captures_due {
                    self.write_captures();
                }
                // Rows wait until a table has a batch of its file, which is then written once.
                if std::mem::take(&mut self.is_full) || are_captures_due {
                    self.save_after_failure();
                }
            } else if self.is_full || write_at.is_some_and(|at| Instant::now() >= at) {
                let advanced = self.write();
                // Blocks of a capture that wait for later ones are written a little later, even if
                // nothing comes.
                write_at = if advanced { self.deadline() } else { None };
            }
        }
        self.finish()
    }

    /// Time by which new records have to be written.
    fn deadline(&self) -> Option<Instant> {
        self.patience.map(|patience| Instant::now() + patience)
    }

    fn take(&mut self, batch: &LogBatch) {
        self.now_ns = self.now_ns.max(batch.sealed_at.nanos());
        self.has_news |= !batch.is_empty();
        if !batch.lost_before.is_none() {
            let first = batch.inputs.first().map(|input| input.at).or(batch.events.first().map(|event| event.at));
            self.inputs.push_lost(first.unwrap_or(batch.sealed_at).nanos(), batch.lost_before);
        }
        // Inputs come first: at any instant the log of inputs reaches as far as that of events, which follow from them.
        for input in &batch.inputs {
            self.inputs.push(input, batch);
            if self.inputs.len() == FILE_ROWS {
                self.write_full();
            }
        }
        for record in &batch.links {
            let Some((columns, _)) = &mut self.links else { break };
            columns.push(record, &self.places);
            if columns.len() == FILE_ROWS {
                self.write_full();
            }
        }
        let mut emitted = batch.emitted.iter().peekable();
        for (index, event) in batch.events.iter().enumerate() {
            let emitted = emitted.next_if(|emitted| emitted.event as usize == index);
            let left = emitted.map(|emitted| Left {
                at_ns: emitted.at_ns,
                flips: batch.flips(emitted.flips),
                kept_bytes: emitted.kept_bytes,
            });
            self.events.push(event, left, &self.places);
            if self.events.len() == FILE_ROWS {
                self.write_full();
            }
        }
        if let Some(captures) = &mut self.captures {
            captures.take(batch, self.start_unix_ns.load(Ordering::Relaxed));
        }
    }

    /// Writes the rows of all tables, as one of them has a batch of its file. The others are behind it and must not
    /// fall back further, should the run be killed or the disk be full; theirs become batches of a file at the end.
    fn write_full(&mut self) {
        self.write_rows();
        self.is_full = true;
    }

    /// Writes the rows that have come so far.
    fn write_rows(&mut self) {
        self.input_table.write(&self.inputs.take());
        if let Some((columns, table)) = &mut self.links {
            table.write(&columns.take());
        }
        self.event_table.write(&self.events.take());
        self.sinks().for_each(Sink::check);
    }

    /// The files of the tables.
    fn sinks(&mut self) -> impl Iterator<Item = &mut Sink> {
        let links = self.links.as_mut().map(|(_, table)| table);
        [&mut self.event_table, &mut self.input_table].into_iter().chain(links).map(Table::sink)
    }

    /// Writes what has come so far when a first file could not be written: a disk without room for one has soon none
    /// for the others.
    fn save_after_failure(&mut self) {
        let has_failure = self.sinks().any(|sink| sink.failure().is_some())
            || self.captures.as_ref().is_some_and(Captures::has_failure);
        if !has_failure || std::mem::replace(&mut self.has_failed, true) {
            return;
        }
        self.write_rows();
        if let Some(captures) = &mut self.captures {
            captures.hold_no_longer();
            captures.write(self.now_ns, self.start_unix_ns.load(Ordering::Relaxed));
        }
    }

    /// Writes what has come so far; says whether blocks are left that wait for later ones.
    fn write(&mut self) -> bool {
        self.is_full = false;
        self.write_rows();
        self.write_captures()
    }

    /// The same for the captures.
    fn write_captures(&mut self) -> bool {
        // Nothing new in this round: what waits has waited long enough.
        let now_ns = if std::mem::take(&mut self.has_news) { self.now_ns } else { u64::MAX / 2 };
        let Some(captures) = &mut self.captures else { return false };
        captures.write(now_ns, self.start_unix_ns.load(Ordering::Relaxed));
        captures.is_waiting()
    }

    fn finish(mut self) -> WriterReport {
        self.write();
        let tables: Duration = self.sinks().map(|sink| sink.spent()).sum();
        let captures = self.captures.as_ref().map_or(Duration::ZERO, Captures::spent);
        let kept_by = KeptBy { writing: tables + captures, no_processor: waited_for_processor() };
        let mut report = WriterReport {
            events: self.event_table.rows(),
            inputs: self.input_table.rows(),
            kept_by,
            ..WriterReport::default()
        };
        let links = self.links.map(|(_, table)| table);
        report.links = links.as_ref().map(Table::rows);
        for table in [self.event_table, self.input_table].into_iter().chain(links) {
            let (failure, note) = table.finish();
            report.incomplete.extend(failure);
            report.notes.extend(note);
        }
        if let Some(captures) = self.captures {
            let (packets, failures, notes) = captures.finish();
            report.packets = packets;
            report.incomplete.extend(failures);
            report.notes.extend(notes);
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_loss_is_what_took_longer() {
        let seconds = Duration::from_secs;
        let disk = KeptBy { writing: seconds(3), no_processor: seconds(1) }.reason();
        assert!(disk.starts_with("the disk could not keep up: writing took 3"), "{disk}");
        let processor = KeptBy { writing: seconds(1), no_processor: seconds(3) }.reason();
        assert!(processor.starts_with("the log writer lacked CPU time: it waited 3"), "{processor}");
    }
}
