// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files read whole, up to a stated length: a device or a pipe may have no end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest scenario that is read, in bytes.
pub const SCENARIO_BYTES: u64 = 16_000_000;
/// The longest trace or capture that is read, in bytes: days of a trace in milliseconds.
pub const DATA_BYTES: u64 = 256_000_000;

/// The content of the file at `path`, which may be a pipe, of at most `most` bytes.
///
/// # Errors
/// When it cannot be read, or is longer.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let too_long = || {
        let what = format!("it is longer than {} MB, the limit for such a file", most / 1_000_000);
        io::Error::new(io::ErrorKind::FileTooLarge, what)
    };
    if file.metadata()?.len() > most {
        return Err(too_long());
    }
    let mut content = Vec::new();
    file.by_ref().take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most { Err(too_long()) } else { Ok(content) }
}

/// The text of the file at `path`, of at most `most` bytes.
///
/// # Errors
/// When it cannot be read, is longer, or is no text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("it is not text: {}", error.utf8_error())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_and_what_fits_is_read() {
        let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/bounded.rs"));
        let whole = std::fs::read_to_string(file).unwrap();
        let bytes = whole.len() as u64;
        assert_eq!(read_text(file, bytes).unwrap(), whole);
        assert_eq!(read(file, bytes - 1).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read(Path::new("/dev/zero"), 1000).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let program = std::env::current_exe().unwrap();
        assert_eq!(read_text(&program, 1 << 40).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
