// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The layout of the tracepoint `tcp_probe`, as the running kernel tells it
//! (`events/tcp/tcp_probe/format`), and records read by it: fields move and
//! come from kernel to kernel.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::info::INFINITE_SSTHRESH;

/// A layout that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FormatError(String);

/// Position of a field in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    offset: usize,
    bytes: usize,
}

/// The layout of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeFormat {
    id: u64,
    cookie: Field,
    local: Field,
    remote: Field,
    cwnd: Option<Field>,
    ssthresh: Option<Field>,
    srtt: Option<Field>,
    snd_wnd: Option<Field>,
    rcv_wnd: Option<Field>,
    snd_una: Option<Field>,
    snd_nxt: Option<Field>,
}

/// Record of the kernel on receiving a packet of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeRecord {
    /// Time in ns since the run began.
    pub time_ns: u64,
    /// The socket's number in the kernel.
    pub cookie: u64,
    /// Its own address and port.
    pub local: SocketAddr,
    /// The address and port it is connected to.
    pub remote: SocketAddr,
    /// Congestion window, in segments.
    pub cwnd: Option<u32>,
    /// Slow start threshold, in segments; none while it is infinite.
    pub ssthresh: Option<u32>,
    /// Smoothed round-trip time.
    pub srtt_ns: Option<u64>,
    /// The window that the peer advertises, in bytes.
    pub snd_wnd: Option<u32>,
    /// The window that is advertised to the peer, in bytes.
    pub rcv_wnd: Option<u32>,
    /// The first sequence number that is not acknowledged.
    pub snd_una: Option<u32>,
    /// The sequence number to be sent next.
    pub snd_nxt: Option<u32>,
}

impl Default for ProbeRecord {
    fn default() -> Self {
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Self {
            time_ns: 0,
            cookie: 0,
            local: nowhere,
            remote: nowhere,
            cwnd: None,
            ssthresh: None,
            srtt_ns: None,
            snd_wnd: None,
            rcv_wnd: None,
            snd_una: None,
            snd_nxt: None,
        }
    }
}

impl ProbeFormat {
    /// Reads the text of a `format` file.
    ///
    /// # Errors
    /// When it is none, or has no field that tells whose a record is.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let id = text
            .lines()
            .find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok())
            .ok_or_else(|| FormatError("the format of tcp_probe has no ID".into()))?;
        let field = |name: &str| text.lines().find_map(|line| parse_field(line, name));
        let needed = |name: &str, bytes: usize| {
            field(name).filter(|field| field.bytes >= bytes).ok_or_else(|| {
                FormatError(format!("the tracepoint tcp_probe of this kernel has no field `{name}` of {bytes} bytes"))
            })
        };
        Ok(Self {
            id,
            cookie: needed("sock_cookie", 8)?,
            local: needed("saddr", 16)?,
            remote: needed("daddr", 16)?,
            cwnd: field("snd_cwnd"),
            ssthresh: field("ssthresh"),
            srtt: field("srtt"),
            snd_wnd: field("snd_wnd"),
            rcv_wnd: field("rcv_wnd"),
            snd_una: field("snd_una"),
            snd_nxt: field("snd_nxt"),
        })
    }

    /// The tracepoint's number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Parses `raw`, the bytes of a record made at `time_ns`. None for what is shorter than its layout, or of
    /// another family.
    pub fn record(&self, time_ns: u64, raw: &[u8]) -> Option<ProbeRecord> {
        let number = |field: Option<Field>| field.and_then(|field| field.read(raw));
        let word = |field| number(field).and_then(|number| u32::try_from(number).ok());
        Some(ProbeRecord {
            time_ns,
            cookie: self.cookie.read(raw)?,
            local: self.local.address(raw)?,
            remote: self.remote.address(raw)?,
            cwnd: word(self.cwnd),
            ssthresh: word(self.ssthresh).filter(|ssthresh| *ssthresh < INFINITE_SSTHRESH),
            srtt_ns: number(self.srtt).filter(|micros| *micros > 0).map(|micros| micros * 1_000),
            snd_wnd: word(self.snd_wnd),
            rcv_wnd: word(self.rcv_wnd),
            snd_una: word(self.snd_una),
            snd_nxt: word(self.snd_nxt),
        })
    }
}

/// The field `name`, if `line` declares it:
/// `field:TYPE NAME[LENGTH]; offset:N; size:N; signed:N;`.
fn parse_field(line: &str, name: &str) -> Option<Field> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?.rsplit([' ', '*']).next()?;
    if declared.split('[').next()? != name {
        return None;
    }
    let mut field = Field { offset: 0, bytes: 0 };
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => field.offset = number.parse().ok()?,
            Some(("size", number)) => field.bytes = number.parse().ok()?,
            _ => {}
        }
    }
    (field.bytes > 0).then_some(field)
}

impl Field {
    fn bytes(self, raw: &[u8]) -> Option<&[u8]> {
        raw.get(self.offset..self.offset.checked_add(self.bytes)?)
    }

