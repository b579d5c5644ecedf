// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Streams at work: a thread for each, and one that reports at intervals.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::shutdown;

use crate::clock::{Alarm, monotonic_ns, wait_for};
use crate::datagrams;
use crate::error::{LoadError, Result};
use crate::plan::Work;
use crate::progress::Progress;
use crate::protocol::{Header, Record, unexpected};
use crate::report::{Endpoints, Interval, IntervalStream, ProgressObserver, Received, Sent, StreamReport};
use crate::requests::{self, Requests};
use crate::sockets;
use crate::transfer;

/// Side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that connected and asked.
    Client,
    /// The one that listened.
    Server,
}

/// A stream that is ready to begin.
#[derive(Debug)]
pub struct Stream {
    /// This end of the connection.
    pub end: Side,
    /// The ends of the socket that carries the load.
    pub endpoints: Endpoints,
    /// The connection: it carries the load of TCP, and the words about datagrams.
    pub connection: TcpStream,
    /// The socket of datagrams.
    pub datagrams: Option<UdpSocket>,
    /// Header of the client.
    pub header: Header,
    /// Bytes of the header on the wire.
    pub header_bytes: usize,
    /// Progress of the stream.
    pub progress: Progress,
}

impl Stream {
    /// True if this end sends the load.
    pub fn sends(&self) -> bool {
        (self.end == Side::Client) != self.header.reverse
    }

    /// Ends whatever its thread waits for.
    fn break_off(&self) {
        let _ = self.connection.shutdown(Shutdown::Both);
        if let Some(socket) = &self.datagrams {
            let _ = shutdown(socket.as_raw_fd(), nix::sys::socket::Shutdown::Both);
        }
    }

    fn work(&self) -> io::Result<StreamReport> {
        match (self.header.work, &self.datagrams) {
            (Work::Bulk(extent), _) if self.sends() => self.send_bulk(extent),
            (Work::Bulk(extent), _) => self.receive_bulk(extent),
            (Work::Requests { request_bytes, response_bytes, count }, _) => {
                self.exchange(Requests { request_bytes, response_bytes, count })
            }
            (Work::Datagrams(plan), Some(socket)) if self.sends() => {
                let sent = datagrams::send(socket, &self.connection, &plan, self.header.index, &self.progress)?;
                self.tell(&Record::Sent(sent.clone()))?;
                let received = self.hear_received()?;
                Ok(self.report(Some(sent), Some(received)))
            }
            (Work::Datagrams(plan), Some(socket)) => {
                let (received, sent) = datagrams::receive(socket, &self.connection, &plan, &self.progress)?;
                self.tell(&Record::Received(received))?;
                Ok(self.report(Some(sent), Some(received)))
            }
            (Work::Datagrams(_), None) => Err(io::Error::other("has no socket for datagrams")),
        }
    }

    fn report(&self, sent: Option<Sent>, received: Option<Received>) -> StreamReport {
        StreamReport { endpoints: self.endpoints, sent, received, response_times_ns: Vec::new() }
    }

    fn tell(&self, record: &Record) -> io::Result<()> {
        record.write(&mut &self.connection)
    }

    fn hear_received(&self) -> io::Result<Received> {
        match Record::read(&mut &self.connection)?.0 {
            Record::Received(received) => Ok(received),
            other => Err(unexpected(other)),
        }
    }

    fn note_sender(&self, sent: &mut Sent) {
        if let Some(sample) = sockets::tcp_sample(&self.connection) {
            self.progress.note(sample);
        }
        self.progress.summarize(sent);
        sent.congestion_control = sockets::congestion_control(&self.connection);
    }

    fn send_bulk(&self, extent: crate::plan::Extent) -> io::Result<StreamReport> {
        let prefix = match self.end {
            Side::Client => self.header.encode(),
            Side::Server => Record::Accepted(0).encode(),
        };
        let began_ns = transfer::send(&self.connection, extent, &prefix, &self.progress)?;
        let received = self.hear_received()?;
        let mut sent =
            Sent { bytes: self.progress.counts().bytes, elapsed_ns: monotonic_ns() - began_ns, ..Sent::default() };
        self.note_sender(&mut sent);
        if self.end == Side::Server {
            self.tell(&Record::Sent(sent.clone()))?;
        }
        Ok(self.report(Some(sent), Some(received)))
    }

