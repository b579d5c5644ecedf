// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files and folders where somebody else may have put something first: no name is followed through a
//! link that another user planted, and what is written is always a file of its own.
//!
//! A path is walked one name at a time, each through the descriptor of the folder before it, so that
//! nothing can be exchanged between the look and the step.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, linkat, unlinkat};

/// As many links as the kernel follows in one path.
const MOST_LINKS: usize = 40;
const FOLDER_MODE: Mode = Mode::from_bits_truncate(0o777);
const FILE_MODE: Mode = Mode::from_bits_truncate(0o666);
const WRITTEN_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;
/// Names of the files that this process has open.
const OWN_DESCRIPTORS: &str = "/proc/self/fd";

static OWNERS_MEAN_NOTHING: AtomicBool = AtomicBool::new(false);

/// Tells that owners of files say nothing here: in the guest of a warp run everything belongs to users of the
/// host, which has looked at the folder already.
pub fn ignore_owners() {
    OWNERS_MEAN_NOTHING.store(true, Ordering::Relaxed);
}

/// Makes the file at `path`, which must not exist.
///
/// # Errors
/// The system's, and when a link on the way belongs to somebody else.
pub fn create_new(path: &Path) -> io::Result<File> {
    let (folder, name) = parent(path)?;
    create_in(&folder, &name, OFlag::empty())
}

/// The same for a file that only grows.
///
/// # Errors
/// Those of [`create_new`].
pub fn create_appending(path: &Path) -> io::Result<File> {
    let (folder, name) = parent(path)?;
    create_in(&folder, &name, OFlag::O_APPEND)
}

/// Makes the file at `path` anew. What has the name already (a file, a link, a FIFO) loses it and stays
/// untouched under any other name that it has.
///
/// # Errors
/// Those of [`create_new`]; also when a folder has the name.
pub fn fresh(path: &Path) -> io::Result<File> {
    let (folder, name) = parent(path)?;
    fresh_in(&folder, &name)
}

/// Temporary path at which a file is written before it replaces `path`.
pub fn temporary(path: &Path) -> PathBuf {
    path.with_file_name(temporary_name(path.file_name().unwrap_or_default()))
}

fn temporary_name(name: &OsStr) -> String {
    format!(".{}.new", name.to_string_lossy())
}

