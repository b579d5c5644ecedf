// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A phase of a recording at one end: sending and receiving.

pub mod backlog;
pub mod hello;
pub mod receive;
pub mod send;
pub mod shared;
pub mod socket;
