// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Queue disciplines of interfaces.

use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcStats2};

use super::RouteSocket;

/// A queue discipline of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDiscipline {
    /// Its name, such as `tbf`.
    pub kind: String,
    /// True if somebody put it there; the kernel's own have no handle.
    pub is_set: bool,
    /// Packets that it dropped.
    pub drops: u64,
}

impl RouteSocket {
    /// The queue disciplines of an interface, outwards and inwards; without those inside others.
    ///
    /// # Errors
    /// The kernel's.
    pub fn queue_disciplines(&mut self, link_index: u32) -> io::Result<Vec<QueueDiscipline>> {
        let answers = match self.dump(RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default())) {
            // A kernel without queue disciplines (CONFIG_NET_SCHED) has none on any interface.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Vec::new(),
            other => other?,
        };
        let of_link = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewQueueDiscipline(found) if found.header.index == link_index as i32 => Some(found),
            _ => None,
        });
        Ok(of_link.filter(|found| found.header.parent.major == u16::MAX).map(|found| read(&found)).collect())
    }
}

fn read(found: &TcMessage) -> QueueDiscipline {
    let mut discipline = QueueDiscipline { kind: String::new(), is_set: found.header.handle.major != 0, drops: 0 };
    for attribute in &found.attributes {
        match attribute {
            TcAttribute::Kind(kind) => discipline.kind.clone_from(kind),
            TcAttribute::Stats2(all) => {
                let drops = all.iter().filter_map(|stats| match stats {
                    TcStats2::Queue(queue) => Some(u64::from(queue.drops)),
                    _ => None,
                });
                discipline.drops += drops.sum::<u64>();
            }
            _ => {}
        }
    }
    discipline
}
