// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Serial lines and their speeds as text.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use nix::sys::termios::BaudRate;

/// A serial line to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineSpec {
    /// An existing terminal device.
    Device(PathBuf),
    /// A new pseudo-terminal, and the symbolic link at which its other end is found.
    Pseudo {
        /// Path of the link, if there is to be one.
        link: Option<PathBuf>,
    },
}

impl FromStr for LineSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            _ if text == "pty" => Ok(Self::Pseudo { link: None }),
            Some(("pty", "")) => Err("`pty:` names no link; write pty, or pty:PATH".into()),
            Some(("pty", link)) => Ok(Self::Pseudo { link: Some(link.into()) }),
            _ if text.is_empty() => Err("a serial line has a path, such as /dev/ttyUSB0; or write pty".into()),
            _ => Ok(Self::Device(text.into())),
        }
    }
}

impl fmt::Display for LineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(path) => path.display().fmt(f),
            Self::Pseudo { link: None } => f.write_str("pty"),
            Self::Pseudo { link: Some(link) } => write!(f, "pty:{}", link.display()),
        }
    }
}

/// Speed of a serial line, in bit/s of the line, with start and stop bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baud(u32, BaudRate);

/// The speeds that terminals have.
const RATES: [(u32, BaudRate); 25] = [
    (300, BaudRate::B300),
    (600, BaudRate::B600),
    (1200, BaudRate::B1200),
    (1800, BaudRate::B1800),
    (2400, BaudRate::B2400),
    (4800, BaudRate::B4800),
    (9600, BaudRate::B9600),
    (19_200, BaudRate::B19200),
    (38_400, BaudRate::B38400),
    (57_600, BaudRate::B57600),
    (115_200, BaudRate::B115200),
    (230_400, BaudRate::B230400),
    (460_800, BaudRate::B460800),
    (500_000, BaudRate::B500000),
    (576_000, BaudRate::B576000),
    (921_600, BaudRate::B921600),
    (1_000_000, BaudRate::B1000000),
    (1_152_000, BaudRate::B1152000),
    (1_500_000, BaudRate::B1500000),
    (2_000_000, BaudRate::B2000000),
    (2_500_000, BaudRate::B2500000),
    (3_000_000, BaudRate::B3000000),
    (3_500_000, BaudRate::B3500000),
    (4_000_000, BaudRate::B4000000),
    (200, BaudRate::B200),
];

impl Baud {
    pub(super) fn rate(self) -> BaudRate {
        self.1
    }
}

impl FromStr for Baud {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || RATES.map(|(bits, _)| bits.to_string()).join(", ");
        let asked: u32 = text.parse().map_err(|_| format!("`{text}` is no speed; a line has one of {}", known()))?;
        let rate = RATES.iter().find(|(bits, _)| *bits == asked);
        rate.map(|(bits, rate)| Self(*bits, *rate))
            .ok_or_else(|| format!("no terminal has {asked} bit/s; a line has one of {}", known()))
    }
}

impl fmt::Display for Baud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_speeds_are_read_and_shown() {
        for text in ["/dev/ttyUSB0", "pty", "pty:/tmp/line", "COM1"] {
            assert_eq!(text.parse::<LineSpec>().unwrap().to_string(), text);
        }
        assert!("pty:".parse::<LineSpec>().is_err() && "".parse::<LineSpec>().is_err());
        assert_eq!("115200".parse::<Baud>().unwrap().to_string(), "115200");
        let error = "115201".parse::<Baud>().unwrap_err();
        assert!(error.contains("115200"), "{error}");
    }
}