/// Writes a new version of `path` beside it with `write`, then puts it in place in one step.
///
/// # Errors
/// Those of [`fresh`] and of `write`; the old version is left then.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let (folder, name) = parent(path)?;
    let new = temporary_name(&name);
    let mut file = fresh_in(&folder, OsStr::new(&new))?;
    let result = write(&mut file)
        .and_then(|()| renameat(&folder, new.as_str(), &folder, name.as_os_str()).map_err(io::Error::from));
    if result.is_err() {
        let _ = unlinkat(&folder, new.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    result
}

/// As [`replace`], for what is written for long: where the file system can, the new version has no name until it is
/// whole, so that a process that is killed leaves nothing.
///
/// # Errors
/// Those of [`replace`].
pub fn replace_unnamed(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let (folder, name) = parent(path)?;
    let flags = OFlag::O_TMPFILE | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let unnamed = openat(&folder, ".", flags, FILE_MODE).ok().filter(|_| Path::new(OWN_DESCRIPTORS).exists());
    let Some(mut file) = unnamed.map(File::from) else { return replace(path, write) };
    write(&mut file)?;
    let new = temporary_name(&name);
    remove_in(&folder, OsStr::new(&new))?;
    let own = format!("{OWN_DESCRIPTORS}/{}", file.as_raw_fd());
    // A link does not replace what has the name; renaming does.
    linkat(&folder, own.as_str(), &folder, new.as_str(), AtFlags::AT_SYMLINK_FOLLOW)?;
    renameat(&folder, new.as_str(), &folder, name.as_os_str()).map_err(|errno| {
        let _ = unlinkat(&folder, new.as_str(), UnlinkatFlags::NoRemoveDir);
        io::Error::from(errno)
    })
}

/// Opens the regular file at `path` to write over what it holds.
///
/// # Errors
/// The system's, and when it is no regular file, or has other names.
pub fn open_to_overwrite(path: &Path) -> io::Result<File> {
    let (folder, name) = parent(path)?;
    let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(openat(&folder, name.as_os_str(), flags, Mode::empty())?);
    let about = file.metadata()?;
    if !about.is_file() || about.nlink() != 1 {
        return Err(io::Error::other("it is not a regular file, or has several hard links"));
    }
    Ok(file)
}

/// Opens what a user named for output: a new file, or what is there, a device or a pipe included.
///
/// # Errors
/// The system's, and when a link on the way, or at its end, belongs to somebody else.
pub fn output(path: &Path) -> io::Result<File> {
    let (folder, name) = parent(path)?;
    match fstatat(&folder, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(about) if is_link(&about) && !trusted_link(&folder, &about)? => return Err(planted(path, about.st_uid)),
        Ok(_) | Err(Errno::ENOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_CLOEXEC;
    Ok(openat(&folder, name.as_os_str(), flags, FILE_MODE)?.into())
}

/// The file that output to `path` replaces, behind links, which are followed as in [`output`]; it need not exist. None
/// for what is written to directly: a device or a pipe.
///
/// # Errors
/// The system's, when a link on the way belongs to somebody else, and when a folder has the name.
pub fn file_behind(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::metadata(path) {
        Ok(about) if about.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(about) if !about.is_file() => return Ok(None),
        _ => {}
    }
    let mut file = path.to_owned();
    for _ in 0..MOST_LINKS {
        let (folder, name) = parent(&file)?;
        match fstatat(&folder, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(about) if is_link(&about) && !trusted_link(&folder, &about)? => {
                return Err(planted(&file, about.st_uid));
            }
            Ok(about) if is_link(&about) => file.set_file_name(readlinkat(&folder, name.as_os_str())?),
            Ok(_) | Err(Errno::ENOENT) => return Ok(Some(file)),
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Errno::ELOOP.into())
}

/// Opens the file at `path`, which is there only to be locked, and makes it if it is missing.
///
/// # Errors
/// Those of [`create_new`]; also when a link has the name.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let (folder, name) = parent(path)?;
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    Ok(openat(&folder, name.as_os_str(), flags, FILE_MODE)?.into())
}

/// Copies the file `from` into the new file `to`.
///
/// # Errors
/// Those of [`create_new`], and the system's.
pub fn copy(from: &Path, to: &Path) -> io::Result<u64> {
    let mut from = open_regular(from)?;
    io::copy(&mut from, &mut create_new(to)?)
}

/// Opens a regular file for reading: a FIFO or a device in its place would have no end.
///
/// # Errors
/// The system's, and when it is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = match () {
        () if kind.is_dir() => "folder",
        () if kind.is_fifo() => "FIFO",
        () if kind.is_socket() => "socket",
        () => "device",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is a {what}, not a file")))
}

/// Reads a whole regular file.
///
/// # Errors
/// Those of [`open_regular`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read;
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Age of a folder that [`make_folder`] has seen to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    /// It was made then, and is empty.
    New,
    /// It was there before.
    Before,
}

/// Makes the folder `path` with those that it lies in, where they are missing. One that exists is taken
/// only if nobody else decides on what is in it: see [`why_not_ours`].
///
/// # Errors
/// The system's; when a link on the way belongs to somebody else; when the folder is not to be used.
pub fn make_folder(path: &Path) -> io::Result<Made> {
    let (folder, made) = walk(path, true)?;
    if made {
        // Some file systems give every file an owner of their own.
        return Ok(Made::New);
    }
    match why_not_ours(&fstat(&folder)?) {
        None => Ok(Made::Before),
        Some(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
    }
}

/// True if the folder at `path` is empty.
///
/// # Errors
/// The system's.
pub fn is_empty(path: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(path)?.next().is_none())
}

/// Reason not to record in a folder: its owner, or everybody, could exchange the files while they are written.
fn why_not_ours(about: &FileStat) -> Option<String> {
    let (owner, mode) = (about.st_uid, about.st_mode);
    if !(is_trusted(owner) || owner == overflow_owner() && in_user_namespace()) {
        return Some(format!(
            "it belongs to user {owner}, who could replace its contents; name a directory that does not exist yet, \
             and it will be created as yours"
        ));
    }
    (mode & WRITTEN_BY_ALL != 0 && mode & STICKY == 0 && !OWNERS_MEAN_NOTHING.load(Ordering::Relaxed)).then(|| {
        "it is world-writable, so anybody could replace its contents: `chmod o-w` it, or name a directory that does \
         not exist yet"
            .into()
    })
}

/// The folder in which `path` lies, and its name there.
fn parent(path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok((walk(folder, false)?.0, name.to_owned()))
}

/// Opens the folder `path`, and says whether it was made.
fn walk(path: &Path, make: bool) -> io::Result<(OwnedFd, bool)> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let open = |path: &str| nix::fcntl::open(path, flags | OFlag::O_DIRECTORY, Mode::empty());
    let mut names = names_of(path);
    // The first name of an absolute path is that of the root.
    let mut folder = open(if path.is_absolute() { "/" } else { "." });
    let (mut links, mut made) = (0, false);
    while let Some(name) = names.pop_front() {
        if name == "/" {
            folder = open("/");
            continue;
        }
        let here = folder?;
        let open = || openat(&here, name.as_os_str(), flags | OFlag::O_NOFOLLOW, Mode::empty());
        let mut next = open();
        made = false;
        if make && matches!(next, Err(Errno::ENOENT)) {
            made = match mkdirat(&here, name.as_os_str(), FOLDER_MODE) {
                Ok(()) => true,
                Err(Errno::EEXIST) => false,
                Err(errno) => return Err(errno.into()),
            };
            next = open();
        }
        let next = next?;
        let about = fstat(&next)?;
        if !is_link(&about) {
            if SFlag::from_bits_truncate(about.st_mode & SFlag::S_IFMT.bits()) != SFlag::S_IFDIR {
                return Err(Errno::ENOTDIR.into());
            }
            folder = Ok(next);
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(Errno::ELOOP.into());
        }
        if !trusted_link(&here, &about)? {
            return Err(planted(Path::new(&name), about.st_uid));
        }
        let mut target = names_of(Path::new(&readlinkat(&next, "")?));
        target.append(&mut names);
        names = target;
        folder = Ok(here);
    }
    Ok((folder?, made))
}

