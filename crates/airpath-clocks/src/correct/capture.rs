//! Captures copied byte for byte but for their stamps: pcapng (draft-ietf-opsawg-pcapng) and pcap
//! (draft-ietf-opsawg-pcap), of any program, in either byte order.

use std::io::{self, Read, Write};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const RESOLUTION: u16 = 9;
const EPOCH: u16 = 14;
const STATISTICS_START: u16 = 2;
const STATISTICS_END: u16 = 3;
/// No sensible block comes near this size.
const MOST_BYTES: u32 = 64 << 20;
const PCAP_MICROSECONDS: u32 = 0xa1b2_c3d4;
const PCAP_NANOSECONDS: u32 = 0xa1b2_3c4d;
const SECOND_NS: i128 = 1_000_000_000;

/// What is done to a stamp, in ns since 1970.
pub type Change<'a> = dyn FnMut(u64) -> io::Result<u64> + 'a;

/// Copies a capture from `input` to `output`, each stamp as `change` makes it. Stamps keep the
/// resolution that they have; what is finer is rounded.
///
/// # Errors
/// Those of reading, writing and `change`; and when the input is no capture, or a torn one.
pub fn copy(input: &mut dyn Read, output: &mut dyn Write, change: &mut Change<'_>) -> io::Result<()> {
    let mut magic = [0; 4];
    input.read_exact(&mut magic).map_err(|error| torn(error, "it is too short to be a capture"))?;
    let word = u32::from_le_bytes(magic);
    match word {
        SECTION => pcapng(input, output, change),
        PCAP_MICROSECONDS | PCAP_NANOSECONDS => pcap(magic, Order::Little, input, output, change),
        _ if matches!(word.swap_bytes(), PCAP_MICROSECONDS | PCAP_NANOSECONDS) => {
            pcap(magic, Order::Big, input, output, change)
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is neither a pcapng nor a pcap file")),
    }
}

fn torn(error: io::Error, what: &str) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(io::ErrorKind::InvalidData, what.to_owned()),
        _ => error,
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn half(self, bytes: &[u8], at: usize) -> io::Result<u16> {
        let bytes = bytes.get(at..at + 2).ok_or_else(|| damaged("a block is too short"))?;
        let bytes = bytes.try_into().expect("two bytes");
        Ok(match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        })
    }

    fn word(self, bytes: &[u8], at: usize) -> io::Result<u32> {
        let bytes = bytes.get(at..at + 4).ok_or_else(|| damaged("a block is too short"))?;
        let bytes = bytes.try_into().expect("four bytes");
        Ok(match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        })
    }

    fn put(self, bytes: &mut [u8], at: usize, value: u32) {
        bytes[at..at + 4].copy_from_slice(&match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        });
    }
}

/// How an interface writes its stamps.
#[derive(Clone, Copy)]
struct Units {
    per_second: i128,
    epoch_ns: i128,
}

impl Units {
    /// Moves the stamp whose high half stands at `at`.
    fn change(self, order: Order, block: &mut [u8], at: usize, change: &mut Change<'_>) -> io::Result<()> {
        let units = u64::from(order.word(block, at)?) << 32 | u64::from(order.word(block, at + 4)?);
        let unix_ns = i128::from(units) * SECOND_NS / self.per_second + self.epoch_ns;
        let outside = || damaged("a stamp cannot be written as a time since 1970");
        let unix_ns = u64::try_from(unix_ns).map_err(|_| outside())?;
        // The difference is what is rounded, so that nothing is lost of finer stamps.
        let difference = (i128::from(change(unix_ns)?) - i128::from(unix_ns)) * self.per_second;
        let units = i128::from(units) + (2 * difference + SECOND_NS).div_euclid(2 * SECOND_NS);
        let units = u64::try_from(units).map_err(|_| outside())?;
        order.put(block, at, (units >> 32) as u32);
        order.put(block, at + 4, units as u32);
        Ok(())
    }
}

/// The options of a block from `at` on: codes, and where their values are.
fn options(order: Order, block: &[u8], mut at: usize) -> Vec<(u16, std::ops::Range<usize>)> {
    let mut found = Vec::new();
    while let (Ok(code), Ok(length)) = (order.half(block, at), order.half(block, at + 2)) {
        let value = at + 4..at + 4 + usize::from(length);
        if code == 0 || value.end > block.len() {
            break;
        }
        at = value.end.next_multiple_of(4);
        found.push((code, value));
    }
    found
}

fn units(order: Order, block: &[u8]) -> io::Result<Units> {
    let mut units = Units { per_second: 1_000_000, epoch_ns: 0 };
    // Behind the block's type and length: link type, reserved, snap length; at its end its length.
    for (code, value) in options(order, &block[..block.len() - 4], 16) {
        let value = &block[value];
        match (code, value) {
            (RESOLUTION, [exponent]) if exponent & 0x80 == 0 && *exponent <= 18 => {
                units.per_second = 10i128.pow(u32::from(*exponent));
            }
            (RESOLUTION, [exponent]) if exponent & 0x80 != 0 && exponent & 0x7f <= 60 => {
                units.per_second = 1 << (exponent & 0x7f);
            }
            (RESOLUTION, _) => return Err(damaged("an interface has stamps of no sensible resolution")),
            (EPOCH, [..]) if value.len() == 8 => {
                let (first, second) = (order.word(value, 0)?, order.word(value, 4)?);
                let (high, low) = match order {
                    Order::Little => (second, first),
                    Order::Big => (first, second),
                };
                units.epoch_ns = i128::from((u64::from(high) << 32 | u64::from(low)).cast_signed()) * SECOND_NS;
            }
            _ => {}
        }
    }
    Ok(units)
}

