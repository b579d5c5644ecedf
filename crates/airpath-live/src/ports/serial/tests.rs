// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

use std::fs;

use super::*;

#[test]
fn link_leads_to_the_line_and_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("line");
    let spec = LineSpec::Pseudo { link: Some(link.clone()) };
    // A killed run leaves a link to a terminal that is gone.
    std::os::unix::fs::symlink("/dev/pts/999999", &link).unwrap();
    let line = SerialLine::open(&spec, None).unwrap();
    assert!(fs::read_link(&link).unwrap().starts_with("/dev/pts"));
    assert_eq!(line.name(), link.to_str().unwrap());
    let refusal = SerialLine::open(&spec, None).unwrap_err().to_string();
    assert!(refusal.contains("exists already"), "{refusal}");
    drop(line);
    assert!(fs::symlink_metadata(&link).is_err());
}

#[test]
fn modes_are_restored() {
    let pty = SerialLine::open(&LineSpec::Pseudo { link: None }, None).unwrap();
    let keeps_open = fs::File::options().read(true).write(true).open(pty.name()).unwrap();
    let mut modes = tcgetattr(&keeps_open).unwrap();
    modes.local_flags |= nix::sys::termios::LocalFlags::ECHO;
    tcsetattr(&keeps_open, SetArg::TCSANOW, &modes).unwrap();
    let line = SerialLine::open(&LineSpec::Device(pty.name().into()), Some("9600".parse().unwrap())).unwrap();
    assert!(!tcgetattr(&keeps_open).unwrap().local_flags.contains(nix::sys::termios::LocalFlags::ECHO));
    drop(line);
    assert!(tcgetattr(&keeps_open).unwrap().local_flags.contains(nix::sys::termios::LocalFlags::ECHO));
}
