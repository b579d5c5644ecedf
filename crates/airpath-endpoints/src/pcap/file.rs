//! Reads captures: pcap in any byte order with stamps in micro- or nanoseconds, and pcapng.
//!
//! Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Written out here, as the formats are
//! small and stable; a record that is cut short at the end, as when a capture is killed, is left out.

use crate::pcap::packet::{Captured, LinkType};

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// The IP packets of a capture, in the order of the file.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Captured>, String> {
    let magic = bytes.first_chunk::<4>().ok_or("it is not a capture: it is too short")?;
    match u32::from_le_bytes(*magic) {
        0xa1b2_c3d4 => pcap(bytes, Order::Little, 1_000),
        0xa1b2_3c4d => pcap(bytes, Order::Little, 1),
        0xd4c3_b2a1 => pcap(bytes, Order::Big, 1_000),
        0x4d3c_b2a1 => pcap(bytes, Order::Big, 1),
        SECTION => pcapng(bytes),
        _ => Err("it is no capture: it begins neither as pcap nor as pcapng does".into()),
    }
}

/// The byte order of whoever captured.
#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let word = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(match self {
            Order::Little => u32::from_le_bytes(word),
            Order::Big => u32::from_be_bytes(word),
        })
    }

    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let word = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(match self {
            Order::Little => u16::from_le_bytes(word),
            Order::Big => u16::from_be_bytes(word),
        })
    }
}

fn pcap(bytes: &[u8], order: Order, fraction_ns: u64) -> Result<Vec<Captured>, String> {
    let network = order.u32(bytes, 20).ok_or("its header is cut short")?;
    // The upper bits tell of checksums behind the frames.
    let link_type = LinkType::new(network & 0xffff)?;
    let mut packets = Vec::new();
    let mut rest = &bytes[24..];
    let mut next = || {
        let (seconds, fraction, kept) = (order.u32(rest, 0)?, order.u32(rest, 4)?, order.u32(rest, 8)? as usize);
        let frame = rest.get(16..16usize.checked_add(kept)?)?;
        rest = &rest[16 + kept..];
        Some((u64::from(seconds) * NANOSECONDS_PER_SECOND + u64::from(fraction) * fraction_ns, frame))
    };
    while let Some((unix_ns, frame)) = next() {
        packets.extend(Captured::read(unix_ns, link_type, frame));
    }
    Ok(packets)
}

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const PACKET: u32 = 6;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;

/// An interface of a pcapng section.
struct Interface {
    link_type: LinkType,
    /// Ticks of its stamps in a second.
    ticks_per_second: u64,
    offset_seconds: i64,
}

impl Interface {
    fn read(body: &[u8], order: Order) -> Result<Interface, String> {
        let number = order.u16(body, 0).ok_or("an interface is cut short")?;
        let mut interface =
            Interface { link_type: LinkType::new(u32::from(number))?, ticks_per_second: 1_000_000, offset_seconds: 0 };
        let mut options = body.get(8..).unwrap_or_default();
        while let (Some(code), Some(length)) = (order.u16(options, 0), order.u16(options, 2)) {
            let length = usize::from(length);
            let Some(value) = options.get(4..4 + length).filter(|_| code != 0) else { break };
            match (code, value) {
                (OPTION_RESOLUTION, [power]) => {
                    let base: u64 = if power & 0x80 == 0 { 10 } else { 2 };
                    let ticks = base.checked_pow(u32::from(power & 0x7f));
                    interface.ticks_per_second = ticks.ok_or("an interface has an impossible resolution of time")?;
                }
                (OPTION_OFFSET, value) if length == 8 => {
                    let (one, other) = (order.u32(value, 0).unwrap_or(0), order.u32(value, 4).unwrap_or(0));
                    let (high, low) = if matches!(order, Order::Big) { (one, other) } else { (other, one) };
                    interface.offset_seconds = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                _ => {}
            }
            options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(interface)
    }

    fn unix_ns(&self, ticks: u64) -> u64 {
        let nanoseconds = u128::from(ticks) * u128::from(NANOSECONDS_PER_SECOND) / u128::from(self.ticks_per_second);
        let offset = i128::from(self.offset_seconds) * i128::from(NANOSECONDS_PER_SECOND);
        u64::try_from(nanoseconds as i128 + offset).unwrap_or(0)
    }
}

fn pcapng(bytes: &[u8]) -> Result<Vec<Captured>, String> {
    let mut packets = Vec::new();
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut order = Order::Little;
    let mut rest = bytes;
    while rest.len() >= 12 {
        // A section says its own byte order; its kind reads the same in both.
        if order.u32(rest, 0) == Some(SECTION) {
            order = match Order::Little.u32(rest, 8) {
                Some(BYTE_ORDER) => Order::Little,
                Some(word) if word.swap_bytes() == BYTE_ORDER => Order::Big,
                _ => return Err("a section has no byte order".into()),
            };
            interfaces.clear();
        }
        let (Some(kind), Some(length)) = (order.u32(rest, 0), order.u32(rest, 4)) else { break };
        let length = length as usize;
        if length < 12 || !length.is_multiple_of(4) {
            return Err(format!("a block says that it has {length} bytes"));
        }
        let Some(body) = rest.get(8..length - 4) else { break };
        match kind {
            INTERFACE => interfaces.push(Interface::read(body, order)?),
            PACKET | OLD_PACKET => packets.extend(packet(body, kind, order, &interfaces)?),
            SIMPLE_PACKET => return Err("it has packets without times (simple packet blocks)".into()),
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(packets)
}

fn packet(body: &[u8], kind: u32, order: Order, interfaces: &[Interface]) -> Result<Option<Captured>, String> {
    let parse = || {
        let interface = if kind == PACKET { order.u32(body, 0)? } else { u32::from(order.u16(body, 0)?) };
        let ticks = u64::from(order.u32(body, 4)?) << 32 | u64::from(order.u32(body, 8)?);
        let kept = order.u32(body, 12)? as usize;
        Some((interface as usize, ticks, body.get(20..20usize.checked_add(kept)?)?))
    };
    let (interface, ticks, frame) = parse().ok_or("a packet is longer than its block")?;
    let interface = interfaces.get(interface).ok_or("a packet is of an interface that it does not describe")?;
    Ok(Captured::read(interface.unix_ns(ticks), interface.link_type, frame))
}
