// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Addresses and interface names of links, chosen so that links inside links
//! and links side by side never clash, and can all be routed.
//!
//! Which addresses the link of a number has, [`airpath_core::end`] says. Every
//! run owns a block of numbers: the first is its own link, the rest it hands
//! out in eighths to runs nested in it. So one route from the
//! enclosing namespace covers everything below a link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

pub use airpath_core::End;
use airpath_core::end::{IPV4_PREFIX_LENGTH, IPV6_PREFIX_LENGTH, LINK_NUMBER_BITS, ipv4_network, ipv6_network};

use crate::error::{LiveError, Result};

/// Tells commands how many links lie between them and the outermost run.
pub const DEPTH_VARIABLE: &str = "AIRPATH_DEPTH";

/// Tells a nested run the block of link numbers that it chooses its own from.
pub const BLOCK_VARIABLE: &str = "AIRPATH_LINK_BLOCK";

/// Below this MTU the kernel takes IPv6 off an interface (RFC 8200, section 5).
pub const IPV6_MINIMUM_MTU_BYTES: u32 = 1280;

/// Bits by which a nested block is smaller.
const NESTING_BITS: u8 = 3;

/// A block of link numbers: `first` to `first + 2^bits - 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Block {
    first: u16,
    bits: u8,
}

/// A run's link, with the block of numbers that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link {
    block: Block,
    depth: u8,
    index: u8,
    user: u16,
}

/// Position of a run among the runs that enclose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nesting {
    /// The block of the run around this one; none for the outermost.
    enclosing: Option<Block>,
    depth: u8,
}

impl Nesting {
    /// No run around this one, or none that it is connected to.
    pub const OUTERMOST: Self = Self { enclosing: None, depth: 0 };

    /// True if there is a run around this one.
    pub fn is_nested(self) -> bool {
        self.enclosing.is_some()
    }

    /// Nesting according to the environment, if this process is in the network that it names. Variables may
    /// have been carried out of a run, into a shell's profile or a service; see [`Nesting::misleading`].
    ///
    /// # Errors
    /// When the variables are set to nonsense.
    pub fn from_environment() -> Result<Self> {
        let told = Self::told()?;
        Ok(if told.holds(is_local) { told } else { Self::OUTERMOST })
    }

    /// Error in the environment, if it names an enclosing run whose link is not in this network namespace.
    ///
    /// # Errors
    /// When the variables are set to nonsense.
    pub fn misleading() -> Result<Option<String>> {
        Ok((!Self::told()?.holds(is_local)).then(|| {
            format!(
                "{DEPTH_VARIABLE} and {BLOCK_VARIABLE} are set, but this network has no matching link end: they are \
                 ignored; unset both"
            )
        }))
    }

    fn told() -> Result<Self> {
        let value = |name| std::env::var(name).ok();
        Self::parse(value(DEPTH_VARIABLE), value(BLOCK_VARIABLE))
    }

    /// True if one end of the enclosing run's link is here, according to `is_local` for addresses.
    fn holds(self, is_local: impl Fn(IpAddr) -> bool) -> bool {
        self.enclosing.is_none_or(|block| {
            [End::Client, End::Server].into_iter().any(|end| is_local(IpAddr::V4(end.ipv4(block.first))))
        })
    }

    fn parse(depth: Option<String>, block: Option<String>) -> Result<Self> {
        let (Some(depth), Some(block)) = (depth, block) else {
            return Ok(Self::OUTERMOST);
        };
        let parsed = || -> Option<Self> {
            let depth = depth.trim().parse().ok()?;
            let (first, bits) = block.trim().split_once('/')?;
            let (first, bits) = (first.parse().ok()?, bits.parse().ok()?);
            let aligned = bits <= LINK_NUMBER_BITS && first & ((1_u16 << bits) - 1) == 0;
            (aligned && first >> LINK_NUMBER_BITS == 0)
                .then_some(Self { enclosing: Some(Block { first, bits }), depth })
        };
        parsed().ok_or_else(|| {
            LiveError::Request(format!(
                "the environment variables {DEPTH_VARIABLE}={depth} and {BLOCK_VARIABLE}={block} \
                 are inconsistent; Airpath sets them for its commands, so unset both"
            ))
        })
    }

    /// The links that this run may choose from: none when the blocks are used
    /// up by too deep a nesting.
    pub fn candidates(self) -> impl Iterator<Item = Link> {
        let (outer, first_index) = match self.enclosing {
            None => (Block { first: 0, bits: LINK_NUMBER_BITS }, 0),
            // The first eighth holds the enclosing run's own link.
            Some(block) => (block, 1),
        };
        let bits = outer.bits.saturating_sub(NESTING_BITS);
        let count = 1_u16 << (outer.bits - bits);
        let depth = self.depth;
        (first_index..count).map(move |index| Link {
            block: Block { first: outer.first + (index << bits), bits },
            depth,
            index: (index - first_index) as u8,
            user: 0,
        })
    }
}

impl Link {
    /// The only link of a run that is not connected to anything around it.
    pub const ALONE: Self =
        Self { block: Block { first: 0, bits: LINK_NUMBER_BITS - NESTING_BITS }, depth: 0, index: 0, user: 0 };

    /// Number of links around this one.
    pub fn depth(self) -> u8 {
        self.depth
    }

    /// The links of `users` users, each with an equal part of this link's block; that of a single user is this link.
    /// None if the block has fewer numbers.
    pub fn of_users(self, users: u16) -> Option<Vec<Self>> {
        let bits = self.block.bits.checked_sub(users.checked_next_power_of_two()?.trailing_zeros() as u8)?;
        let of_user = |user| Self { block: Block { first: self.block.first + (user << bits), bits }, user, ..self };
        Some((0..users).map(of_user).collect())
    }

