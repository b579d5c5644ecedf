// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Declarations of the engine for other programs: units, words of the logs, columns, verdicts, files, limits,
//! commands. Each is declared where the engine uses it; here all of them become one document,
//! `python/airpath/facts.json`, so that nothing is written down twice.

mod commands;
mod units;

use std::collections::BTreeMap;

use airpath_core::event::{CauseClass, Stage};
use airpath_core::limits::{LEAST_MTU_BYTES, LONGEST_PACKET_BYTES};
use airpath_core::{Cause, Direction, EventKind, Origin};
use airpath_endpoints::{FIRST_CLIENT_PORT, FIRST_SERVER_PORT};
use airpath_log::files::{self, RunFile};
use airpath_log::tables::ColumnAbout;
use airpath_log::tables::events::EventColumns;
use airpath_log::tables::inputs::InputColumns;
use airpath_log::tables::links::LinkColumns;
use airpath_log::verdict::Code;
use airpath_log::{Grade, LatenessBound, manifest, tcp_state};
use serde::Serialize;

use crate::control::{folder as sockets, protocol};
use crate::defaults::{DEFAULT_MTU_BYTES, SERVER_GRACE, SERVER_TIMEOUT};
use crate::status;

/// All of them.
#[derive(Serialize)]
struct Facts {
    units: units::Units,
    directions: Vec<&'static str>,
    origins: Vec<&'static str>,
    stages: Vec<Word>,
    event_kinds: Vec<Word>,
    cause_classes: Vec<Word>,
    causes: Vec<CauseFacts>,
    tables: BTreeMap<&'static str, Vec<ColumnAbout>>,
    verdicts: Vec<Word>,
    reasons: Vec<Word>,
    files: Vec<RunFile>,
    run_format_version: u32,
    exit_statuses: Vec<ExitStatus>,
    limits: Limits,
    first_ports: FirstPorts,
    defaults: Defaults,
    control: Control,
    commands: Vec<commands::Command>,
}

/// A word of the logs, and what it means.
#[derive(Serialize)]
struct Word {
    name: &'static str,
    meaning: &'static str,
}

/// A cause of drops.
#[derive(Serialize)]
struct CauseFacts {
    name: &'static str,
    meaning: &'static str,
    text: &'static str,
    class: &'static str,
    shape: &'static str,
    colour: &'static str,
}

/// An exit status of the engine; a command behind a link has its own.
#[derive(Serialize)]
struct ExitStatus {
    name: &'static str,
    status: i32,
    meaning: &'static str,
}

/// Limits that hold for every command.
#[derive(Serialize)]
struct Limits {
    least_mtu_bytes: u32,
    longest_packet_bytes: u32,
}

/// Ports of flow 0 in virtual time; those of other flows count up from there.
#[derive(Serialize)]
struct FirstPorts {
    client: u16,
    server: u16,
}

/// Values that apply when neither options nor scenario say otherwise.
#[derive(Serialize)]
struct Defaults {
    mtu_bytes: u32,
    server_timeout: String,
    server_grace: String,
    lateness_bound: String,
}

/// Location and version of the control sockets of active runs.
#[derive(Serialize)]
struct Control {
    version: u32,
    folder_in_runtime: &'static str,
    folder_in_temporary: &'static str,
    socket_suffix: &'static str,
}

/// The document, as text that ends with a line break.
pub fn document() -> String {
    let text = serde_json::to_string_pretty(&facts()).expect("facts are plain data");
    text + "\n"
}

fn facts() -> Facts {
    Facts {
        units: units::units(),
        directions: Direction::ALL.map(Direction::name).to_vec(),
        origins: Origin::ALL.map(Origin::name).to_vec(),
        stages: Stage::ALL.iter().map(|one| Word { name: one.name(), meaning: one.description() }).collect(),
        event_kinds: EventKind::ALL.iter().map(|one| Word { name: one.name(), meaning: one.description() }).collect(),
        cause_classes: classes(),
        causes: causes(),
        tables: BTreeMap::from([
            (files::EVENTS, EventColumns::about()),
            (files::INPUT, InputColumns::about()),
            (files::LINK, LinkColumns::about()),
            (files::TCP_STATE, tcp_state::about()),
        ]),
        verdicts: Grade::ALL.map(|one| Word { name: one.name(), meaning: one.description() }).into(),
        reasons: Code::ALL.iter().map(|one| Word { name: one.name(), meaning: one.description() }).collect(),
        files: files::files(),
        run_format_version: manifest::FORMAT_VERSION,
        exit_statuses: exit_statuses(),
        limits: Limits { least_mtu_bytes: LEAST_MTU_BYTES, longest_packet_bytes: LONGEST_PACKET_BYTES },
        first_ports: FirstPorts { client: FIRST_CLIENT_PORT, server: FIRST_SERVER_PORT },
        defaults: Defaults {
            mtu_bytes: DEFAULT_MTU_BYTES,
            server_timeout: SERVER_TIMEOUT.to_string(),
            server_grace: SERVER_GRACE.to_string(),
            lateness_bound: LatenessBound::USUAL.to_string(),
        },
        control: Control {
            version: protocol::VERSION,
            folder_in_runtime: sockets::IN_RUNTIME,
            folder_in_temporary: sockets::IN_TEMPORARY,
            socket_suffix: sockets::SOCKET_SUFFIX,
        },
        commands: commands::commands(),
    }
}

fn classes() -> Vec<Word> {
    let real = CauseClass::ALL.iter().filter(|class| **class != CauseClass::None);
    real.map(|one| Word { name: one.name(), meaning: one.description() }).collect()
}

fn causes() -> Vec<CauseFacts> {
    let real = Cause::ALL.iter().filter(|cause| **cause != Cause::None);
    let facts = |cause: &Cause| {
        let (shape, colour) = cause.mark();
        CauseFacts {
            name: cause.name(),
            meaning: cause.description(),
            text: cause.text(),
            class: cause.class().name(),
            shape: shape.name(),
            colour: colour.name(),
        }
    };
    real.map(facts).collect()
}

fn exit_statuses() -> Vec<ExitStatus> {
    status::ALL.iter().map(|one| ExitStatus { name: one.name, status: one.status, meaning: one.meaning }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_complete() {
        let document: serde_json::Value = serde_json::from_str(&document()).unwrap();
        for (name, fact) in document.as_object().unwrap() {
            let is_empty =
                fact.as_array().is_some_and(Vec::is_empty) || fact.as_object().is_some_and(|of| of.is_empty());
            assert!(!is_empty, "{name}");
        }
        assert_eq!(document["causes"].as_array().unwrap().len(), Cause::COUNT - 1);
        let columns = document["tables"]["events.arrow"].as_array().unwrap();
        assert!(columns.iter().any(|column| column["name"] == "kept_bytes" && column["type"] == "uint32"));
    }
}
