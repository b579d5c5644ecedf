// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Protocol of the control socket: one JSON object a line, each answered by one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// A longer line is none of ours.
pub const LONGEST_LINE_BYTES: usize = 256 << 10;

/// Request of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Put a state in force.
    State {
        /// Its name.
        name: String,
    },
    /// Set one parameter, or several at one instant.
    Set {
        /// The name of the one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parameter: Option<String>,
        /// Its value: text, a number, or an object for a table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
        /// Several, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        parameters: BTreeMap<String, Value>,
    },
    /// The value of a parameter that is in force.
    Get {
        /// Its name.
        parameter: String,
    },
    /// Description of the run.
    Describe {},
    /// Remember how the link has done until now: what [`Request::Verdict`] answers over the same
    /// connection concerns the time from here on.
    Watch {},
    /// The judgement on the link, on what is around it too, since the run began or since it was watched.
    Verdict {},
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// The kind of what is wrong, and a message.
    pub fn read(line: &str) -> Result<Request, Refusal> {
        let malformed = |message: String| Refusal::new("request", message);
        let value: Value = serde_json::from_str(line)
            .map_err(|error| malformed(format!("the request is not a JSON object on one line: {error}")))?;
        let Value::Object(mut object) = value else {
            return Err(malformed("a request must be a JSON object".into()));
        };
        match object.remove("version").map(|version| version.as_u64()) {
            Some(Some(version)) if version == u64::from(VERSION) => {}
            _ => {
                let message =
                    format!("this run speaks version {VERSION}: send \"version\": {VERSION} with every request");
                return Err(Refusal::new("version", message));
            }
        }
        serde_json::from_value(Value::Object(object)).map_err(|error| {
            malformed(format!("{error}; the commands are state, set, get, describe, watch and verdict"))
        })
    }

    /// The request as a line, without its end.
    pub fn line(&self) -> String {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        value["version"] = VERSION.into();
        value.to_string()
    }
}

/// Refusal of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// One word for programs.
    pub kind: &'static str,
    /// Message: the error and its fix.
    pub message: String,
}

impl Refusal {
    /// A refusal of a kind.
    pub fn new(kind: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { kind, message: message.into() }
    }

    /// The answer.
    pub fn answer(&self) -> Value {
        json!({ "version": VERSION, "ok": false, "error": { "kind": self.kind, "message": self.message } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_as_they_are_documented() {
        let read = |line: &str| Request::read(line).map_err(|refusal| refusal.kind);
        let set = r#"{"version": 1, "command": "set", "parameter": "radio.link.rate", "value": "64 kbit/s"}"#;
        let parameter = Some("radio.link.rate".to_string());
        assert_eq!(
            read(set),
            Ok(Request::Set { parameter, value: Some("64 kbit/s".into()), parameters: BTreeMap::new() })
        );
        assert_eq!(read(r#"{"version":1,"command":"state","name":"x"}"#), Ok(Request::State { name: "x".into() }));
        assert_eq!(read(r#"{"version":1,"command":"describe"}"#), Ok(Request::Describe {}));
        for (line, kind) in [
            ("", "request"),
            ("[]", "request"),
            (r#"{"command":"describe"}"#, "version"),
            (r#"{"version":2,"command":"describe"}"#, "version"),
            (r#"{"version":1,"command":"stop"}"#, "request"),
            (r#"{"version":1,"command":"state"}"#, "request"),
            (r#"{"version":1,"command":"state","name":"x","when":"now"}"#, "request"),
        ] {
            assert_eq!(read(line), Err(kind), "{line}");
        }
        let request = Request::Get { parameter: "radio.link.rate".into() };
        assert_eq!(Request::read(&request.line()), Ok(request));
    }
}
