// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Credits of the machine at another host as commands in the input log.

use airpath_core::{Credit, PortId};
use serde_json::{Value, json};

/// Key of a credit among commands.
const KEY: &str = "credit";

/// A credit through `port` as JSON.
pub fn written(port: PortId, credit: &Credit) -> String {
    let Credit { taken_packets, taken_bytes, window_packets, window_bytes } = credit;
    json!({ KEY: [port.0, taken_packets, taken_bytes, window_packets, window_bytes] }).to_string()
}

/// The credit in a command, if it is one; `None` inside where it is damaged.
pub fn read(command: &Value) -> Option<Option<(PortId, Credit)>> {
    let numbers = command.get(KEY)?;
    let numbers = numbers.as_array().and_then(|all| all.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>());
    let Some(&[port, taken_packets, taken_bytes, packets, window_bytes]) = numbers.as_deref() else {
        return Some(None);
    };
    let narrow = (u16::try_from(port), u32::try_from(packets));
    let (Ok(port), Ok(window_packets)) = narrow else { return Some(None) };
    Some(Some((PortId(port), Credit { taken_packets, taken_bytes, window_packets, window_bytes })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_come_back_as_they_were_written() {
        let credit = Credit { taken_packets: 3, taken_bytes: 4_000, window_packets: 4, ..Credit::UNLIMITED };
        let value: Value = serde_json::from_str(&written(PortId::SERVER, &credit)).unwrap();
        assert_eq!(read(&value), Some(Some((PortId::SERVER, credit))));
        for damaged in [json!({ "credit": [1, 2] }), json!({ "credit": [70_000, 0, 0, 0, 0] }), json!({ "credit": 1 })]
        {
            assert_eq!(read(&damaged), Some(None));
        }
        assert_eq!(read(&json!({ "enter_state": "x" })), None);
    }
}
