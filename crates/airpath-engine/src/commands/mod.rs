// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One file for each command.

pub mod bound;
pub mod calibrate;
pub mod check;
pub mod clocks;
pub mod control;
mod error_process;
pub mod exec;
pub mod facts;
pub mod fading;
pub mod fetch;
pub mod gateway;
mod gather;
mod launch;
pub mod log;
pub mod modes;
mod near;
pub mod profiles;
pub mod record;
pub mod recv;
pub mod relay;
pub mod remote_hop;
pub mod replay;
pub mod schema;
pub mod send;
pub mod shell;
pub mod sim;
mod study;
pub mod timing;
pub mod trace;
pub mod warp;
pub mod wsim;
