// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Numbers on the wire: LEB128, seven bits a byte, the lowest first.

use std::io;

/// Appends `number`.
pub fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends all of `numbers`.
pub fn put_all(bytes: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| put(bytes, *number));
}

/// Error for bytes of another protocol.
pub fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "does not use the protocol of `airpath send` and `airpath recv`")
}

/// Takes a number from the beginning of `bytes`.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] where there is none.
pub fn take(bytes: &mut &[u8]) -> io::Result<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(malformed)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(malformed())
}

/// Takes a number of a smaller type.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] where there is none, or where the type has no room for the number.
pub fn take_as<T: TryFrom<u64>>(bytes: &mut &[u8]) -> io::Result<T> {
    T::try_from(take(bytes)?).map_err(|_| malformed())
}

/// Text in UTF-8.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for other bytes.
pub fn text(bytes: &[u8]) -> io::Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| malformed())
}
