// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! IP packets as bytes, and the files in which packets are kept, without any system call: headers
//! read and edited, checksums, flows, captures (pcapng and pcap).
//!
//! Nothing here panics, whatever the bytes are, and nothing but [`capture`], reading an [`expression`], text of
//! [`protocols`] and [`flow::tcp_flow`] allocates: the live datapath reads every packet with the rest.

pub mod capture;
pub mod checksum;
pub mod edit;
pub mod ethernet;
pub mod expression;
pub mod flow;
pub mod headers;
pub mod protocol;
pub mod protocols;

pub use expression::{ExpressionError, PacketFilter};
pub use headers::{Fragment, Headers, TransportHeader};
