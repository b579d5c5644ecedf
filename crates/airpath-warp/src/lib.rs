// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Warp: the live engine, real programs and the real Linux stack in virtual time.
//!
//! A user-mode Linux kernel with time travel is an ordinary process. When all its programs sleep it
//! moves its clock to the next timer instead of waiting, so that a slow link costs only the work that
//! is done. The guest's root is the host's, through hostfs; its first process is the engine itself.
//!
//! On the host: [`build`] makes the kernel once, [`cache`] finds it, [`kernel`] checks it, and
//! [`host`] boots it with a [`job`] and keeps watch. In the guest: [`guest::main`] sets the place up,
//! starts the engine with the job's arguments and hands its end over.

pub mod build;
pub mod cache;
mod console;
mod error;
pub mod guest;
pub mod host;
pub mod job;
pub mod kernel;
mod memory;
pub mod needs;
mod pace;
mod processor;
pub mod recipe;
mod relay;

pub use error::{Result, WarpError};
