// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Names and passwords of PPP: read from a file, as everybody on a host sees the words of a command.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use airpath_ppp::{Authentication, Credentials, Method};

use crate::error::{Attempting, LiveError, Result};

/// Bytes of the longest name or password: PAP tells their lengths in a byte.
const MOST_BYTES: usize = 255;
/// Name that our challenges bear.
const CHALLENGER: &str = "airpath";

/// Options of who the two ends are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthenticationOptions {
    /// File with a name and its password a line.
    pub secrets: Option<PathBuf>,
    /// Our name, when the peer asks.
    pub user: Option<String>,
    /// Method by which the peer must say who it is: with any name of the file.
    pub demanded: Option<Method>,
}

impl AuthenticationOptions {
    /// Refuses options that need one another.
    pub(super) fn check(&self) -> std::result::Result<(), String> {
        match (&self.secrets, self.user.is_some() || self.demanded.is_some()) {
            (None, true) => {
                Err("`user` and `auth` need passwords: add secrets=FILE, a file with a name and its password a line"
                    .into())
            }
            (Some(_), false) => {
                Err("`secrets` is of no use alone: add user=NAME to say who we are when the peer asks, \
                                     auth=chap or auth=pap to ask the peer, or both"
                    .into())
            }
            _ => Ok(()),
        }
    }

    /// Reads the file.
    pub(super) fn read(&self) -> Result<Authentication> {
        let Some(path) = &self.secrets else { return Ok(Authentication::default()) };
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            LiveError::Request(format!(
                "the file of passwords, {shown}, cannot be read ({error}); see `secrets` in --ppp"
            ))
        })?;
        let peers = parse(&text).map_err(|what| LiveError::Request(format!("{shown}: {what}")))?;
        let ours =
            self.user.as_ref().map(|user| {
                peers.iter().find(|one| one.name == user.as_bytes()).cloned().ok_or_else(|| {
                    LiveError::Request(format!("{shown} has no password of `{user}`; add a line with both"))
                })
            });
        let mut secret = [0; 16];
        File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut secret))
            .attempting(|| "draw a random number".into())?;
        let (ours, challenger) = (ours.transpose()?, CHALLENGER.into());
        Ok(Authentication { ours, demanded: self.demanded, peers, challenger, secret })
    }
}

/// Names and passwords: two words a line, or with double quotes around them; `#` begins a comment.
fn parse(text: &str) -> std::result::Result<Vec<Credentials>, String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {what}; write a name and its password", number + 1);
        match &words(line).ok_or_else(|| wrong("a double quote is missing"))?[..] {
            [] => {}
            [name, password] if name.len().max(password.len()) <= MOST_BYTES => {
                found.push(Credentials { name: name.clone().into(), password: password.clone().into() });
            }
            [_, _] => return Err(wrong("a name or password is longer than 255 bytes")),
            _ => return Err(wrong("it has not two words")),
        }
    }
    Ok(found)
}

/// The words of a line; none if a quote does not end.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut found, mut rest) = (Vec::new(), line.trim_start());
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        found.push(word.to_owned());
        rest = behind.trim_start();
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_are_read_and_mistakes_have_their_line() {
        let text = "# of the lab\nmobile  s3cret # a comment\n\n\"two words\" \"pass # word\"\n";
        let read = parse(text).unwrap();
        let shown: Vec<(&[u8], &[u8])> = read.iter().map(|one| (&one.name[..], &one.password[..])).collect();
        assert_eq!(shown, [(&b"mobile"[..], &b"s3cret"[..]), (b"two words", b"pass # word")]);
        assert!(!format!("{read:?}").contains("s3cret"));
        for (text, what) in [
            ("a b\nmobile", "line 2: it has not two words"),
            ("a \"b", "line 1: a double quote"),
            ("a b c", "two words"),
        ] {
            assert!(parse(text).unwrap_err().contains(what), "{text}");
        }
    }

    #[test]
    fn a_user_without_a_password_and_a_missing_file_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets");
        let options = |user: &str| AuthenticationOptions {
            secrets: Some(path.clone()),
            user: Some(user.into()),
            ..AuthenticationOptions::default()
        };
        assert!(options("a").read().unwrap_err().to_string().contains("cannot be read"));
        fs::write(&path, "a b\n").unwrap();
        assert!(options("c").read().unwrap_err().to_string().contains("no password of `c`"));
        let read = options("a").read().unwrap();
        assert!(read.ours.is_some() && read.demanded.is_none() && read.secret != [0; 16]);
    }
}
