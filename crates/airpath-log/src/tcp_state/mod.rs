// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `tcp.arrow`: what the kernels of both ends know of their TCP connections, beside the packets.
//!
//! The columns are declared once, in [`Row`]; schema, writer, reader and JSON follow from there.

mod cell;
mod log;
mod words;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use airpath_core::End;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::error::LogError;
use crate::read::columns::Columns;
use crate::tables::ColumnAbout;
use cell::Cell;

pub use cell::Name;
pub use log::{TcpStateFile, TcpStateLog};
pub use words::{CongestionState, SocketState, Source};

/// Declares the row, and with it the table of such rows.
macro_rules! row {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty,)+) => {
        /// State of one socket at one time. What the kernel did not tell is none.
        #[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
        pub struct Row {
            $($(#[doc = $doc])+ pub $name: $type,)+
        }

        /// The columns, for those who read the table with other tools.
        pub fn about() -> Vec<ColumnAbout> {
            vec![$({
                let (data_type, nullable) = (<$type as Cell>::data_type(), <$type as Cell>::NULLABLE);
                ColumnAbout::new(stringify!($name), &data_type, nullable, &[$($doc),+])
            },)+]
        }

        /// The schema of `tcp.arrow`.
        pub fn schema() -> SchemaRef {
            Arc::new(Schema::new(vec![
                $(Field::new(stringify!($name), <$type as Cell>::data_type(), <$type as Cell>::NULLABLE)),+
            ]))
        }

        /// The rows as a batch of that schema.
        pub(crate) fn batch(schema: &SchemaRef, rows: &[Row]) -> RecordBatch {
            let columns: Vec<ArrayRef> =
                vec![$(<$type as Cell>::array(rows.iter().map(|row| row.$name).collect())),+];
            RecordBatch::try_new(schema.clone(), columns).expect("the columns are those of the schema")
        }

        /// The rows of `batch`, which came from the file at `path`. A column that may be empty may also
        /// be missing, as in the logs of other versions.
        ///
        /// # Errors
        /// When the columns are not those of `tcp.arrow`.
        pub fn rows(batch: &RecordBatch, path: &Path) -> Result<Vec<Row>, LogError> {
            let columns = Columns { batch, path };
            $(let $name = <$type as Cell>::column(&columns, stringify!($name))?;)+
            Ok((0..batch.num_rows()).map(|row| Row { $($name: $name[row]),+ }).collect())
        }
    };
}

row! {
    /// Time in ns since the run began.
    time_ns: u64,
    /// Source of the information in the kernel.
    source: Source,
    /// End of the socket.
    end: End,
    /// The socket's number in this run, from 1, in the order in which they were first seen.
    socket: u32,
    /// Its state.
    state: SocketState,
    /// Its own address.
    local_address: IpAddr,
    /// Its own port.
    local_port: u16,
    /// The address it is connected to.
    remote_address: IpAddr,
    /// The port it is connected to.
    remote_port: u16,
    /// The flow of the packets it sends, as in `events.arrow`.
    flow: u32,
    /// The flow of the packets it receives.
    reverse_flow: u32,
    /// Its congestion control.
    congestion_control: Option<Name>,
    /// The state of its congestion control.
    congestion_state: Option<CongestionState>,
    /// Congestion window, in segments.
    cwnd: Option<u32>,
    /// Slow start threshold, in segments; none while it is infinite.
    ssthresh: Option<u32>,
    /// Maximum segment size of what it sends, in bytes.
    mss: Option<u32>,
    /// Smoothed round-trip time; none before the first measurement.
    srtt_ns: Option<u64>,
    /// Variation of the round-trip time; none before the first measurement.
    rttvar_ns: Option<u64>,
    /// Least round-trip time of the kernel's window; none before the first measurement.
    min_rtt_ns: Option<u64>,
    /// Retransmission timeout, with its backoff.
    rto_ns: Option<u64>,
    /// Number of times that the timeout has been doubled.
    backoff: Option<u32>,
    /// Segments sent and not acknowledged.
    unacked: Option<u32>,
    /// Of these, segments that were selectively acknowledged.
    sacked: Option<u32>,
    /// Of these, segments taken for lost.
    lost: Option<u32>,
    /// Retransmitted segments that are under way.
    retrans: Option<u32>,
    /// Retransmitted segments of the connection.
    total_retrans: Option<u32>,
    /// Bytes acknowledged.
    bytes_acked: Option<u64>,
    /// Bytes received.
    bytes_received: Option<u64>,
    /// Bytes sent, retransmissions included.
    bytes_sent: Option<u64>,
    /// Bytes retransmitted.
    bytes_retrans: Option<u64>,
    /// The newest measurement of the rate of delivery, in bit/s; none before the first.
    delivery_rate_bps: Option<u64>,
    /// True if that measurement was limited by the application.
    app_limited: Option<bool>,
    /// The pacing rate, in bit/s; none where there is none.
    pacing_rate_bps: Option<u64>,
    /// The window that the peer advertises, in bytes.
    snd_wnd: Option<u32>,
    /// The window that is advertised to the peer, in bytes.
    rcv_wnd: Option<u32>,
    /// Time for which it had data to send or under way.
    busy_ns: Option<u64>,
    /// Part of that in which the peer's window was the limit.
    rwnd_limited_ns: Option<u64>,
    /// Part of that in which the send buffer was the limit.
    sndbuf_limited_ns: Option<u64>,
    /// Bytes in the send buffer that were never sent.
    notsent_bytes: Option<u32>,
    /// Number of segments by which packets are expected to be reordered.
    reordering: Option<u32>,
    /// Duplicates that the peer reported (RFC 2883).
    dsack_dups: Option<u32>,
    /// Segments delivered.
    delivered: Option<u32>,
    /// Of these, segments that arrived marked (congestion experienced).
    delivered_ce: Option<u32>,
    /// BBR's estimate of the bandwidth, in bit/s.
    bbr_bandwidth_bps: Option<u64>,
    /// BBR's estimate of the least round-trip time.
    bbr_min_rtt_ns: Option<u64>,
    /// BBR's pacing gain.
    bbr_pacing_gain: Option<f64>,
    /// BBR's gain of the congestion window.
    bbr_cwnd_gain: Option<f64>,
    /// The first sequence number that is not acknowledged; of acknowledgements only.
    snd_una: Option<u32>,
    /// The sequence number to be sent next; of acknowledgements only.
    snd_nxt: Option<u32>,
}

impl Row {
    /// A row that tells nothing but whose it is.
    pub fn of(end: End, socket: u32, local: (IpAddr, u16), remote: (IpAddr, u16), flows: (u32, u32)) -> Row {
        Row {
            time_ns: 0,
            source: Source::Sample,
            end,
            socket,
            state: SocketState::Established,
            local_address: local.0,
            local_port: local.1,
            remote_address: remote.0,
            remote_port: remote.1,
            flow: flows.0,
            reverse_flow: flows.1,
            congestion_control: None,
            congestion_state: None,
            cwnd: None,
            ssthresh: None,
            mss: None,
            srtt_ns: None,
            rttvar_ns: None,
            min_rtt_ns: None,
            rto_ns: None,
            backoff: None,
            unacked: None,
            sacked: None,
            lost: None,
            retrans: None,
            total_retrans: None,
            bytes_acked: None,
            bytes_received: None,
            bytes_sent: None,
            bytes_retrans: None,
            delivery_rate_bps: None,
            app_limited: None,
            pacing_rate_bps: None,
            snd_wnd: None,
            rcv_wnd: None,
            busy_ns: None,
            rwnd_limited_ns: None,
            sndbuf_limited_ns: None,
            notsent_bytes: None,
            reordering: None,
            dsack_dups: None,
            delivered: None,
            delivered_ce: None,
            bbr_bandwidth_bps: None,
            bbr_min_rtt_ns: None,
            bbr_pacing_gain: None,
            bbr_cwnd_gain: None,
            snd_una: None,
            snd_nxt: None,
        }
    }

    /// True if it equals `other` in everything but the time. How long a sender has been busy, and with what,
    /// grows with the clock alone and is no news.
    pub fn says_the_same_as(&self, other: &Row) -> bool {
        Row {
            time_ns: other.time_ns,
            busy_ns: other.busy_ns,
            rwnd_limited_ns: other.rwnd_limited_ns,
            sndbuf_limited_ns: other.sndbuf_limited_ns,
            ..*self
        } == *other
    }
}