    /// The interface at either end: `airpathD` at depth D, or `airpathDxI`
    /// when it is not the first of its depth in the enclosing namespace; with `uU` behind it for user U but the first.
    pub fn interface_name(self) -> String {
        let mut name = format!("airpath{}", self.depth);
        if self.index > 0 {
            name += &format!("x{}", self.index);
        }
        if self.user > 0 {
            name += &format!("u{}", self.user);
        }
        name
    }

    /// The addresses of an end: IPv4, then IPv6 if wanted.
    pub fn addresses(self, end: End, with_ipv6: bool) -> Vec<IpAddr> {
        let mut addresses = vec![IpAddr::V4(self.ipv4(end))];
        if with_ipv6 {
            addresses.push(IpAddr::V6(self.ipv6(end)));
        }
        addresses
    }

    /// The IPv4 address of an end.
    pub fn ipv4(self, end: End) -> Ipv4Addr {
        end.ipv4(self.block.first)
    }

    /// The IPv6 address of an end.
    pub fn ipv6(self, end: End) -> Ipv6Addr {
        end.ipv6(self.block.first)
    }

    /// The link's own network, of the family of `like`: address and prefix
    /// length.
    pub fn network(self, like: IpAddr) -> (IpAddr, u8) {
        match like {
            IpAddr::V4(_) => (IpAddr::V4(ipv4_network(self.block.first)), IPV4_PREFIX_LENGTH),
            IpAddr::V6(_) => (IpAddr::V6(ipv6_network(self.block.first)), IPV6_PREFIX_LENGTH),
        }
    }

    /// The networks of this link and of all links nested in it.
    pub fn network_with_nested(self, like: IpAddr) -> (IpAddr, u8) {
        let (network, prefix_length) = self.network(like);
        (network, prefix_length - self.block.bits)
    }

    /// The environment of commands: what a run nested in this one must know.
    pub fn environment(self) -> [(&'static str, String); 2] {
        [
            (DEPTH_VARIABLE, (u16::from(self.depth) + 1).to_string()),
            (BLOCK_VARIABLE, format!("{}/{}", self.block.first, self.block.bits)),
        ]
    }
}

/// True if an address belongs to this network namespace: only then can a socket be bound to it.
fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn inside(link: Link) -> Nesting {
        let [(_, depth), (_, block)] = link.environment();
        Nesting::parse(Some(depth), Some(block)).unwrap()
    }

    fn descend(nesting: Nesting, seen: &mut Vec<Link>) {
        for link in nesting.candidates() {
            seen.push(link);
            descend(inside(link), seen);
        }
    }

    fn contains(network: (IpAddr, u8), address: IpAddr) -> bool {
        match (network.0, address) {
            (IpAddr::V4(network_address), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(network.1);
                u32::from(network_address) >> shift == u32::from(address) >> shift
            }
            (IpAddr::V6(network_address), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(network.1);
                u128::from(network_address) >> shift == u128::from(address) >> shift
            }
            _ => false,
        }
    }

    #[test]
    fn a_run_around_this_one_has_an_end_of_its_link_here() {
        let link = Nesting::OUTERMOST.candidates().nth(2).unwrap();
        for end in [End::Client, End::Server] {
            assert!(inside(link).holds(|address| address == IpAddr::V4(link.ipv4(end))));
        }
        assert!(!inside(link).holds(|address| address == IpAddr::V4(Link::ALONE.ipv4(End::Client))));
        assert!(Nesting::OUTERMOST.holds(|_| false));
        assert!(is_local(IpAddr::V4(Ipv4Addr::LOCALHOST)) && !is_local(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1))));
    }

    #[test]
    fn no_two_links_share_an_address_however_nested() {
        let mut links = Vec::new();
        descend(Nesting::OUTERMOST, &mut links);
        assert!(links.len() > 5000);
        assert_eq!(links.iter().map(|link| link.depth).max(), Some(4));
        let mut addresses = HashSet::new();
        for link in &links {
            assert!(link.interface_name().len() < 16);
            for end in [End::Client, End::Server] {
                for address in link.addresses(end, true) {
                    assert!(addresses.insert(address), "{address}");
                    assert!(contains(link.network(address), address));
                    assert!(contains(link.network_with_nested(address), address));
                }
            }
        }
    }

    #[test]
    fn a_links_block_covers_what_is_nested_and_nothing_beside() {
        let siblings: Vec<Link> = Nesting::OUTERMOST.candidates().collect();
        assert_eq!(siblings[0], Link::ALONE);
        for link in &siblings {
            let mut nested = Vec::new();
            descend(inside(*link), &mut nested);
            for like in link.addresses(End::Server, true) {
                let covered = link.network_with_nested(like);
                let is_covered = |other: &Link| {
                    let addresses = other.addresses(End::Client, true);
                    addresses.into_iter().any(|each| contains(covered, each))
                };
                assert!(nested.iter().all(is_covered));
                let others = siblings.iter().filter(|other| *other != link);
                assert_eq!(others.filter(|other| is_covered(other)).count(), 0);
            }
        }
    }

    #[test]
    fn nonsense_in_the_environment_is_explained() {
        for (depth, block) in [("1", "3/2"), ("x", "0/11"), ("1", "0"), ("1", "0/15")] {
            let error = Nesting::parse(Some(depth.into()), Some(block.into())).unwrap_err();
            assert!(error.to_string().contains("unset"), "{error}");
        }
        assert_eq!(Nesting::parse(None, None).unwrap(), Nesting::OUTERMOST);
    }
}
