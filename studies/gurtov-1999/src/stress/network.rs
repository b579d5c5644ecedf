// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sends datagrams to itself over the loopback interface.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use super::{Kind, Work};

const DATAGRAM_BYTES: usize = 1_400;
const BURST: usize = 32;

struct Network {
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Work for Network {
    fn step(&mut self) -> io::Result<()> {
        let mut datagram = [0; DATAGRAM_BYTES];
        let unless_full = |result: io::Result<usize>| match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(()),
            other => other.map(drop),
        };
        for _ in 0..BURST {
            unless_full(self.sender.send(&datagram))?;
        }
        for _ in 0..BURST {
            unless_full(self.receiver.recv(&mut datagram))?;
        }
        Ok(())
    }
}

fn prepare() -> io::Result<Box<dyn Work>> {
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let (sender, receiver) = (socket()?, socket()?);
    sender.connect(receiver.local_addr()?)?;
    receiver.connect(sender.local_addr()?)?;
    sender.set_nonblocking(true)?;
    receiver.set_nonblocking(true)?;
    Ok(Box::new(Network { sender, receiver }))
}

pub const KIND: Kind =
    Kind { name: "network", what: "sends datagrams of 1400 bytes over the loopback interface", prepare };
