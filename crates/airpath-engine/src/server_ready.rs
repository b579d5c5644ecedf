// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sign by which the server's command is ready for the client.

use std::fmt;
use std::str::FromStr;

/// Sign that the server's command is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerReady {
    /// It listens at any port that the client can reach.
    #[default]
    Listens,
    /// Its start.
    Now,
    /// It listens at this port.
    Port(u16),
    /// Its output has this text.
    Says(String),
}

const NOW: &str = "now";

impl FromStr for ServerReady {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerReady, String> {
        match text {
            "" => Err("write now, a port, or a text of the server's output".into()),
            NOW => Ok(ServerReady::Now),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => match digits.parse() {
                Ok(port) if port > 0 => Ok(ServerReady::Port(port)),
                _ => Err(format!("{digits} is not a port: ports are 1 to 65535")),
            },
            text => Ok(ServerReady::Says(text.into())),
        }
    }
}

impl fmt::Display for ServerReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerReady::Listens => f.write_str("listens"),
            ServerReady::Now => f.write_str(NOW),
            ServerReady::Port(port) => write!(f, "{port}"),
            ServerReady::Says(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_ports_and_texts_are_told_apart() {
        let read = |text: &str| text.parse::<ServerReady>();
        assert_eq!(read("now"), Ok(ServerReady::Now));
        assert_eq!(read("8080"), Ok(ServerReady::Port(8080)));
        assert_eq!(read("Listening on"), Ok(ServerReady::Says("Listening on".into())));
        assert!(read("0").is_err() && read("65536").is_err() && read("").is_err());
    }
}
