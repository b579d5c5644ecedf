// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The report of a transfer as JSON, with the keys of iperf3 so that its readers read it. What iperf3
//! has no key for (response times, duplicates, the seed) has a key of its own.

use airpath_load::{
    Arrivals, Endpoints, Extent, Interval, IntervalStream, Received, Report, Sent, StreamReport, Transport, Work,
};
use serde_json::{Map, Value, json};

use super::text::ResponseTimes;

/// The whole document. `host` and `port` are those that the client was given.
pub fn document(report: &Report, target: Option<(&str, u16)>) -> Value {
    json!({
        "start": start(report, target),
        "intervals": report.intervals.iter().map(|one| interval(report, one)).collect::<Vec<_>>(),
        "end": end(report),
    })
}

/// The document of a transfer that failed.
pub fn failed(message: &str) -> Value {
    json!({"start": {"version": version()}, "intervals": [], "end": {}, "error": message})
}

fn version() -> String {
    format!("airpath {}", env!("CARGO_PKG_VERSION"))
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn bits_per_second(bytes: u64, nanos: u64) -> f64 {
    if nanos == 0 { 0.0 } else { bytes as f64 * 8e9 / nanos as f64 }
}

fn start(report: &Report, target: Option<(&str, u16)>) -> Value {
    let began_s = report.began.as_secs();
    let test_start = test_start(report);
    let mut start = json!({
        "connected": report.streams.iter().map(|stream| connected(stream.endpoints)).collect::<Vec<_>>(),
        "version": version(),
        "system_info": std::fs::read_to_string("/proc/version").unwrap_or_default().trim(),
        "timestamp": {"time": http_date(began_s), "timesecs": began_s},
        "tcp_mss_default": report.mss_bytes,
        "target_bitrate": test_start["target_bitrate"],
        "test_start": test_start,
    });
    if let Some((host, port)) = target {
        start["connecting_to"] = json!({"host": host, "port": port});
        start["connect_seconds"] = json!(seconds(report.connecting_ns));
    }
    start
}

fn connected(ends: Endpoints) -> Value {
    json!({
        "socket": ends.socket,
        "local_host": ends.local.ip().to_string(),
        "local_port": ends.local.port(),
        "remote_host": ends.remote.ip().to_string(),
        "remote_port": ends.remote.port(),
    })
}

fn test_start(report: &Report) -> Value {
    let plan = &report.plan;
    let (protocol, block_bytes) = match plan.work {
        Work::Datagrams(datagrams) => match datagrams.transport {
            Transport::Udp => ("UDP", u64::from(datagrams.length_bytes)),
            Transport::UdpLite { .. } => ("UDP-Lite", u64::from(datagrams.length_bytes)),
        },
        Work::Bulk(_) => ("TCP", 16 * 1024),
        Work::Requests { request_bytes, .. } => ("TCP", request_bytes),
    };
    let (mut duration_s, mut bytes, mut rate) = (0, 0, 0);
    let mut more = Map::new();
    let extent = match plan.work {
        Work::Bulk(extent) => Some(extent),
        Work::Datagrams(datagrams) => {
            rate = datagrams.rate_bits_per_second;
            if let Arrivals::Poisson { seed } = datagrams.arrivals {
                more.insert("poisson_seed".into(), json!(seed));
            }
            if let Transport::UdpLite { coverage_bytes } = datagrams.transport {
                more.insert("coverage".into(), json!(coverage_bytes));
            }
            Some(datagrams.extent)
        }
        Work::Requests { request_bytes, response_bytes, count } => {
            more.insert("request".into(), json!(request_bytes));
            more.insert("response".into(), json!(response_bytes));
            more.insert("count".into(), json!(count));
            None
        }
    };
    match extent {
        Some(Extent::Bytes(number)) => bytes = number,
        Some(Extent::Time(time)) => duration_s = time.as_secs(),
        None => {}
    }
    let mut start = json!({
        "protocol": protocol,
        "num_streams": plan.parallel,
        "blksize": block_bytes,
        "omit": 0,
        "duration": duration_s,
        "bytes": bytes,
        "blocks": 0,
        "reverse": u8::from(plan.reverse),
        "tos": 0,
        "target_bitrate": rate,
    });
    if let Value::Object(start) = &mut start {
        start.extend(more);
    }
    start
}

/// Common fields of every part: times, bytes, rate and sender.
fn part(from_ns: u64, to_ns: u64, bytes: u64, sender: bool) -> Map<String, Value> {
    let span_ns = to_ns - from_ns;
    Map::from_iter([
        ("start".to_string(), json!(seconds(from_ns))),
        ("end".to_string(), json!(seconds(to_ns))),
        ("seconds".to_string(), json!(seconds(span_ns))),
        ("bytes".to_string(), json!(bytes)),
        ("bits_per_second".to_string(), json!(bits_per_second(bytes, span_ns))),
        ("sender".to_string(), json!(sender)),
    ])
}

fn with(mut part: Map<String, Value>, more: Value) -> Value {
    if let Value::Object(more) = more {
        part.extend(more);
    }
    Value::Object(part)
}

fn is_datagrams(report: &Report) -> bool {
    matches!(report.plan.work, Work::Datagrams(_))
}

fn percent(lost: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { lost as f64 * 100.0 / all as f64 }
}

/// Counts of datagrams at the receiver.
fn losses(packets: u64, lost: u64, out_of_order: u64, jitter_ns: u64) -> Value {
    json!({
        "jitter_ms": jitter_ns as f64 / 1e6,
        "lost_packets": lost,
        "packets": packets + lost,
        "lost_percent": percent(lost, packets + lost),
        "out_of_order": out_of_order,
    })
}

fn interval(report: &Report, interval: &Interval) -> Value {
    let (from_ns, to_ns) = (interval.from_ns, interval.to_ns);
    let one = |stream: &IntervalStream, ends: Option<Endpoints>| {
        let mut part = part(from_ns, to_ns, stream.bytes, report.sends);
        part.insert("omitted".into(), json!(false));
        if let Some(ends) = ends {
            part.insert("socket".into(), json!(ends.socket));
        }
        if is_datagrams(report) {
            return match report.sends {
                true => with(part, json!({"packets": stream.packets})),
                false => with(part, losses(stream.packets, stream.lost, stream.out_of_order, stream.jitter_ns)),
            };
        }
        if stream.tcp.is_some() || (ends.is_none() && report.sends) {
            part.insert("retransmits".into(), json!(stream.retransmits));
        }
        match (stream.tcp, ends) {
            (Some(tcp), Some(_)) => with(
                part,
                json!({
                    "snd_cwnd": tcp.congestion_window_bytes,
                    "snd_wnd": tcp.send_window_bytes,
                    "rtt": tcp.rtt_us,
                    "rttvar": tcp.rtt_variation_us,
                    "pmtu": tcp.path_mtu_bytes,
                }),
            ),
            _ => Value::Object(part),
        }
    };
    let mut all = IntervalStream::default();
    for stream in &interval.streams {
        all.bytes += stream.bytes;
        all.packets += stream.packets;
        all.lost += stream.lost;
        all.out_of_order += stream.out_of_order;
        all.retransmits += stream.retransmits;
        // As iperf3 does: the mean over the streams.
        all.jitter_ns += stream.jitter_ns / interval.streams.len() as u64;
    }
    let streams: Vec<Value> = interval
        .streams
        .iter()
        .zip(&report.streams)
        .map(|(stream, whole)| one(stream, Some(whole.endpoints)))
        .collect();
    json!({"streams": streams, "sum": one(&all, None)})
}

fn sent_part(report: &Report, sent: &Sent, ends: Option<Endpoints>) -> Value {
    let mut part = part(0, sent.elapsed_ns, sent.bytes, report.sends);
    if is_datagrams(report) {
        part.insert("packets".into(), json!(sent.packets));
        return with(part, json!({"jitter_ms": 0.0, "lost_packets": 0, "lost_percent": 0.0}));
    }
    part.insert("retransmits".into(), json!(sent.retransmits));
    let Some(ends) = ends else { return Value::Object(part) };
    with(
        part,
        json!({
            "socket": ends.socket,
            "max_snd_cwnd": sent.max_congestion_window_bytes,
            "max_snd_wnd": sent.max_send_window_bytes,
            "max_rtt": sent.max_rtt_us,
            "min_rtt": sent.min_rtt_us,
            "mean_rtt": sent.mean_rtt_us,
        }),
    )
}

fn received_part(report: &Report, received: &Received, ends: Option<Endpoints>) -> Value {
    let mut part = part(0, received.elapsed_ns, received.bytes, report.sends);
    if let Some(ends) = ends {
        part.insert("socket".into(), json!(ends.socket));
    }
    if is_datagrams(report) {
        part.insert("duplicates".into(), json!(received.duplicates));
        let Received { packets, lost, out_of_order, jitter_ns, .. } = *received;
        return with(part, losses(packets, lost, out_of_order, jitter_ns));
    }
    Value::Object(part)
}

fn stream(report: &Report, stream: &StreamReport) -> Value {
    let ends = Some(stream.endpoints);
    if is_datagrams(report) {
        return json!({"udp": stream.received.as_ref().map(|received| received_part(report, received, ends))});
    }
    let mut both = Map::new();
    if let Some(sent) = &stream.sent {
        both.insert("sender".into(), sent_part(report, sent, ends));
    }
    if let Some(received) = &stream.received {
        both.insert("receiver".into(), received_part(report, received, ends));
    }
    if let Some(times) = ResponseTimes::of(&stream.response_times_ns) {
        let times = json!({
            "min_seconds": seconds(times.min_ns),
            "mean_seconds": times.mean_ns / 1e9,
            "p50_seconds": seconds(times.p50_ns),
            "p99_seconds": seconds(times.p99_ns),
            "max_seconds": seconds(times.max_ns),
            "seconds": stream.response_times_ns.iter().map(|time| seconds(*time)).collect::<Vec<_>>(),
        });
        both.insert("response_times".into(), times);
    }
    Value::Object(both)
}

fn end(report: &Report) -> Value {
    let all_sent = report.streams.iter().map(|stream| stream.sent.as_ref()).collect::<Option<Vec<_>>>();
    let all_received = report.streams.iter().map(|stream| stream.received.as_ref()).collect::<Option<Vec<_>>>();
    let mut end = Map::new();
    end.insert("streams".into(), report.streams.iter().map(|one| stream(report, one)).collect());
    if let Some(sent) = all_sent.filter(|sent| !sent.is_empty()) {
        if !is_datagrams(report) {
            end.insert("sender_tcp_congestion".into(), json!(sent[0].congestion_control));
        }
        let mut sum = Sent::default();
        for one in sent {
            sum.bytes += one.bytes;
            sum.packets += one.packets;
            sum.retransmits += one.retransmits;
            sum.elapsed_ns = sum.elapsed_ns.max(one.elapsed_ns);
        }
        end.insert("sum_sent".into(), sent_part(report, &sum, None));
    }
    if let Some(received) = all_received {
        let mut sum = Received::default();
        for one in &received {
            sum.bytes += one.bytes;
            sum.packets += one.packets;
            sum.lost += one.lost;
            sum.out_of_order += one.out_of_order;
            sum.duplicates += one.duplicates;
            sum.jitter_ns += one.jitter_ns / received.len() as u64;
            sum.elapsed_ns = sum.elapsed_ns.max(one.elapsed_ns);
        }
        let sum = received_part(report, &sum, None);
        if is_datagrams(report) {
            end.insert("sum".into(), sum.clone());
        }
        end.insert("sum_received".into(), sum);
    }
    Value::Object(end)
}

/// A time as in HTTP (RFC 9110, section 5.6.7), which is how iperf3 writes it.
fn http_date(unix_s: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [(&str, u64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut name = "Dec";
    for (month, length) in MONTHS {
        let length = length + u64::from(month == "Feb" && leap(year));
        if day < length {
            name = month;
            break;
        }
        day -= length;
    }
    let weekday = DAYS[(days % 7) as usize];
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{weekday}, {:02} {name} {year} {hour:02}:{minute:02}:{second:02} GMT", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_in_http() {
        // The first is RFC 9110's own example; the others are of `date -u -R -d @N`.
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(1_735_689_599), "Tue, 31 Dec 2024 23:59:59 GMT");
    }
}