    fn receive_bulk(&self, extent: crate::plan::Extent) -> io::Result<StreamReport> {
        let taken = match self.end {
            Side::Server => self.header_bytes,
            Side::Client => {
                (&self.connection).write_all(&self.header.encode())?;
                match Record::read(&mut &self.connection)? {
                    (Record::Accepted(_), bytes) => bytes,
                    (other, _) => return Err(unexpected(other)),
                }
            }
        };
        let first_ns = monotonic_ns();
        let last_ns = transfer::receive(&self.connection, extent, taken, &self.progress)?;
        let bytes = self.progress.counts().bytes;
        let received = Received { bytes, elapsed_ns: last_ns.saturating_sub(first_ns), ..Received::default() };
        self.tell(&Record::Received(received))?;
        let sent = match self.end {
            Side::Server => None,
            Side::Client => match Record::read(&mut &self.connection)?.0 {
                Record::Sent(sent) => Some(sent),
                other => return Err(unexpected(other)),
            },
        };
        Ok(self.report(sent, Some(received)))
    }

    fn exchange(&self, plan: Requests) -> io::Result<StreamReport> {
        let began_ns = monotonic_ns();
        let asks = self.end == Side::Client;
        let response_times_ns = if asks {
            requests::ask(&self.connection, &self.header.encode(), plan, &self.progress)?
        } else {
            requests::answer(&self.connection, plan, &self.progress)?;
            Vec::new()
        };
        let elapsed_ns = monotonic_ns() - began_ns;
        let (there, back) =
            (plan.count.saturating_mul(plan.request_bytes), plan.count.saturating_mul(plan.response_bytes));
        let (sent_bytes, received_bytes) = if asks { (there, back) } else { (back, there) };
        let mut sent = Sent { bytes: sent_bytes, elapsed_ns, packets: plan.count, ..Sent::default() };
        self.note_sender(&mut sent);
        let received = Received { bytes: received_bytes, elapsed_ns, packets: plan.count, ..Received::default() };
        Ok(StreamReport { response_times_ns, ..self.report(Some(sent), Some(received)) })
    }
}

/// Lets all streams work and reports every `every`; ends when all have ended, or one has failed.
///
/// # Errors
/// The first failure of a stream.
pub fn run(
    streams: &[Stream],
    every: Option<Duration>,
    observer: &mut dyn ProgressObserver,
) -> Result<(Vec<StreamReport>, Vec<Interval>)> {
    let system = |error: io::Error| LoadError::new(format!("cannot wait for the streams: {error}"));
    let ended =
        EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_SEMAPHORE).map_err(|errno| system(errno.into()))?;
    let alarm = Alarm::new().map_err(system)?;
    let failure: Mutex<Option<LoadError>> = Mutex::new(None);
    let began_ns = monotonic_ns();
    let (reports, intervals) = std::thread::scope(|scope| {
        let workers: Vec<_> = streams
            .iter()
            .map(|stream| {
                let (ended, failure) = (&ended, &failure);
                let failed = move |error: &io::Error| {
                    let midway = LoadError::midway(stream.endpoints.remote, stream.progress.counts().bytes, error);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(midway);
                    streams.iter().for_each(Stream::break_off);
                };
                let work = move || {
                    let report = stream.work().map_err(|error| failed(&error));
                    let _ = ended.write(1);
                    report.ok()
                };
                let worker = std::thread::Builder::new().spawn_scoped(scope, work);
                worker
                    .inspect_err(|error| {
                        failed(error);
                        let _ = ended.write(1);
                    })
                    .ok()
            })
            .collect();
        let intervals = watch(streams, every, began_ns, &ended, &alarm, observer);
        if intervals.is_err() {
            streams.iter().for_each(Stream::break_off);
        }
        let reports: Vec<_> = workers.into_iter().flatten().filter_map(|worker| worker.join().ok().flatten()).collect();
        (reports, intervals)
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None if reports.len() < streams.len() => {
            Err(LoadError::new("a stream's thread failed; this is a bug in Airpath"))
        }
        None => Ok((reports, intervals.map_err(system)?)),
    }
}

