// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Defaults that the command line, a request and the facts share.

use airpath_core::Span;

/// Time for the server's command to listen, unless an option says otherwise.
pub const SERVER_TIMEOUT: Span = Span::from_secs(10);
/// Time for the server's command to end by itself, unless an option says otherwise.
pub const SERVER_GRACE: Span = Span::from_millis(200);
/// The MTU of both ends in bytes where neither options nor scenario say otherwise.
pub const DEFAULT_MTU_BYTES: u32 = 1500;
