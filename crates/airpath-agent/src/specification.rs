// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The description of what an agent does, as the runner of the experiment writes it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// An end of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    Client,
    Server,
}

impl End {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            End::Client => "client",
            End::Server => "server",
        }
    }
}

/// All that an agent is told.
#[derive(Debug, Clone, Deserialize)]
pub struct Specification {
    pub end: End,
    /// Folder in which the ends agree.
    pub folder: PathBuf,
    /// True if there is no agent at the server's end.
    pub alone: bool,
    /// Time to wait for the other ends to get ready.
    pub patience_ns: u64,
    /// Length of a program's output beyond which it is thrown away.
    pub output_limit_bytes: u64,
    pub programs: Vec<Program>,
}

/// A program of the workload.
#[derive(Debug, Clone, Deserialize)]
pub struct Program {
    pub name: String,
    /// Pattern of the users at whose ends it runs; none for all of them.
    pub user: Option<String>,
    pub command: Vec<String>,
    /// Its start, after t = 0.
    pub start_ns: u64,
    pub time_limit_ns: u64,
    /// Added to the environment of the agent.
    pub environment: BTreeMap<String, String>,
    pub ready: Option<Ready>,
    /// True if the workload does not wait for it.
    pub service: bool,
    /// Exit statuses that mean success.
    pub exit_status: Vec<i32>,
    /// Its working directory; its output is beside it.
    pub directory: PathBuf,
}

/// Sign that a program is ready: one of the first three.
#[derive(Debug, Clone, Deserialize)]
pub struct Ready {
    pub port: Option<u16>,
    pub command: Option<String>,
    /// Program that ends with status 0 once a line of its input matches what the program's output is to have.
    pub matcher: Option<Vec<String>>,
    pub within_ns: u64,
}