fn pcapng(input: &mut dyn Read, output: &mut dyn Write, change: &mut Change<'_>) -> io::Result<()> {
    let middle = "it ends in the middle of a block: whoever wrote it was killed, or is still writing";
    let mut interfaces: Vec<Units> = Vec::new();
    let mut order = Order::Little;
    let mut block: Vec<u8> = SECTION.to_le_bytes().to_vec();
    loop {
        // The type is there; the length and, for a section, the byte order follow.
        let section = block[..] == SECTION.to_le_bytes();
        block.resize(if section { 12 } else { 8 }, 0);
        input.read_exact(&mut block[4..]).map_err(|error| torn(error, middle))?;
        if section {
            order = match u32::from_le_bytes(block[8..12].try_into().expect("four bytes")) {
                BYTE_ORDER => Order::Little,
                other if other.swap_bytes() == BYTE_ORDER => Order::Big,
                _ => return Err(damaged("a section has no byte order")),
            };
            interfaces.clear();
        }
        let (begun, length) = (block.len(), order.word(&block, 4)?);
        if !(12..=MOST_BYTES).contains(&length) || length % 4 != 0 || (length as usize) < begun + 4 {
            return Err(damaged("a block has no sensible length"));
        }
        block.resize(length as usize, 0);
        input.read_exact(&mut block[begun..]).map_err(|error| torn(error, middle))?;
        if order.word(&block, block.len() - 4)? != length {
            return Err(damaged("a block contradicts itself"));
        }
        let of = |number: u32| {
            let units = interfaces.get(number as usize);
            units.copied().ok_or_else(|| damaged("a packet is of an interface that the file does not have"))
        };
        match order.word(&block, 0)? {
            _ if section => {}
            INTERFACE => interfaces.push(units(order, &block)?),
            PACKET => of(order.word(&block, 8)?)?.change(order, &mut block, 12, change)?,
            OLD_PACKET => of(u32::from(order.half(&block, 8)?))?.change(order, &mut block, 12, change)?,
            STATISTICS => {
                let units = of(order.word(&block, 8)?)?;
                units.change(order, &mut block, 12, change)?;
                for (code, value) in options(order, &block[..block.len() - 4], 20) {
                    if matches!(code, STATISTICS_START | STATISTICS_END) && value.len() == 8 {
                        units.change(order, &mut block, value.start, change)?;
                    }
                }
            }
            _ => {}
        }
        output.write_all(&block)?;
        block.resize(4, 0);
        // The end of the file is between two blocks.
        if input.read(&mut block[..1])? == 0 {
            return Ok(());
        }
        input.read_exact(&mut block[1..]).map_err(|error| torn(error, middle))?;
    }
}

fn pcap(
    magic: [u8; 4],
    order: Order,
    input: &mut dyn Read,
    output: &mut dyn Write,
    change: &mut Change<'_>,
) -> io::Result<()> {
    let middle = "it ends in the middle of a packet: whoever wrote it was killed, or is still writing";
    let per_second = if order.word(&magic, 0)? == PCAP_NANOSECONDS { 1_000_000_000 } else { 1_000_000 };
    let mut head = [0; 24];
    head[..4].copy_from_slice(&magic);
    input.read_exact(&mut head[4..]).map_err(|error| torn(error, middle))?;
    output.write_all(&head)?;
    let (mut record, mut bytes) = ([0; 16], Vec::new());
    loop {
        if input.read(&mut record[..1])? == 0 {
            return Ok(());
        }
        input.read_exact(&mut record[1..]).map_err(|error| torn(error, middle))?;
        let (seconds, part, kept) = (order.word(&record, 0)?, order.word(&record, 4)?, order.word(&record, 8)?);
        if kept > MOST_BYTES || part >= per_second {
            return Err(damaged("a packet contradicts itself"));
        }
        let unix_ns = u64::from(seconds) * 1_000_000_000 + u64::from(part) * (1_000_000_000 / u64::from(per_second));
        let unit_ns = 1_000_000_000 / u64::from(per_second);
        let units = (change(unix_ns)? + unit_ns / 2) / unit_ns;
        let seconds = u32::try_from(units / u64::from(per_second));
        order.put(&mut record, 0, seconds.map_err(|_| damaged("a stamp is too late for a pcap file (2106)"))?);
        order.put(&mut record, 4, (units % u64::from(per_second)) as u32);
        bytes.resize(kept as usize, 0);
        input.read_exact(&mut bytes).map_err(|error| torn(error, middle))?;
        output.write_all(&record)?;
        output.write_all(&bytes)?;
    }
}
