// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The host's network behind the server's end, in user space: slirp4netns in
//! the server's namespace hands what the client sends to sockets of the host.
//! It changes nothing of the host (no address, rule or setting), so nothing
//! can be left behind, and it works for root and ordinary users alike.
#![allow(unsafe_code)]

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::fcntl::OFlag;
use nix::unistd::{geteuid, pipe2};

use crate::capability;
use crate::error::{Attempting, LiveError, Result};
use crate::ports::tun_available;
use crate::session::SessionEnd;

const PROGRAM: &str = "slirp4netns";
const INTERFACE: &str = "internet";
const SETTINGS: [&str; 2] = ["ipv4/ip_forward", "ipv4/conf/internet/proxy_arp"];

/// Connects the server's end of a session made with
/// [`FarEnd::Internet`](crate::session::FarEnd::Internet) to the network that
/// the calling thread is in. Returns the helper's process id; it ends with the
/// run, and is reaped with everything else.
///
/// IPv4 only: slirp4netns has no stable IPv6.
///
/// # Errors
/// [`LiveError::Missing`] names the package to install,
/// [`LiveError::Forbidden`] what the system refuses.
pub fn connect(server: &SessionEnd, mtu_bytes: u32) -> Result<u32> {
    tun_available().map_err(|error| {
        LiveError::Forbidden(format!(
            "the internet cannot be reached from here: {PROGRAM} needs /dev/net/tun, which cannot \
             be opened ({error}); load the module `tun` and make the device readable and writable \
             for this user (`chmod 666 /dev/net/tun`), or run this command as root"
        ))
    })?;
    let (ready, announce) = pipe2(OFlag::O_CLOEXEC).attempting(|| "make a pipe".into())?;
    let mut helper = start(server, mtu_bytes, &announce)?;
    drop(announce);
    let mut answer = [0; 1];
    let announced = fs::File::from(ready).read(&mut answer);
    let mut messages = helper.stderr.take();
    if !matches!(announced, Ok(1)) {
        let mut text = String::new();
        if let Some(messages) = &mut messages {
            let _ = messages.read_to_string(&mut text);
        }
        return Err(LiveError::Request(format!("{PROGRAM} exited before it was ready: {}", text.trim())));
    }
    // It chats; unread, a full pipe would stop it one day.
    std::thread::Builder::new()
        .name("internet".into())
        .spawn(move || messages.map(|mut messages| io::copy(&mut messages, &mut io::sink())))
        .attempting(|| format!("start a thread for {PROGRAM}"))?;
    let refused = server.network().run(|| {
        SETTINGS.iter().find_map(|name| {
            let written = fs::write(format!("/proc/sys/net/{name}"), "1");
            written.err().map(|error| (*name, error))
        })
    })?;
    match refused {
        None => Ok(helper.id()),
        Some((name, error)) => {
            Err(LiveError::system(format!("set net.{} in the server's namespace", name.replace('/', ".")), error))
        }
    }
}

fn start(server: &SessionEnd, mtu_bytes: u32, announce: &OwnedFd) -> Result<Child> {
    let network = server.network().as_fd().as_raw_fd();
    let ready = announce.as_raw_fd();
    let raise_ambient = !geteuid().is_root();
    let mut command = Command::new(PROGRAM);
    command
        .args(["--configure", "--disable-host-loopback"])
        .arg(format!("--mtu={}", mtu_bytes.min(65_521)))
        .arg(format!("--ready-fd={ready}"))
        .arg("--netns-type=path")
        .arg(format!("/proc/self/fd/{network}"))
        .arg(INTERFACE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let prepare = move || {
        for descriptor in [network, ready] {
            // Only the child's own table of descriptors is changed.
            // SAFETY: fcntl with integer arguments.
            if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // Out of reach of the terminal's signals.
        nix::unistd::setsid()?;
        if raise_ambient {
            capability::raise_ambient(&capability::FOR_COMMANDS)?;
        }
        Ok(())
    };
    // SAFETY: system calls only; no allocation, no lock.
    unsafe { command.pre_exec(prepare) };
    match command.spawn() {
        Ok(child) => Ok(child),
        Err(error) if error.kind() == io::ErrorKind::NotFound || !is_installed() => Err(LiveError::Missing(format!(
            "the internet cannot be reached from here: {PROGRAM} is not installed; install \
                 the package `{PROGRAM}` (`apt install {PROGRAM}`, `dnf install {PROGRAM}`)"
        ))),
        Err(error) => Err(LiveError::system(format!("start {PROGRAM}"), error)),
    }
}

/// True if the program is anywhere on the path: a folder there that may not be entered makes the kernel refuse
/// a program that does not exist.
fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file())
}
