// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Running a scenario: from a request to a folder, a verdict and an exit status.

mod arguments;
pub mod calibrated;
pub mod commands;
pub mod conclude;
pub mod control;
mod ends;
pub mod files;
pub mod from_options;
mod gateway;
pub mod greeting;
mod interfaces;
pub mod interrupt;
pub mod lines;
pub mod link_place;
pub mod links;
pub mod live;
mod live_manifest;
mod loops;
pub mod machine;
pub mod manifest;
pub mod measured;
pub mod outcome;
mod pace;
pub mod ready;
pub mod recording;
pub mod replay;
pub mod replication;
pub mod replications;
mod request;
pub mod round_trip;
mod said;
pub mod sim;
pub mod summary_of_links;
mod users;
pub mod warp;
mod workload;

pub use request::{Gateway, Report, RunRequest};
