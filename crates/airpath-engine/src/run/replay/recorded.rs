// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A recorded run as a replay needs it: whether it can be replayed, its inputs, its events.

use std::path::{Path as Folder, PathBuf};
use std::sync::Arc;

use airpath_core::{Command, Ecn, Escapes, HeaderBytes, Item, Matches, Pdu, PortId, Signal, Span, Time};
use airpath_log::batch::InputKind;
use airpath_log::files::{EVENTS, INPUT, LINK};
use airpath_log::manifest::Status;
use airpath_log::read::arrow::ArrowLog;
use airpath_log::read::rows::Rows;
use airpath_log::read::{open_events, open_inputs};
use airpath_log::show::counted;
use airpath_log::tables::events::{EventBatch, EventRow};
use airpath_log::tables::inputs::{InputBatch, InputRow};
use airpath_log::tables::links::{LinkBatch, LinkRow};
use airpath_log::{Level, LogError, Manifest};
use airpath_virtual::Input;

use crate::error::{Failure, Result};
use crate::run::replication;

/// Octets of PPP around a packet that may be escaped: address, control, protocol (2) and FCS (4).
const FRAMING_OCTETS: u64 = 8;

/// The column of the input log with the escapes of packets.
const ESCAPES: &str = "escapes";

/// The column of the input log with the answers of filters.
const MATCHES: &str = "matches";

/// Advice for a run that cannot be replayed as it is.
const RECORD_AGAIN: &str = "record the run again";

/// The manifest of the run in `folder`, which can be replayed.
///
/// # Errors
/// Why it cannot, and what to do about it.
pub fn manifest(folder: &Folder) -> Result<Manifest> {
    let named = folder.display();
    replication::one_run(folder, "replay")?;
    let manifest = Manifest::read(folder).map_err(|error| Failure::usage(error.to_string()))?;
    let refuse = |why: String| Err(Failure::usage(format!("{named} cannot be replayed: {why}")));
    match (&manifest.results, manifest.status) {
        (None, Status::Running) => {
            return refuse(format!("the run is still active or was killed, and its log is incomplete; {RECORD_AGAIN}"));
        }
        (None, _) | (_, Status::Failed) => return refuse(format!("the run failed; {RECORD_AGAIN}")),
        (Some(_), _) if manifest.log_level < Level::Events => {
            return refuse(format!(
                "it was recorded with --log {}, without events; {RECORD_AGAIN} with --log events",
                manifest.log_level
            ));
        }
        (Some(results), _) if !results.log.complete => {
            let reasons = results.log.files.incomplete.join("; ");
            return refuse(format!("its log is incomplete: {reasons}; {RECORD_AGAIN}"));
        }
        _ => {}
    }
    if manifest.scenario_toml.is_empty() {
        return refuse(format!("its run.json has no scenario; {RECORD_AGAIN}"));
    }
    Ok(manifest)
}

/// Duration of a run that can be replayed.
pub fn duration(manifest: &Manifest) -> Span {
    Span::from_nanos(manifest.results.as_ref().map_or(0, |results| results.duration_ns))
}

/// A log that is not as it was recorded cannot be replayed; one that the system does not let be read
/// is another matter.
fn unreadable(error: LogError) -> Failure {
    Failure::log(error)
}

fn damaged(path: &Folder, what: &str) -> Failure {
    Failure::usage(format!("{} cannot be replayed: {what}; {RECORD_AGAIN}", path.display()))
}

/// A table that ended as it should.
fn whole(log: ArrowLog, path: &Folder) -> Result<ArrowLog> {
    match log.torn_bytes() {
        0 => Ok(log),
        torn => {
            Err(damaged(path, &format!("it is truncated: its last {} are an incomplete batch", counted(torn, "byte"))))
        }
    }
}

/// An input of the machine.
pub enum What {
    /// A packet or a command.
    Input(Input),
    /// Parameters that were set, as `PARAMETER=VALUE`: what they mean depends on what was set before.
    Set(Vec<String>),
}

/// Something that drove the machine.
pub struct RecordedInput {
    /// Time of the input.
    pub at: Time,
    /// The input.
    pub what: What,
    /// A command as the log has it; empty for packets.
    pub json: String,
}

/// The inputs of a run, in order.
pub struct Inputs {
    path: PathBuf,
    log: ArrowLog,
    batch: std::vec::IntoIter<RecordedInput>,
    rows: u64,
    expected_rows: u64,
    /// Time of the last one, and end of the run: nothing comes before the one or after the other.
    between: [Time; 2],
    /// Number of users.
    users: u16,
    /// True if the headers of packets are told.
    tells_headers: bool,
}

