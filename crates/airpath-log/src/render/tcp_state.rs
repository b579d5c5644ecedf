// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The state of TCP as an aligned table, or one JSON object a line.

use std::io::{BufWriter, Write};
use std::path::Path;

use super::table::seconds;
use super::{RenderError, Rendered, tolerate};
use crate::files;
use crate::read::open_tcp_state;
use crate::tcp_state::{Row, rows};

/// The part of a run that is shown, in ns since it began, borders included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeRange {
    /// Beginning of the part; none for the beginning of the run.
    pub from_ns: Option<u64>,
    /// End of the part; none for the end of the run.
    pub to_ns: Option<u64>,
}

impl TimeRange {
    fn holds(self, time_ns: u64) -> bool {
        self.from_ns.is_none_or(|from| from <= time_ns) && self.to_ns.is_none_or(|to| time_ns <= to)
    }
}

fn for_each_row(
    folder: &Path,
    range: TimeRange,
    mut show: impl FnMut(&Row) -> Result<(), RenderError>,
) -> Result<Rendered, RenderError> {
    let log = open_tcp_state(folder)?;
    let path = folder.join(files::TCP_STATE);
    let mut rendered = Rendered { lines: 0, torn_bytes: log.torn_bytes() };
    for batch in log {
        for row in rows(&batch?, &path)?.iter().filter(|row| range.holds(row.time_ns)) {
            show(row)?;
            rendered.lines += 1;
        }
    }
    Ok(rendered)
}

/// Writes the state of TCP in the run in `folder` as a table of the columns that are looked at most,
/// times in seconds since the run began or in milliseconds.
///
/// # Errors
/// When the log cannot be read or the text not be written; a closed pipe is no error.
pub fn tcp_state_table(folder: &Path, range: TimeRange, out: &mut dyn Write) -> Result<Rendered, RenderError> {
    tolerate(write_table(folder, range, out))
}

fn write_table(folder: &Path, range: TimeRange, out: &mut dyn Write) -> Result<Rendered, RenderError> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let line = |out: &mut BufWriter<&mut dyn Write>, cells: [&str; 16]| {
        let [
            time,
            end,
            socket,
            source,
            state,
            congestion,
            cwnd,
            ssthresh,
            unacked,
            lost,
            retrans,
            srtt,
            rto,
            rate,
            acked,
            ports,
        ] = cells;
        writeln!(
            out,
            "{time:>15}  {end:<6}  {socket:>6}  {source:<6}  {state:<12}  {congestion:<8}  {cwnd:>6}  {ssthresh:>8}  \
             {unacked:>7}  {lost:>5}  {retrans:>7}  {srtt:>9}  {rto:>9}  {rate:>11}  {acked:>11}  {ports}"
        )
    };
    let mut headed = false;
    let rendered = for_each_row(folder, range, |row| {
        if !headed {
            headed = true;
            let heads = [
                "time/s",
                "end",
                "socket",
                "source",
                "state",
                "congest.",
                "cwnd",
                "ssthresh",
                "unacked",
                "lost",
                "retrans",
                "srtt/ms",
                "rto/ms",
                "deliv/bit/s",
                "acked/B",
                "connection",
            ];
            line(&mut out, heads)?;
        }
        let number = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
        let wide = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let time = |value: Option<u64>| value.map(|ns| format!("{:.3}", ns as f64 / 1e6)).unwrap_or_default();
        let connection = format!(
            "{} > {}",
            socket_name(row.local_address, row.local_port),
            socket_name(row.remote_address, row.remote_port)
        );
        let cells: [&str; 16] = [
            &seconds(row.time_ns),
            row.end.name(),
            &row.socket.to_string(),
            row.source.name(),
            row.state.name(),
            row.congestion_state.map_or("", |state| state.name()),
            &number(row.cwnd),
            &number(row.ssthresh),
            &number(row.unacked),
            &number(row.lost),
            &number(row.total_retrans),
            &time(row.srtt_ns),
            &time(row.rto_ns),
            &wide(row.delivery_rate_bps),
            &wide(row.bytes_acked),
            &connection,
        ];
        line(&mut out, cells)?;
        Ok(())
    })?;
    out.flush()?;
    Ok(rendered)
}

fn socket_name(address: std::net::IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

/// Writes the state of TCP in the run in `folder`, one JSON object a line, with the names of the columns
/// of `tcp.arrow`.
///
/// # Errors
/// When the log cannot be read or the text not be written; a closed pipe is no error.
pub fn tcp_state_json(folder: &Path, range: TimeRange, out: &mut dyn Write) -> Result<Rendered, RenderError> {
    tolerate(write_json(folder, range, out))
}

fn write_json(folder: &Path, range: TimeRange, out: &mut dyn Write) -> Result<Rendered, RenderError> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let rendered = for_each_row(folder, range, |row| {
        serde_json::to_writer(&mut out, row).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(())
    })?;
    out.flush()?;
    Ok(rendered)
}
