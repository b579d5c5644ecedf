// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Writing `tcp.arrow`.

use std::path::Path;

use arrow_schema::SchemaRef;

use super::{Row, batch, schema};
use crate::error::LogError;
use crate::files;
use crate::writer::sink::Sink;
use crate::writer::table::Table;

/// A growing `tcp.arrow`. What is written can be read at once, and after the writer was killed.
pub struct TcpStateLog {
    schema: SchemaRef,
    table: Table,
}

/// State of the finished file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TcpStateFile {
    /// Number of rows.
    pub rows: u64,
    /// Reason for an incomplete file; none for a complete one.
    pub incomplete: Option<String>,
    /// Note for the user.
    pub note: Option<String>,
}

impl TcpStateLog {
    /// A new one in `folder`.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(folder: &Path) -> Result<TcpStateLog, LogError> {
        let schema = schema();
        let table = Table::new(Sink::create(folder.join(files::TCP_STATE))?, &schema);
        Ok(TcpStateLog { schema, table })
    }

    /// Writes `rows`, all or none. A disk that refuses is told by [`TcpStateLog::finish`].
    pub fn write(&mut self, rows: &[Row]) {
        if !rows.is_empty() {
            self.table.write(&batch(&self.schema, rows));
            self.table.sink().check();
        }
    }

    /// Ends the file and brings it into its final format.
    pub fn finish(self) -> TcpStateFile {
        let rows = self.table.rows();
        let (incomplete, note) = self.table.finish();
        TcpStateFile { rows, incomplete, note }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use airpath_core::End;

    use super::*;
    use crate::read::open_tcp_state;
    use crate::tcp_state::{CongestionState, Name, SocketState, Source, rows};

    fn some_rows() -> Vec<Row> {
        let address = |last| IpAddr::from([10, 77, 0, last]);
        let plain = Row::of(End::Client, 1, (address(2), 40_000), (address(1), 80), (7, 8));
        let full = Row {
            time_ns: 5_000,
            source: Source::Closed,
            state: SocketState::Closed,
            congestion_control: Some(Name::new("cubic")),
            congestion_state: Some(CongestionState::Recovery),
            cwnd: Some(10),
            bytes_acked: Some(u64::MAX),
            app_limited: Some(true),
            bbr_pacing_gain: Some(2.89),
            ..plain
        };
        let six = Row { local_address: Ipv6Addr::LOCALHOST.into(), end: End::Server, ..plain };
        vec![plain, full, six]
    }

    fn read(folder: &Path) -> (Vec<Row>, u64) {
        let log = open_tcp_state(folder).unwrap();
        let torn = log.torn_bytes();
        let path = folder.join(files::TCP_STATE);
        (log.flat_map(|batch| rows(&batch.unwrap(), &path).unwrap()).collect(), torn)
    }

    #[test]
    fn rows_read_back_from_the_stream_and_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = TcpStateLog::create(folder.path()).unwrap();
        log.write(&some_rows());
        assert_eq!(read(folder.path()), (some_rows(), 0));
        log.write(&some_rows()[..1]);
        let ended = log.finish();
        assert_eq!(ended, TcpStateFile { rows: 4, incomplete: None, note: None });
        assert_eq!(read(folder.path()).0.len(), 4);
        assert!(open_tcp_state(folder.path()).unwrap().is_final());
    }

    #[test]
    fn a_torn_stream_is_read_up_to_its_last_batch() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(files::TCP_STATE);
        let mut log = TcpStateLog::create(folder.path()).unwrap();
        log.write(&some_rows());
        let whole = std::fs::metadata(&path).unwrap().len();
        log.write(&some_rows());
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(whole + 9).unwrap();
        assert_eq!(read(folder.path()), (some_rows(), 9));
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_null_in_json() {
        let json = serde_json::to_value(some_rows()[1]).unwrap();
        assert_eq!(json["source"], "closed");
        assert_eq!(json["end"], "client");
        assert_eq!(json["congestion_control"], "cubic");
        assert_eq!(json["congestion_state"], "recovery");
        assert_eq!(json["ssthresh"], serde_json::Value::Null);
        let names: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(names.len(), crate::tcp_state::about().len());
    }
}