impl Inputs {
    /// The inputs of the run in `folder` with this manifest.
    ///
    /// # Errors
    /// When there is no whole input log.
    pub fn open(folder: &Folder, manifest: &Manifest) -> Result<Inputs> {
        let path = folder.join(INPUT);
        let log = whole(open_inputs(folder).map_err(unreadable)?, &path)?;
        let expected_rows = manifest.results.as_ref().map_or(0, |results| results.log.files.inputs);
        let between = [Time::ZERO, Time::ZERO + duration(manifest)];
        let users = manifest.users.len().max(1) as u16;
        let batch = Vec::new().into_iter();
        Ok(Inputs { path, log, batch, rows: 0, expected_rows, between, users, tells_headers: false })
    }

    /// The same for a link whose lengths depend on contents, if `wants_escapes`.
    ///
    /// # Errors
    /// When the log has no column for them.
    pub fn with_escapes(self, wants_escapes: bool) -> Result<Inputs> {
        if wants_escapes && self.log.schema().field_with_name(ESCAPES).is_err() {
            let what = format!("it lacks the column `{ESCAPES}`, which stuffing = \"counted\" needs");
            return Err(damaged(&self.path, &what));
        }
        Ok(self)
    }

    /// The same for a link with filters of packets, if `has_filters`.
    ///
    /// # Errors
    /// When the log has no column for their answers.
    pub fn with_filters(self, has_filters: bool) -> Result<Inputs> {
        if has_filters && self.log.schema().field_with_name(MATCHES).is_err() {
            return Err(damaged(
                &self.path,
                &format!("it lacks the column `{MATCHES}`, which filters of packets need"),
            ));
        }
        Ok(self)
    }

    /// The same with the headers of packets, if a link `wants_headers`.
    pub fn with_headers(self, wants_headers: bool) -> Inputs {
        Inputs { tells_headers: wants_headers, ..self }
    }

    fn fill(&mut self) -> Result<bool> {
        let Some(batch) = self.log.next() else {
            let found = self.rows;
            if found == self.expected_rows {
                return Ok(false);
            }
            let what = format!("it has {}, the run recorded {}", counted(found, "row"), self.expected_rows);
            return Err(damaged(&self.path, &what));
        };
        let batch = batch.and_then(|batch| InputBatch::new(&batch, &self.path)).map_err(unreadable)?;
        let mut inputs = Vec::new();
        for row in batch.rows() {
            self.rows += 1;
            let input = self.input(&row)?;
            if let Some(RecordedInput { at, .. }) = input {
                let [last, end] = self.between;
                if at < last || at > end {
                    let what = format!(
                        "row {} has time {} ns, which is not between the previous row, {} ns, and the end of the \
                         run, {} ns",
                        self.rows,
                        at.nanos(),
                        last.nanos(),
                        end.nanos()
                    );
                    return Err(damaged(&self.path, &what));
                }
                self.between[0] = at;
            }
            inputs.extend(input);
        }
        self.batch = inputs.into_iter();
        Ok(true)
    }

    /// Input of the machine in `row`, if any.
    fn input(&self, row: &InputRow<'_>) -> Result<Option<RecordedInput>> {
        let at = Time::from_nanos(row.time_ns);
        let broken = |what: &str| damaged(&self.path, &format!("at {} ns {what}", row.time_ns));
        match row.kind {
            InputKind::Offer => {
                let packet =
                    packet(row, self.users, self.tells_headers).ok_or_else(|| broken("an offer lacks a value"))?;
                let octets = row.length.map_or(0, |length| u64::from(length) + FRAMING_OCTETS);
                if let Some(escapes) = row.escapes.filter(|escapes| u64::from(*escapes) > octets) {
                    return Err(broken(&format!("a packet has {escapes} escapes in {octets} octets")));
                }
                Ok(Some(RecordedInput { at, what: What::Input(packet), json: String::new() }))
            }
            InputKind::Command => {
                let json = row.command.unwrap_or_default();
                let command = command(json).ok_or_else(|| broken(&format!("it holds the unknown command `{json}`")))?;
                Ok(Some(RecordedInput { at, what: command, json: json.into() }))
            }
            InputKind::Lost => Err(broken("records were lost because their writer could not keep up")),
            // Neither reached the machine.
            InputKind::Discarded | InputKind::Read => Ok(None),
        }
    }
}

