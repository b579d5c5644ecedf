// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The names of the files of a run.

use airpath_core::End;

/// The manifest's file name.
pub const MANIFEST: &str = "run.json";
/// The event log's file name.
pub const EVENTS: &str = "events.arrow";
/// The input log's file name.
pub const INPUT: &str = "input.arrow";
/// The link log's file name.
pub const LINK: &str = "link.arrow";
/// The file name of the log of TCP state.
pub const TCP_STATE: &str = "tcp.arrow";

/// The folder of copies of the files that the scenario names.
pub const FILES: &str = "files";

/// The folder of the parts of a run on several hosts.
pub const HOSTS: &str = "hosts";

/// A file or folder that a run leaves.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct RunFile {
    /// Its name.
    pub name: String,
    /// A word for programs.
    pub role: &'static str,
    /// True if a folder that holds it is recognised as a run's.
    pub shows_a_run: bool,
    /// Its content.
    pub meaning: &'static str,
}

/// Every file and folder that a run can leave, the manifest first.
pub fn files() -> Vec<RunFile> {
    let file = |name: &str, role, shows_a_run, meaning| RunFile { name: name.into(), role, shows_a_run, meaning };
    let captures = End::ALL.map(|end| {
        let meaning = match end {
            End::Client => "The packets at the client's port, as they came and as they left.",
            End::Server => "The packets at the server's port, as they came and as they left.",
        };
        file(&capture_name(end.name()), "capture", true, meaning)
    });
    let mut files = vec![
        file(MANIFEST, "manifest", true, "Settings of the run, its counters, its verdict."),
        file(EVENTS, "events", true, "Events in the link, one row each."),
        file(INPUT, "inputs", false, "Inputs of the link, one row each; a replay plays them again."),
        file(LINK, "link", false, "Frames and state of link entities that have a protocol of their own, one row each."),
        file(TCP_STATE, "tcp_state", false, "State of the TCP connections in the kernels of both ends."),
    ];
    files.extend(captures);
    files.push(file(FILES, "copies", false, "Copies of the files that the scenario names."));
    files
}

/// The file name of the capture at the port called `name`.
pub fn capture_name(name: &str) -> String {
    format!("{name}.pcapng")
}
