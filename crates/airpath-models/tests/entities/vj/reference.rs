// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Compressor and decompressor read from the text of RFC 1144 apart from the model: the fields of a header as numbers
//! in a table, the oldest slot by the number of its last use, the line as a list of octets.

use std::collections::BTreeMap;

/// Names of what a compressed header may change, and of all else.
type Fields = BTreeMap<&'static str, u64>;

/// A header taken apart.
#[derive(Clone, PartialEq, Debug)]
pub struct Parts {
    numbers: Fields,
    /// All octets with those of the numbers zero.
    others: Vec<u8>,
}

/// Name, octet of IP or (behind 1000) of TCP, and octets of each number.
const PLACES: [(&str, usize, usize); 9] = [
    ("length", 2, 2),
    ("identification", 4, 2),
    ("header checksum", 10, 2),
    ("sequence", 1004, 4),
    ("acknowledgement", 1008, 4),
    ("flags", 1013, 1),
    ("window", 1014, 2),
    ("checksum", 1016, 2),
    ("urgent", 1018, 2),
];

fn place(header: &[u8], place: usize) -> usize {
    if place >= 1000 { place - 1000 + usize::from(header[0] & 0xf) * 4 } else { place }
}

impl Parts {
    pub fn of(header: &[u8]) -> Parts {
        let mut others = header.to_vec();
        let mut numbers = Fields::new();
        for (name, at, octets) in PLACES {
            let from = place(header, at);
            let value = header[from..from + octets].iter().fold(0, |value, octet| value * 256 + u64::from(*octet));
            numbers.insert(name, value);
            others[from..from + octets].fill(0);
        }
        Parts { numbers, others }
    }

    pub fn octets(&self) -> Vec<u8> {
        let mut header = self.others.clone();
        for (name, at, octets) in PLACES {
            let from = place(&header, at);
            let value = self.numbers[name].to_be_bytes();
            header[from..from + octets].copy_from_slice(&value[8 - octets..]);
        }
        header
    }

    fn data(&self) -> u64 {
        self.numbers["length"] - self.others.len() as u64
    }

    /// Source, destination and ports.
    fn connection(&self) -> Vec<u8> {
        let tcp = place(&self.others, 1000);
        [&self.others[12..20], &self.others[tcp..tcp + 4]].concat()
    }

    fn has(&self, flag: u64) -> bool {
        self.numbers["flags"] & flag != 0
    }

    /// Flags that no compressed header can change.
    fn fixed_flags(&self) -> u64 {
        self.numbers["flags"] & !0x28
    }
}

/// A packet on the line.
#[derive(Clone, PartialEq, Debug)]
pub enum Line {
    Ip,
    Uncompressed(Vec<u8>),
    Compressed(Vec<u8>),
}

/// The sending end.
pub struct Sender {
    slots: usize,
    elides: bool,
    /// Header and time of the last use of each slot.
    known: BTreeMap<u8, (Parts, u64)>,
    last: Option<u8>,
    now: u64,
}

fn delta(number: u64) -> Vec<u8> {
    let octets = (number as u16).to_be_bytes();
    if (1..=255).contains(&number) { vec![octets[1]] } else { vec![0, octets[0], octets[1]] }
}

impl Sender {
    pub fn new(slots: usize, elides: bool) -> Sender {
        Sender { slots, elides, known: BTreeMap::new(), last: None, now: 0 }
    }

    pub fn send(&mut self, header: &[u8]) -> Line {
        let new = Parts::of(header);
        if !new.has(0x10) || new.has(0x01) || new.has(0x02) || new.has(0x04) {
            return Line::Ip;
        }
        self.now += 1;
        let own = self.known.iter().find(|(_, (old, _))| old.connection() == new.connection());
        let slot = match own {
            Some((slot, _)) => *slot,
            None if self.known.len() < self.slots => self.known.len() as u8,
            None => *self.known.iter().min_by_key(|(_, (_, used))| *used).unwrap().0,
        };
        let old = own.map(|(_, (old, _))| old.clone());
        self.known.insert(slot, (new.clone(), self.now));
        let same_slot = self.last == Some(slot);
        self.last = Some(slot);
        let Some(mut octets) = old.and_then(|old| Sender::changes(&old, &new)) else {
            let mut line = header.to_vec();
            line[9] = slot;
            return Line::Uncompressed(line);
        };
        octets.splice(1..1, (new.numbers["checksum"] as u16).to_be_bytes());
        if !(same_slot && self.elides) {
            octets[0] += 0x40;
            octets.insert(1, slot);
        }
        Line::Compressed(octets)
    }

