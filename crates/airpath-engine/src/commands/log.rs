// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath log`: what happened in a run.

mod mahimahi;

use std::io::{ErrorKind, Write};
use std::path::Path;

use airpath_log::manifest::Status;
use airpath_log::read::capture::CaptureLog;
use airpath_log::render::{
    Filter, RenderError, Rendered, TimeRange, events_json, events_table, headers, parse_direction, parse_kind,
    parse_origin, tcp_state_json, tcp_state_table, tcpdump,
};
use airpath_log::show::span;
use airpath_log::{LogError, Manifest, Places, Snaplen, files, folder};
use airpath_packet::PacketFilter;

use crate::cli::LogArgs;
use crate::error::{Failure, Result};
use crate::run::replication::one_run;
use crate::terminal::{Visible, say};

/// Prints it.
///
/// # Errors
/// When the folder is no run's, or a word of the filter is not known.
pub fn run(args: &LogArgs) -> Result<i32> {
    let filter = filter(args)?;
    one_run(&args.dir, "show")?;
    let manifest = Manifest::read(&args.dir);
    // What the logs of another format mean is not for this version to guess.
    if let Err(error @ LogError::Format { .. }) = &manifest {
        return Err(Failure::usage(error.to_string()));
    }
    // A log without a manifest is that of a single path.
    let places =
        manifest.as_ref().map_or_else(|_| Places::of_path(Vec::new(), Vec::new()), |manifest| manifest.places());
    let mut out = Visible::new(std::io::stdout().lock());
    let told = |error: RenderError| match error {
        RenderError::Filter(error) => Failure::usage(error.to_string()),
        RenderError::Log(error) => Failure::log(error),
        RenderError::Output(_) => Failure::unwritable(error.to_string()),
    };
    let range = TimeRange { from_ns: filter.from_ns, to_ns: filter.to_ns };
    let rendered = match (args.tcpdump, args.json, args.mahimahi) {
        _ if args.headers => headers_of(args, &places, &mut out)?.map_err(told)?,
        _ if args.tcp && args.json => tcp_state_json(&args.dir, range, &mut out).map_err(told)?,
        _ if args.tcp => tcp_state_table(&args.dir, range, &mut out).map_err(told)?,
        (_, _, true) => {
            let manifest = manifest.as_ref().map_err(|error| Failure::usage(error.to_string()))?;
            mahimahi::write(args, manifest, filter.direction, &mut out)?
        }
        (true, ..) => tcpdump(&args.dir, &filter, &mut out).map_err(told)?,
        (_, true, _) => events_json(&args.dir, &filter, &mut out).map_err(told)?,
        _ => events_table(&args.dir, &filter, &mut out).map_err(told)?,
    };
    if let (Some(from), Ok(manifest)) = (args.from, &manifest)
        && let Some(results) = manifest.results.as_ref().filter(|results| results.duration_ns < from.nanos())
    {
        let end = span(results.duration_ns);
        say!("airpath: the run ended at {end}: there is nothing from --from '{from}' on");
    }
    if rendered.torn_bytes > 0 {
        say!(
            "airpath: the log was cut off while it was written: its last {} bytes are an incomplete batch and are \
             ignored",
            rendered.torn_bytes
        );
    }
    check_captures(&args.dir, &places);
    for name in folder::leftovers(&args.dir) {
        say!(
            "airpath: {name} is an incomplete copy from a killed process; the original file is intact, and {name} \
             can be removed"
        );
    }
    match manifest {
        Err(_) if !args.dir.join(files::MANIFEST).exists() => {
            say!("airpath: there is no {}: the run was killed before it began, or is beginning", files::MANIFEST)
        }
        Err(error) => say!("airpath: {error}"),
        Ok(manifest) if manifest.status == Status::Running => {
            say!("airpath: the run is still active or was killed: this is the data written so far");
        }
        Ok(manifest) => {
            for reason in manifest.tcp_state.iter().filter(|_| args.tcp).flat_map(|tcp| &tcp.incomplete) {
                say!("airpath: the state of TCP is incomplete: {reason}");
            }
            for reason in manifest.results.iter().flat_map(|results| &results.log.files.incomplete) {
                say!("airpath: the log is incomplete: {reason}");
            }
        }
    }
    Ok(0)
}

/// Prints the headers of one packet; a packet of which no end has a capture is an error.
fn headers_of(
    args: &LogArgs,
    places: &Places,
    out: &mut dyn Write,
) -> Result<std::result::Result<Rendered, RenderError>> {
    let pdu = args.pdu.unwrap_or_default();
    // A reader that goes away must not look like a packet that is not there.
    let mut text = Vec::new();
    let rendered = headers(&args.dir, places, pdu, args.json, &mut text);
    if matches!(rendered, Ok(Rendered { lines: 0, .. })) {
        check_captures(&args.dir, places);
        return Err(Failure::usage(format!(
            "no capture of {} has packet {pdu}; packets are captured with --log packets, the default with --out",
            args.dir.display()
        )));
    }
    match out.write_all(&text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Ok(Err(error.into())),
        _ => Ok(rendered),
    }
}

/// Says what of the captures beside the log cannot be read.
fn check_captures(directory: &Path, places: &Places) {
    for name in places.ports().iter().map(|port| files::capture_name(port)) {
        let path = directory.join(&name);
        if !path.exists() {
            continue;
        }
        match CaptureLog::check(&path) {
            Ok(0) => {}
            Ok(torn_bytes) => say!(
                "airpath: {name} was cut off or damaged: its last {torn_bytes} bytes are not complete packets, and \
                 readers ignore them"
            ),
            Err(error) => say!("airpath: {error}"),
        }
    }
}

fn filter(args: &LogArgs) -> Result<Filter> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        return Err(Failure::usage(format!("--to {to} is before --from {from}: the range is empty")));
    }
    let usage = |error: airpath_log::render::FilterError| Failure::usage(error.to_string());
    Ok(Filter {
        user: args.user.clone(),
        hop: args.hop.clone(),
        bearer: args.bearer.clone(),
        direction: args.direction.as_deref().map(parse_direction).transpose().map_err(usage)?,
        kind: args.kind.as_deref().map(parse_kind).transpose().map_err(usage)?,
        origin: args.origin.as_deref().map(parse_origin).transpose().map_err(usage)?,
        pdu: args.pdu,
        from_ns: args.from.map(airpath_core::Span::nanos),
        to_ns: args.to.map(airpath_core::Span::nanos),
        packets: args.filter.as_deref().map(|text| packet_filter(text, &args.dir)).transpose()?,
    })
}

/// The filter of packets in `text`; one that could match nothing in `folder` is refused.
fn packet_filter(text: &str, folder: &Path) -> Result<PacketFilter> {
    let filter = PacketFilter::parse(text).map_err(|error| Failure::usage(format!("--filter: {error}")))?;
    let Ok(manifest) = Manifest::read(folder) else { return Ok(filter) };
    let is_captured = |port: &String| folder.join(files::capture_name(port)).exists();
    if filter.reads_contents() && !manifest.places().ports().iter().any(is_captured) {
        return Err(Failure::usage(format!(
            "--filter '{text}' looks into contents of packets, and the run has no captures, only headers of packets; record it again with --log packets, or choose by headers, as with 'udp \
             and port 53'"
        )));
    }
    if let (true, Snaplen::Bytes(bytes)) = (filter.reads_contents(), manifest.snaplen) {
        say!(
            "airpath: captures hold the first {bytes} bytes of each packet; what --filter looks for behind them is not found"
        );
    }
    Ok(filter)
}
