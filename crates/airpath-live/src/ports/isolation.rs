// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! An interface kept from its host: two programs of BPF, for what comes and what goes, that let nothing pass. Sockets of
//! ports stand before them, so that a port reads and writes frames all the same, and the host neither answers what is
//! not for it nor sends of its own. The programs go with their descriptors, however a run ends.
//!
//! Needs tcx links (Linux 6.6) and CAP_NET_ADMIN with CAP_BPF.

use std::io;
use std::os::fd::OwnedFd;

use super::bpf::{self, Program};
use crate::error::Result;
use crate::namespaces::NetNamespace;

const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;
/// `r0 = TC_ACT_SHOT; exit`
const DROP_EVERYTHING: [u64; 2] = [0x0000_0002_0000_00b7, 0x95];

/// Keeps an interface from its host until it is dropped.
#[derive(Debug)]
pub(super) struct Isolation {
    _links: [OwnedFd; 2],
}

impl Isolation {
    /// Begins with the interface of this index in `network`, where the kernel can do that; otherwise a note says of the
    /// interface `name` that its host also hears it.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub(super) fn begin(network: &NetNamespace, link_index: u32, name: &str) -> Result<(Option<Self>, Option<String>)> {
        Ok(match network.run(|| Self::attach(link_index))? {
            Ok(isolation) => (Some(isolation), None),
            Err(error) => (
                None,
                Some(format!(
                    "the host itself also hears and answers frames on {name}: the kernel refuses to keep it off \
                     ({error}; Linux 6.6 can); leave the interface without addresses"
                )),
            ),
        })
    }

    fn attach(link_index: u32) -> io::Result<Self> {
        let program =
            bpf::load(&Program { kind: bpf::TRAFFIC_CONTROL, place: 0, flags: 0, instructions: &DROP_EVERYTHING })?;
        let attach = |place| bpf::attach(&program, link_index, place, 0);
        Ok(Self { _links: [attach(TCX_INGRESS)?, attach(TCX_EGRESS)?] })
    }
}