    /// Mask and deltas, by the list of section 3.2.3.
    fn changes(old: &Parts, new: &Parts) -> Option<Vec<u8>> {
        let fixed = (&old.others, old.fixed_flags()) == (&new.others, new.fixed_flags());
        let step = |name, modulus: u64| (new.numbers[name] + modulus - old.numbers[name]) % modulus;
        let (window, identification) = (step("window", 1 << 16), step("identification", 1 << 16));
        let (ack, sequence) = (step("acknowledgement", 1 << 32), step("sequence", 1 << 32));
        let urgent_moved = !new.has(0x20) && new.numbers["urgent"] != old.numbers["urgent"];
        if !fixed || urgent_moved || ack > 65_535 || sequence > 65_535 {
            return None;
        }
        let mut changed = String::new();
        let mut deltas = Vec::new();
        for (letter, is_there, number) in [
            ('U', new.has(0x20), new.numbers["urgent"]),
            ('W', window > 0, window),
            ('A', ack > 0, ack),
            ('S', sequence > 0, sequence),
        ] {
            if is_there {
                changed.push(letter);
                deltas.extend(delta(number));
            }
        }
        let bits = |letters: &str| letters.chars().map(|letter| 1 << "UWAS".find(letter).unwrap()).sum::<u8>();
        let mut mask = bits(&changed);
        match changed.as_str() {
            "UWS" | "UWAS" => return None,
            "" if old.data() > 0 || new.data() == 0 => return None,
            "AS" if ack == old.data() && sequence == old.data() => (mask, deltas) = (bits("UWS"), Vec::new()),
            "S" if sequence == old.data() => (mask, deltas) = (bits("UWAS"), Vec::new()),
            _ => {}
        }
        if identification != 1 {
            mask += 0x20;
            deltas.extend(delta(identification));
        }
        mask += if new.has(0x08) { 0x10 } else { 0 };
        Some([vec![mask], deltas].concat())
    }
}

/// The receiving end.
pub struct Receiver {
    slots: usize,
    known: BTreeMap<u8, Parts>,
    last: u8,
    pub tosses: bool,
}

impl Receiver {
    pub fn new(slots: usize) -> Receiver {
        Receiver { slots, known: BTreeMap::new(), last: 0, tosses: true }
    }

    /// The header of what comes with `data` octets of contents; none if it is tossed.
    pub fn receive(&mut self, line: &Line, data: usize) -> Option<Vec<u8>> {
        match line {
            Line::Ip => None,
            Line::Uncompressed(octets) => {
                self.last = octets[9];
                assert!(usize::from(self.last) < self.slots);
                self.tosses = false;
                let mut header = octets.clone();
                header[9] = 6;
                self.known.insert(self.last, Parts::of(&header));
                Some(header)
            }
            Line::Compressed(octets) => self.decompress(octets.clone(), data),
        }
    }

    fn decompress(&mut self, mut octets: Vec<u8>, data: usize) -> Option<Vec<u8>> {
        let mask = octets.remove(0);
        if mask & 0x40 != 0 {
            let slot = octets.remove(0);
            if !self.known.contains_key(&slot) {
                self.tosses = true;
                return None;
            }
            (self.last, self.tosses) = (slot, false);
        }
        if self.tosses {
            return None;
        }
        let state = self.known.get_mut(&self.last)?;
        let before = state.data();
        let numbers = &mut state.numbers;
        numbers.insert("checksum", u64::from(octets[0]) * 256 + u64::from(octets[1]));
        octets.drain(..2);
        let mut next = || {
            let first = octets.remove(0);
            if first > 0 { u64::from(first) } else { u64::from(octets.remove(0)) * 256 + u64::from(octets.remove(0)) }
        };
        let mut move_on = |name, modulus: u64, by: u64| {
            let number = numbers.get_mut(name).unwrap();
            *number = (*number + by) % modulus;
        };
        let special = mask & 15;
        let mut flags = if mask & 0x10 != 0 { 0x08 } else { 0 };
        if special == 0b1011 {
            move_on("acknowledgement", 1 << 32, before);
        }
        if special == 0b1011 || special == 0b1111 {
            move_on("sequence", 1 << 32, before);
        } else {
            if mask & 1 != 0 {
                flags += 0x20;
                move_on("urgent", 1, 0);
                move_on("urgent", 1 << 16, next());
            }
            if mask & 2 != 0 {
                move_on("window", 1 << 16, next());
            }
            if mask & 4 != 0 {
                move_on("acknowledgement", 1 << 32, next());
            }
            if mask & 8 != 0 {
                move_on("sequence", 1 << 32, next());
            }
        }
        move_on("identification", 1 << 16, if mask & 0x20 != 0 { next() } else { 1 });
        let fixed = state.fixed_flags();
        let length = (state.others.len() + data) as u64;
        state.numbers.extend([("flags", fixed + flags), ("length", length), ("header checksum", 0)]);
        let header = state.octets();
        let ip_len = usize::from(header[0] % 16) * 4;
        state.numbers.insert("header checksum", crate::common::segment::sum(&header[..ip_len]).into());
        Some(state.octets())
    }
}
