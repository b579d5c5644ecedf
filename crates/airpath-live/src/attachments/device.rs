// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tunnel devices in the engine's namespace: brought up, and opened as ports.

use super::Plan;
use crate::addressing::End;
use crate::error::{Attempting, Result};
use crate::netlink::{LinkOptions, RouteSocket};
use crate::ports::{Frames, InterfacePort};
use crate::session::SessionEnd;

/// Brings the tunnel device of `end` up, and returns its port and its end. The device has the name of the end; `shown`
/// names the tunnel in errors; `options` are those beside being up and silent.
///
/// # Errors
/// Those of the kernel.
pub(super) fn open(
    plan: &Plan<'_>,
    end: End,
    shown: &str,
    options: LinkOptions,
) -> Result<(InterfacePort, SessionEnd)> {
    let name = end.name();
    let mut socket = plan.engine.run(RouteSocket::open)?.attempting(|| "open a netlink socket".into())?;
    let options = LinkOptions { without_resolution: true, without_link_local: true, up: true, ..options };
    socket
        .link_index(name)
        .and_then(|index| socket.configure_link(index, &options))
        .attempting(|| format!("bring the tunnel {shown} up"))?;
    let frames = Frames { mtu_bytes: plan.mtu_bytes, limit_bytes: plan.mtu_bytes };
    let (port, _) = InterfacePort::open(plan.engine, name, frames, false)?;
    let network = plan.engine.try_clone().attempting(|| "open a namespace again".into())?;
    Ok((port, SessionEnd::of_others(end, name.to_owned(), network, Vec::new())))
}
