// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Folder of the sockets: one for each run of a user, in a folder that is open to them only.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;

/// More runs at a time than anybody controls by hand.
const RUNS: u32 = 100_000;

/// The folder's name within `$XDG_RUNTIME_DIR`.
pub const IN_RUNTIME: &str = "airpath";
/// The folder's name within the temporary directory, before the user's number.
pub const IN_TEMPORARY: &str = "airpath-";
/// The end of a socket's name, behind the number of its run.
pub const SOCKET_SUFFIX: &str = ".sock";

/// The folder of this user's sockets: within `$XDG_RUNTIME_DIR` where that is this user's, otherwise
/// within the temporary directory.
pub fn path() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let ours = |folder: &PathBuf| folder.is_absolute() && fs::metadata(folder).is_ok_and(|about| is_ours(&about));
    match runtime.filter(ours) {
        Some(runtime) => runtime.join(IN_RUNTIME),
        None => std::env::temp_dir().join(format!("{IN_TEMPORARY}{}", user())),
    }
}

/// This user's number outside of the user namespace in which the process may be.
fn user() -> u32 {
    let own = geteuid().as_raw();
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let outside = map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(|word| word.parse::<u32>().ok());
        let (inside, outside, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
        outside.checked_add(own.checked_sub(inside).filter(|offset| *offset < count)?)
    });
    outside.unwrap_or(own)
}

fn is_ours(about: &fs::Metadata) -> bool {
    about.is_dir() && about.uid() == geteuid().as_raw()
}

/// The folder, open: names within it are looked up through the descriptor, so that no path is too long
/// for a socket.
pub struct Folder {
    path: PathBuf,
    open: File,
}

impl Folder {
    /// The folder at `path`; with `make`, it is made where it is missing.
    ///
    /// # Errors
    /// When it is not there, or is not this user's alone.
    pub fn open(path: &Path, make: bool) -> io::Result<Folder> {
        if make {
            match DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        let open = File::options().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(path)?;
        let about = open.metadata()?;
        if !is_ours(&about) || about.mode() & 0o077 != 0 {
            let message = format!("{} belongs to another user or is accessible to others; remove it", path.display());
            return Err(io::Error::other(message));
        }
        Ok(Folder { path: path.to_owned(), open })
    }

    /// The way to the socket of run `number`.
    fn way(&self, number: u32) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{number}{SOCKET_SUFFIX}", self.open.as_raw_fd()))
    }

    /// Connects to run `number`; a socket at which nobody listens any more is removed.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn connect(&self, number: u32) -> io::Result<UnixStream> {
        let way = self.way(number);
        UnixStream::connect(&way).inspect_err(|error| {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                self.locked(|| {
                    // Another run may have taken the place meanwhile.
                    if UnixStream::connect(&way).is_err() {
                        let _ = fs::remove_file(&way);
                    }
                });
            }
        })
    }

    /// The numbers of all sockets, in order.
    pub fn numbers(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let number = |name: std::ffi::OsString| name.to_str()?.strip_suffix(SOCKET_SUFFIX)?.parse().ok();
        let mut numbers: Vec<u32> = entries.filter_map(|entry| number(entry.file_name())).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Listens under the first number that is free.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen(mut self) -> io::Result<Socket> {
        loop {
            match self.listen_here() {
                // Another process found the folder empty before it could be locked, and removed it.
                Err(_) if self.is_removed() => self = Folder::open(&self.path, true)?,
                made => return made.map(|(number, listener)| Socket { number, listener, folder: self }),
            }
        }
    }

    fn is_removed(&self) -> bool {
        self.open.metadata().is_ok_and(|about| about.nlink() == 0)
    }

    fn listen_here(&self) -> io::Result<(u32, UnixListener)> {
        self.locked(|| {
            for number in self.numbers() {
                let way = self.way(number);
                if UnixStream::connect(&way).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                    let _ = fs::remove_file(way);
                }
            }
            for number in 1..RUNS {
                match UnixListener::bind(self.way(number)) {
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                    Err(error) => return Err(error),
                    Ok(listener) => {
                        fs::set_permissions(self.way(number), Permissions::from_mode(0o600))?;
                        return Ok((number, listener));
                    }
                }
            }
            Err(io::Error::other("too many active runs"))
        })
    }

    /// Does `work` while nobody else adds or removes sockets.
    fn locked<T>(&self, work: impl FnOnce() -> T) -> T {
        // Without a lock nothing worse happens than that two runs want one number.
        let lock = self.open.try_clone().ok().and_then(|open| Flock::lock(open, FlockArg::LockExclusive).ok());
        let outcome = work();
        drop(lock);
        outcome
    }

    /// Removes the folder if nothing is in it any more.
    pub fn tidy(&self) {
        self.locked(|| {
            let _ = fs::remove_dir(&self.path);
        });
    }
}

/// The socket of a run; dropping it takes it away.
pub struct Socket {
    /// The number of the run.
    pub number: u32,
    /// Socket on which clients connect.
    pub listener: UnixListener,
    folder: Folder,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.way(self.number));
        self.folder.tidy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_the_owners_numbered_and_gone_afterwards() {
        let base = tempfile::tempdir().unwrap();
        // Far longer than the address of a socket may be.
        let deep = base.path().join("x".repeat(120));
        fs::create_dir(&deep).unwrap();
        let path = deep.join("airpath");
        let listen = || Folder::open(&path, true).unwrap().listen().unwrap();
        let (one, two) = (listen(), listen());
        assert_eq!((one.number, two.number), (1, 2));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(path.join("1.sock")).unwrap().mode() & 0o777, 0o600);
        let folder = Folder::open(&path, false).unwrap();
        folder.connect(2).unwrap();
        drop(one);
        assert_eq!(folder.numbers(), [2]);
        assert_eq!(listen().number, 1);
        drop(two);
        assert!(!path.exists());
    }

    #[test]
    fn stale_sockets_are_recognised() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("airpath");
        let folder = Folder::open(&path, true).unwrap();
        // A listener that is closed leaves its socket in the folder, as a killed process does.
        for number in [1, 7] {
            drop(UnixListener::bind(path.join(format!("{number}.sock"))).unwrap());
        }
        assert_eq!(folder.numbers(), [1, 7]);
        folder.connect(7).unwrap_err();
        assert_eq!(folder.numbers(), [1]);
        let socket = Folder::open(&path, true).unwrap().listen().unwrap();
        assert_eq!((socket.number, folder.numbers()), (1, vec![1]));
    }

    #[test]
    fn a_folder_that_is_removed_before_the_run_listens_is_made_again() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("airpath");
        let opened = Folder::open(&path, true).unwrap();
        // `airpath runs` tidies up what is empty.
        Folder::open(&path, false).unwrap().tidy();
        assert!(!path.exists());
        let socket = opened.listen().unwrap();
        assert_eq!(Folder::open(&path, false).unwrap().numbers(), [socket.number]);
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), Permissions::from_mode(0o755)).unwrap();
        assert!(Folder::open(base.path(), true).is_err());
    }
}
