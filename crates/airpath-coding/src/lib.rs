// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Codes that correct errors, over bytes.

mod field;
mod powers;
pub mod reed_solomon;

pub use reed_solomon::{BLOCK_BYTES, ReedSolomon, Uncorrectable};