impl Iterator for Inputs {
    type Item = Result<RecordedInput>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(input) = self.batch.next() {
                return Some(Ok(input));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(failure) => return Some(Err(failure)),
            }
        }
    }
}

/// The offer of a packet that has a length, and its headers if they are to be told: no model looks at more.
fn packet(row: &InputRow<'_>, users: u16, tells_headers: bool) -> Option<Input> {
    let header = row.header.filter(|_| tells_headers).unwrap_or_default();
    let pdu = Pdu {
        id: row.pdu?,
        len: row.length?,
        header_len: row.header_len?,
        class: row.class?,
        ecn: *Ecn::ALL.get(usize::from(row.ecn?))?,
        flow: row.flow?,
        // A log without it is of a version of which no model looked at it.
        tuple: row.tuple().unwrap_or_default(),
        // Likewise.
        escapes: row.escapes.map_or(Escapes::UNKNOWN, |count| Escapes::new(count.into())),
        matches: Matches::from_bits(row.matches.unwrap_or_default()),
        headers: HeaderBytes::of(header, row.header_len?),
        ..Pdu::default()
    };
    let port = PortId(row.port.filter(|port| PortId(*port).user() < users)?);
    Some(Input::Offer(port, Item::Pdu(pdu)))
}

/// A command as the input log has it.
fn command(json: &str) -> Option<What> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    if let Some(credit) = airpath_log::credit::read(&value) {
        let (port, credit) = credit?;
        return Some(What::Input(Input::Offer(port, Item::Signal(Signal::Credit(credit)))));
    }
    if let Some(set) = value.get("set") {
        let text = |one: &serde_json::Value| one.as_str().map(str::to_string);
        return Some(What::Set(set.as_array()?.iter().map(text).collect::<Option<_>>()?));
    }
    Some(What::Input(Input::Command(Command::EnterState(Arc::from(value.get("enter_state")?.as_str()?)))))
}

/// The events of a run, in order.
pub struct Events {
    rows: Rows<EventBatch>,
    has_flipped_bits: bool,
    has_kept_bytes: bool,
}

impl Events {
    /// The events of the run in `folder`.
    ///
    /// # Errors
    /// When there is no whole event log.
    pub fn open(folder: &Folder) -> Result<Events> {
        let path = folder.join(EVENTS);
        let log = whole(open_events(folder).map_err(unreadable)?, &path)?;
        let has_flipped_bits = log.schema().field_with_name("flipped_bits").is_ok();
        let has_kept_bytes = log.schema().field_with_name("kept_bytes").is_ok();
        Ok(Events { rows: Rows::new(path, log), has_flipped_bits, has_kept_bytes })
    }

    /// True if the log has the bytes that are left of truncated packets.
    pub fn has_kept_bytes(&self) -> bool {
        self.has_kept_bytes
    }

    /// True if the log has the positions of flipped bits.
    pub fn has_flipped_bits(&self) -> bool {
        self.has_flipped_bits
    }

    /// The next event; `None` after the last.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn next(&mut self) -> Result<Option<EventRow<'_>>> {
        Ok(self.rows.advance().map_err(unreadable)?.and_then(|(batch, row)| batch.row(row)))
    }
}

/// The records of link entities of a run, in order.
pub struct Links {
    rows: Rows<LinkBatch>,
}

impl Links {
    /// The link log of the run in `folder` with this manifest; none if the run kept none.
    ///
    /// # Errors
    /// When the log is not whole, or is no longer there.
    pub fn open(folder: &Folder, manifest: &Manifest) -> Result<Option<Links>> {
        let path = folder.join(LINK);
        let recorded = manifest.results.as_ref().and_then(|results| results.log.files.links);
        if !path.exists() {
            return match recorded {
                None => Ok(None),
                Some(rows) => {
                    Err(damaged(&path, &format!("it is missing, and the run recorded {} in it", counted(rows, "row"))))
                }
            };
        }
        let log = whole(ArrowLog::open(&path).map_err(unreadable)?, &path)?;
        Ok(Some(Links { rows: Rows::new(path, log) }))
    }

    /// The next record; `None` after the last.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn next(&mut self) -> Result<Option<LinkRow<'_>>> {
        Ok(self.rows.advance().map_err(unreadable)?.and_then(|(batch, row)| batch.row(row)))
    }
}