    fn read(self, raw: &[u8]) -> Option<u64> {
        let bytes = self.bytes(raw)?;
        match bytes.len() {
            2 => Some(u64::from(u16::from_ne_bytes(bytes.try_into().ok()?))),
            4 => Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?))),
            8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }

    /// A `sockaddr_in` or `sockaddr_in6`; of IPv4 if that goes through IPv6.
    fn address(self, raw: &[u8]) -> Option<SocketAddr> {
        let bytes = self.bytes(raw)?;
        let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
        let address = match family {
            libc::AF_INET => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?)),
            libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?)),
            _ => return None,
        };
        Some(SocketAddr::new(address.to_canonical(), port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 tells it.
    const FORMAT: &str = "\
name: tcp_probe
ID: 2273
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:__u8 saddr[28];\toffset:8;\tsize:28;\tsigned:0;
\tfield:__u8 daddr[28];\toffset:36;\tsize:28;\tsigned:0;
\tfield:__u16 sport;\toffset:64;\tsize:2;\tsigned:0;
\tfield:__u32 snd_nxt;\toffset:80;\tsize:4;\tsigned:0;
\tfield:__u32 snd_una;\toffset:84;\tsize:4;\tsigned:0;
\tfield:__u32 snd_cwnd;\toffset:88;\tsize:4;\tsigned:0;
\tfield:__u32 ssthresh;\toffset:92;\tsize:4;\tsigned:0;
\tfield:__u32 snd_wnd;\toffset:96;\tsize:4;\tsigned:0;
\tfield:__u32 srtt;\toffset:100;\tsize:4;\tsigned:0;
\tfield:__u32 rcv_wnd;\toffset:104;\tsize:4;\tsigned:0;
\tfield:__u64 sock_cookie;\toffset:112;\tsize:8;\tsigned:0;
\tfield:const void * skbaddr;\toffset:120;\tsize:8;\tsigned:0;

print fmt: \"family=%s src=%pISpc\"
";

    fn raw(address: impl Fn(u8) -> Vec<u8>) -> Vec<u8> {
        let mut raw = vec![0; 136];
        for (at, bytes) in [(8, address(2)), (36, address(1))] {
            raw[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        for (at, word) in [(80, 2_000_u32), (84, 1_000), (88, 10), (92, 7), (96, 65_535), (100, 40_123), (104, 9)] {
            raw[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        raw[112..120].copy_from_slice(&77_u64.to_ne_bytes());
        raw
    }

    fn ipv4(last: u8) -> Vec<u8> {
        let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        bytes.extend([0, 80, 10, 77, 0, last]);
        bytes
    }

    #[test]
    fn records_are_read_by_the_layout_that_the_kernel_tells() {
        let format = ProbeFormat::parse(FORMAT).unwrap();
        assert_eq!(format.id(), 2273);
        let record = format.record(5, &raw(ipv4)).unwrap();
        let expected = ProbeRecord {
            time_ns: 5,
            cookie: 77,
            local: "10.77.0.2:80".parse().unwrap(),
            remote: "10.77.0.1:80".parse().unwrap(),
            cwnd: Some(10),
            ssthresh: Some(7),
            srtt_ns: Some(40_123_000),
            snd_wnd: Some(65_535),
            rcv_wnd: Some(9),
            snd_una: Some(1_000),
            snd_nxt: Some(2_000),
        };
        assert_eq!(record, expected);
        let moved = FORMAT.replace("offset:88;", "offset:104;").replace("ssthresh;\toffset", "threshold;\toffset");
        let record = ProbeFormat::parse(&moved).unwrap().record(5, &raw(ipv4)).unwrap();
        assert_eq!((record.cwnd, record.ssthresh), (Some(9), None));
    }

    #[test]
    fn addresses_of_both_families_are_understood() {
        let format = ProbeFormat::parse(FORMAT).unwrap();
        let ipv6 = |address: &str| {
            let octets = address.parse::<Ipv6Addr>().unwrap().octets();
            move |_| [&(libc::AF_INET6 as u16).to_ne_bytes()[..], &[1, 0, 0, 0, 0, 0], &octets[..]].concat()
        };
        let record = format.record(0, &raw(ipv6("fd61:6972:7000::2"))).unwrap();
        assert_eq!(record.local, "[fd61:6972:7000::2]:256".parse().unwrap());
        let record = format.record(0, &raw(ipv6("::ffff:10.77.0.2"))).unwrap();
        assert_eq!(record.local, "10.77.0.2:256".parse().unwrap());
        assert_eq!(format.record(0, &raw(|_| vec![1, 0])), None);
    }

    #[test]
    fn what_is_too_short_or_lacks_the_cookie_is_refused() {
        let format = ProbeFormat::parse(FORMAT).unwrap();
        assert_eq!(format.record(0, &raw(ipv4)[..100]), None);
        let error = ProbeFormat::parse(&FORMAT.replace("sock_cookie", "other")).unwrap_err().to_string();
        assert!(error.contains("no field `sock_cookie`"), "{error}");
        assert!(ProbeFormat::parse("").unwrap_err().to_string().contains("no ID"));
    }
}