/// Reports every `every` until all `streams` have ended.
fn watch(
    streams: &[Stream],
    every: Option<Duration>,
    began_ns: u64,
    ended: &EventFd,
    alarm: &Alarm,
    observer: &mut dyn ProgressObserver,
) -> io::Result<Vec<Interval>> {
    let every_ns = every.map(|every| u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(1));
    let mut meter = Meter::new(streams, began_ns);
    let mut next_ns = every_ns.map(|every_ns| began_ns.saturating_add(every_ns));
    let mut left = streams.len();
    if let Some(next_ns) = next_ns {
        alarm.set(next_ns)?;
    }
    while left > 0 {
        let [one_ended, _] = wait_for([ended.as_fd(), alarm.as_fd()])?;
        let now_ns = monotonic_ns();
        if one_ended {
            ended.read()?;
            left -= 1;
        }
        if let (Some(due_ns), Some(every_ns)) = (next_ns, every_ns)
            && now_ns >= due_ns
            && left > 0
        {
            observer.interval(meter.read(now_ns));
            // Intervals that could not be reported in time are one long one.
            let skipped = (now_ns - due_ns) / every_ns;
            next_ns = Some(due_ns + (skipped + 1) * every_ns);
            alarm.set(next_ns.unwrap_or(due_ns))?;
        }
    }
    if every.is_some() {
        observer.interval(meter.read(monotonic_ns()));
    }
    Ok(meter.intervals)
}

/// Bytes of the load that the other end has acknowledged, of `written_bytes` that a socket took. A socket takes
/// seconds' worth of a slow link at once, which has not gone anywhere yet.
fn arrived_bytes(acknowledged_bytes: u64, stream: &Stream, written_bytes: u64) -> u64 {
    const SYN_BYTES: u64 = 1;
    let header_bytes = if stream.end == Side::Client { stream.header_bytes as u64 } else { 0 };
    if acknowledged_bytes == 0 {
        return written_bytes;
    }
    acknowledged_bytes.saturating_sub(SYN_BYTES + header_bytes).min(written_bytes)
}

/// Takes the differences between one reading of the streams and the next.
struct Meter<'a> {
    streams: &'a [Stream],
    began_ns: u64,
    last_ns: u64,
    last: Vec<crate::progress::Counts>,
    intervals: Vec<Interval>,
}

impl<'a> Meter<'a> {
    fn new(streams: &'a [Stream], began_ns: u64) -> Meter<'a> {
        let last = vec![crate::progress::Counts::default(); streams.len()];
        Meter { streams, began_ns, last_ns: began_ns, last, intervals: Vec::new() }
    }

    fn read(&mut self, now_ns: u64) -> &Interval {
        let mut read = Vec::with_capacity(self.streams.len());
        for (stream, last) in self.streams.iter().zip(&mut self.last) {
            let mut counts = stream.progress.counts();
            let has_state = stream.datagrams.is_none() && (stream.sends() || stream.end == Side::Client);
            let tcp = if has_state { sockets::tcp_sample(&stream.connection) } else { None };
            if let Some(sample) = tcp.filter(|_| stream.sends() && matches!(stream.header.work, Work::Bulk(_))) {
                counts.bytes = arrived_bytes(sample.acknowledged_bytes, stream, counts.bytes).max(last.bytes);
            }
            read.push(IntervalStream {
                bytes: counts.bytes - last.bytes,
                packets: counts.packets - last.packets,
                // What was missing may still have come.
                lost: counts.lost.saturating_sub(last.lost),
                out_of_order: counts.out_of_order - last.out_of_order,
                jitter_ns: counts.jitter_ns,
                retransmits: tcp.map_or(0, |sample| stream.progress.note(sample)),
                tcp: tcp.filter(|_| stream.sends()),
            });
            *last = counts;
        }
        let interval = Interval { from_ns: self.last_ns - self.began_ns, to_ns: now_ns - self.began_ns, streams: read };
        self.last_ns = now_ns;
        self.intervals.push(interval);
        &self.intervals[self.intervals.len() - 1]
    }
}