fn names_of(path: &Path) -> VecDeque<OsString> {
    let kept = path.components().filter(|component| *component != Component::CurDir);
    kept.map(|component| component.as_os_str().to_owned()).collect()
}

fn create_in(folder: &OwnedFd, name: &OsStr, more: OFlag) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | more;
    Ok(openat(folder, name, flags, FILE_MODE)?.into())
}

fn fresh_in(folder: &OwnedFd, name: &OsStr) -> io::Result<File> {
    remove_in(folder, name)?;
    create_in(folder, name, OFlag::empty())
}

fn remove_in(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(folder, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        // Where names may not be looked up, nobody knows what is there.
        Err(Errno::EACCES) if fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_err() => Err(Errno::EACCES.into()),
        Err(errno) => {
            let error = io::Error::from(errno);
            let about = format!("`{}` is in the way and cannot be removed: {error}", name.to_string_lossy());
            Err(io::Error::new(error.kind(), about))
        }
    }
}

fn is_link(about: &FileStat) -> bool {
    about.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits()
}

/// True if a link in `folder` may be followed. In a user namespace root's links look like anybody's; there it
/// counts who could have put the link where it is.
fn trusted_link(folder: &impl AsFd, about: &FileStat) -> io::Result<bool> {
    if is_trusted(about.st_uid) {
        return Ok(true);
    }
    let put_by_anybody = fstat(folder)?.st_mode & WRITTEN_BY_ALL != 0;
    Ok(about.st_uid == overflow_owner() && in_user_namespace() && !put_by_anybody)
}

fn is_trusted(owner: u32) -> bool {
    owner == 0 || owner == geteuid().as_raw() || OWNERS_MEAN_NOTHING.load(Ordering::Relaxed)
}

/// The owner that files have whose owner is not known in this user namespace.
fn overflow_owner() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/overflowuid").unwrap_or_default();
    text.trim().parse().unwrap_or(65_534)
}

fn in_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().ne(["0", "0", "4294967295"])
}

fn planted(path: &Path, owner: u32) -> io::Error {
    let what = format!(
        "`{}` is a symbolic link of user {owner} and is not followed; use the target path, or remove the link",
        path.display()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    /// A user who is neither root nor whoever runs the tests.
    const STRANGER: u32 = 54_321;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("x");
        fs::write(&path, "old").unwrap();
        replace(&path, |_| Err(io::Error::other("no"))).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_version_has_no_name_until_it_is_whole() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("x");
        fs::write(&path, "old").unwrap();
        let seen = |file: &mut File| {
            io::Write::write_all(file, b"new")?;
            assert_eq!(fs::read(&path).unwrap(), b"old");
            // A file system without such files has the temporary name.
            assert!(names(base.path()) == ["x"] || names(base.path()) == [".x.new", "x"]);
            Ok(())
        };
        replace_unnamed(&path, seen).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        replace_unnamed(&path, |_| Err(io::Error::other("no"))).unwrap_err();
        assert_eq!((fs::read(&path).unwrap(), names(base.path())), (b"new".to_vec(), vec!["x".to_owned()]));
        fs::create_dir(temporary(&path)).unwrap();
        let error = replace_unnamed(&path, |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("`.x.new` is in the way"), "{error}");
        replace_unnamed(&base.path().join("none/x"), |_| Ok(())).unwrap_err();
    }

    /// Creates a trap in the place of a file that is going to be written, beside `victim`.
    fn plant(kind: &str, at: &Path, victim: &Path) {
        match kind {
            "link" => symlink(victim, at).unwrap(),
            "dangling link" => symlink(victim.with_extension("new"), at).unwrap(),
            "hard link" => fs::hard_link(victim, at).unwrap(),
            "FIFO" => mkfifo(at, Mode::S_IRWXU).unwrap(),
            "file" => fs::write(at, "planted").unwrap(),
            _ => unreachable!(),
        }
    }

    #[test]
    fn nothing_is_written_through_what_was_planted_in_a_files_place() {
        for kind in ["link", "dangling link", "hard link", "FIFO", "file"] {
            let base = tempfile::tempdir().unwrap();
            let (victim, folder) = (base.path().join("victim"), base.path().join("run"));
            fs::write(&victim, "secret").unwrap();
            fs::create_dir(&folder).unwrap();
            let path = folder.join("run.json");
            plant(kind, &temporary(&path), &victim);
            replace(&path, |file| io::Write::write_all(file, b"mine")).unwrap();
            plant(kind, &temporary(&path), &victim);
            replace_unnamed(&path, |file| io::Write::write_all(file, b"mine")).unwrap();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "secret", "{kind}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "mine", "{kind}");
            assert_eq!(names(&folder), ["run.json"], "{kind}");
            assert_eq!(names(base.path()), ["run", "victim"], "{kind}");

            let log = folder.join("events.arrow");
            plant(kind, &log, &victim);
            create_new(&log).unwrap_err();
            create_appending(&log).unwrap_err();
            copy(&victim, &log).unwrap_err();
            fresh(&log).unwrap();
            assert_eq!(fs::metadata(&log).unwrap().len(), 0, "{kind}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "secret", "{kind}");
            assert_eq!(names(base.path()), ["run", "victim"], "{kind}");
        }
    }

    #[test]
    fn a_folder_in_a_files_place_is_named_and_stays() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("run.json");
        fs::create_dir(temporary(&path)).unwrap();
        let error = replace(&path, |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("`.run.json.new` is in the way"), "{error}");
        assert_eq!(names(base.path()), [".run.json.new"]);
    }

    #[test]
    fn only_a_file_of_its_own_is_written_over() {
        let base = tempfile::tempdir().unwrap();
        let victim = base.path().join("victim");
        fs::write(&victim, "secret").unwrap();
        open_to_overwrite(&victim).unwrap();
        for kind in ["link", "hard link", "FIFO"] {
            let path = base.path().join("run.json");
            plant(kind, &path, &victim);
            open_to_overwrite(&path).unwrap_err();
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn output_replaces_the_file_behind_ones_own_links() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        fs::create_dir(at("there")).unwrap();
        symlink("there/next", at("link")).unwrap();
        symlink(at("there/file"), at("there/next")).unwrap();
        assert_eq!(file_behind(&at("link")).unwrap(), Some(at("there/file")), "it need not exist");
        fs::write(at("there/file"), "old").unwrap();
        assert_eq!(file_behind(&at("link")).unwrap(), Some(at("there/file")));
        assert_eq!(file_behind(&at("new")).unwrap(), Some(at("new")));
        assert_eq!(file_behind(Path::new("/dev/null")).unwrap(), None);
        assert_eq!(file_behind(&at("there")).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        symlink("around", at("around")).unwrap();
        assert!(file_behind(&at("around")).is_err());
        if geteuid().is_root() {
            symlink("there/file", at("strange")).unwrap();
            std::os::unix::fs::lchown(at("strange"), Some(STRANGER), None).unwrap();
            assert!(file_behind(&at("strange")).unwrap_err().to_string().contains("is not followed"));
        }
    }

    #[test]
    fn ones_own_links_are_followed() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("there")).unwrap();
        symlink("there", base.path().join("relative")).unwrap();
        symlink(base.path().join("relative"), base.path().join("absolute")).unwrap();
        make_folder(&base.path().join("absolute/../absolute/run")).unwrap();
        create_new(&base.path().join("there/run/x")).unwrap();
        fresh(&base.path().join("relative/run/x")).unwrap();
        symlink("loop", base.path().join("loop")).unwrap();
        assert_eq!(create_new(&base.path().join("loop/x")).unwrap_err().raw_os_error(), Some(Errno::ELOOP as i32));
        let wrong = create_new(&base.path().join("there/run/x/y")).unwrap_err();
        assert_eq!(wrong.kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn what_everybody_may_write_to_is_no_folder_for_a_run_but_with_the_sticky_bit() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("open");
        fs::create_dir(&folder).unwrap();
        let mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o777);
        let error = make_folder(&folder).unwrap_err().to_string();
        assert!(error.contains("it is world-writable") && error.contains("chmod o-w"), "{error}");
        // What is made in it is ours.
        make_folder(&folder.join("run")).unwrap();
        for taken in [0o1777, 0o775, 0o700] {
            mode(taken);
            make_folder(&folder).unwrap();
        }
    }

    #[test]
    fn folders_and_links_of_others_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let (folder, link) = (base.path().join("theirs"), base.path().join("link"));
        fs::create_dir(&folder).unwrap();
        symlink(&folder, &link).unwrap();
        make_folder(&link).unwrap();
        if chown(&folder, Some(STRANGER), None).is_err() {
            // An ordinary user has no folder of somebody else's to be shown, but root's, which are taken.
            assert!(!geteuid().is_root());
            let root = fstat(File::open("/usr").unwrap()).unwrap();
            assert_eq!(why_not_ours(&root), None);
            return;
        }
        for path in [&folder, &link] {
            let error = make_folder(path).unwrap_err().to_string();
            assert!(error.contains("belongs to user 54321") && error.contains("will be created as yours"), "{error}");
        }
        make_folder(&folder.join("run")).unwrap();
        std::os::unix::fs::lchown(&link, Some(STRANGER), None).unwrap();
        for refused in [
            make_folder(&link.join("other")).unwrap_err(),
            create_new(&link.join("x")).unwrap_err(),
            replace(&link.join("x"), |_| Ok(())).unwrap_err(),
            output(&link).unwrap_err(),
        ] {
            let error = refused.to_string();
            assert!(error.contains("is a symbolic link of user 54321"), "{error}");
        }
        assert_eq!(names(&folder), ["run"]);
    }

    #[test]
    fn only_regular_files_are_read() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("x");
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("FIFO"));
        assert!(read(base.path()).unwrap_err().to_string().contains("folder"));
        assert!(read(Path::new("/dev/zero")).unwrap_err().to_string().contains("device"));
    }

    #[test]
    fn output_may_go_to_a_device_or_over_a_file() {
        let base = tempfile::tempdir().unwrap();
        output(Path::new("/dev/null")).unwrap();
        let path = base.path().join("x");
        fs::write(&path, "old").unwrap();
        symlink("x", base.path().join("link")).unwrap();
        output(&base.path().join("link")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }
}
