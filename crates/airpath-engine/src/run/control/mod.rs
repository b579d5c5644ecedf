// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The control of a live run: one thread between the socket and the loop, which waits for both and
//! which nothing waits for.

mod desk;
mod desks;
mod elsewhere;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use airpath_live::processor_time::ProcessorTime;
use airpath_log::UserNames;
use airpath_log::verdict::Measurements;
use airpath_scenario::{Running, Scenario};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use serde_json::{Value, json};

use super::RunRequest;
use super::loops::Reach;
use crate::control::around::Around;
use crate::control::folder::{self, Folder, Socket};
use crate::control::protocol::Refusal;
use crate::hosts::channel::Channels;
use crate::hosts::mouth::Mouth;
use crate::hosts::wire::Word;
use desk::Desk;
use desks::Desks;
use elsewhere::{Asked, Elsewhere};

/// Maximum number of clients.
const CLIENTS: usize = 64;
/// A request, or the beginning of one.
type Line = Vec<u8>;

/// The engines of other hosts on the path of a link, and what each says about requests.
pub type Answering<'a> = (&'a Channels, Vec<Receiver<Word>>);

/// The control of a run; dropping it ends it.
pub struct Control {
    /// The number of the run.
    pub number: u32,
    /// The folder in which its socket is.
    pub folder: PathBuf,
    /// Closing it ends the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Opens the socket of the run that `run` and its `links` describe, which are at `reach`. With the engines of
    /// other hosts of each link goes what each says about requests: the near engine asks, and a far one has no socket.
    ///
    /// # Errors
    /// When there is no folder for it, or the system refuses.
    pub fn start(
        run: &RunRequest,
        links: &[RunRequest],
        reach: Vec<Reach>,
        joined: Vec<Option<Answering<'_>>>,
    ) -> io::Result<Control> {
        let of_link = |((request, reach), elsewhere): ((&RunRequest, Reach), Vec<Elsewhere>), about: &Value| Desk {
            reach,
            received_ns: None,
            at_ns: None,
            running: Running::new(&as_recorded(&request.scenario)),
            machine: request.machine.clone(),
            places: request.places(),
            about: about.clone(),
            nested: request.enclosing,
            begun: ProcessorTime::now(),
            calibration: request.calibration_facts,
            elsewhere,
            asked: None,
        };
        let desks = |number, elsewhere: Vec<Vec<Elsewhere>>| {
            let mut about = about(run, number);
            if let (Value::Array(all), [elsewhere]) = (&mut about["hops"], elsewhere.as_slice()) {
                // The scenario of one link is that of its part here.
                all.extend(elsewhere.iter().flat_map(|there| there.hops().to_vec()).map(Value::from));
            }
            // Of several links together it is told, and not of each.
            let own = if links.len() == 1 { &about } else { &Value::Null };
            let desks = links.iter().zip(reach).zip(elsewhere).map(|link| of_link(link, own)).collect();
            Desks { desks, places: links.iter().filter_map(|link| link.place.clone()).collect(), about }
        };
        let mut elsewhere = Vec::with_capacity(links.len());
        for joined in joined {
            let mut of_link = Vec::new();
            let joined = joined.map_or(Vec::new(), |(channels, answers)| channels.all.iter().zip(answers).collect());
            for (channel, answers) in joined {
                if channel.clocks.is_none() {
                    let mouth = || channel.mouth().map_err(|failure| io::Error::other(failure.to_string()));
                    let (desks, mouths) = (desks(0, vec![Vec::new()]), [mouth()?, mouth()?]);
                    let serve = move || serve_near(desks, &answers, mouths);
                    // It ends with the connection, which outlives the link.
                    std::thread::Builder::new().name("airpath-control".into()).spawn(serve)?;
                    return Ok(Control { number: 0, folder: PathBuf::new(), stop: None, thread: None });
                }
                of_link.extend(Elsewhere::of(channel, answers));
            }
            elsewhere.push(of_link);
        }
        let folder = folder::path();
        let socket = Folder::open(&folder, true)?.listen()?;
        let number = socket.number;
        socket.listener.set_nonblocking(true)?;
        let (stopped, stop) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let desks = desks(number, elsewhere);
        let thread = std::thread::Builder::new()
            .name("airpath-control".into())
            .spawn(move || serve(&socket, &stopped, desks))?;
        Ok(Control { number, folder, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The scenario as the manifest has it, from which a replay starts: it does not say of a state that it
/// sets a parameter to the value of the beginning. Files are read from where they lie.
fn as_recorded(scenario: &Scenario) -> Scenario {
    let printed = scenario
        .to_toml_with_files(&|file| Some(file.display().to_string()))
        .ok()
        .and_then(|text| Scenario::from_toml(&text, "scenario").ok());
    printed.unwrap_or_else(|| scenario.clone())
}

/// Unchanging part of a run's description. `command` is that of all clients; where theirs differ it is empty, and
/// `users` has them.
fn about(request: &RunRequest, number: u32) -> Value {
    let shown = |words: &Vec<OsString>| words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let commands: Vec<Vec<String>> = request.clients.iter().map(shown).collect();
    let common = commands.first().filter(|first| commands.iter().all(|command| command == *first)).cloned();
    let places = request.places();
    let mut about = json!({
        "run": number,
        "folder": request.out.as_ref().map(|folder| folder.display().to_string()),
        "scenario": request.scenario.name,
        "command": common.clone().unwrap_or_default(),
        "seed": request.seed,
        "hops": places.hops(),
        "states": places.states(),
        "airpath_version": env!("CARGO_PKG_VERSION"),
    });
    if !places.named_users().is_empty() {
        let user = |(user, command): (&UserNames, &Vec<String>)| {
            let mut told = json!({ "name": user.name, "hops": user.hops, "states": user.states });
            if common.is_none() {
                told["command"] = json!(command);
            }
            told
        };
        about["users"] = places.users().iter().zip(&commands).map(user).collect();
    }
    about
}

struct Client {
    stream: UnixStream,
    buffer: Line,
    /// By link.
    watched: Vec<Option<Watched>>,
}

/// Baseline of a client's watch: the state of the run's link, and of the run around it, when it began.
struct Watched {
    start: Measurements,
    processors: ProcessorTime,
    around: Option<Around>,
}

/// Serves clients until `stopped` is closed at its other end.
fn serve(socket: &Socket, stopped: &OwnedFd, mut desks: Desks) {
    let mut clients: Vec<Client> = Vec::new();
    loop {
        let mut ends = vec![PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
        ends.push(PollFd::new(socket.listener.as_fd(), PollFlags::POLLIN));
        ends.extend(clients.iter().map(|client| PollFd::new(client.stream.as_fd(), PollFlags::POLLIN)));
        match poll(&mut ends, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return,
        }
        let ready: Vec<bool> = ends.iter().map(|end| end.any().unwrap_or_default()).collect();
        if ready[0] {
            return;
        }
        let mut index = 1;
        clients.retain_mut(|client| {
            index += 1;
            !ready[index] || desks.attend(client).is_ok()
        });
        if ready[1] {
            accept(&socket.listener, &mut clients);
        }
    }
}

/// Takes those who want to talk, if they are who started the run.
fn accept(listener: &UnixListener, clients: &mut Vec<Client>) {
    while let Ok((mut stream, _)) = listener.accept() {
        let owner = getsockopt(&stream, PeerCredentials).is_ok_and(|peer| peer.uid() == geteuid().as_raw());
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        let refusal = match (owner, clients.len() < CLIENTS) {
            (false, _) => Refusal::new("owner", "only the user who started the run may control it"),
            (_, false) => Refusal::new("busy", "too many control connections; close some"),
            _ => {
                clients.push(Client { stream, buffer: Vec::new(), watched: Vec::new() });
                continue;
            }
        };
        let _ = writeln!(stream, "{}", refusal.answer());
    }
}

/// Carries out what the near engine asks for, until the connection ends; `mouths` are ways to speak to it.
fn serve_near(mut desks: Desks, asked: &Receiver<Word>, mouths: [Mouth; 2]) {
    let [answering, accepting] = mouths;
    let Some(desk) = desks.desks.first_mut() else { return };
    desk.asked = Some(Asked { mouth: accepting, number: 0, at_ns: None, checks: false });
    for word in asked {
        let Word::Ask { number, at_ns, checks, request } = word else { continue };
        if let Some(asked) = &mut desk.asked {
            (asked.number, asked.at_ns, asked.checks) = (number, at_ns, checks);
        }
        let request = serde_json::from_value(request);
        let answer = request
            .map_err(|error| Refusal::new("request", error.to_string()))
            .and_then(|request| desk.carry_out(request, &mut None))
            .unwrap_or_else(|refusal| refusal.answer());
        answering.say(&Word::Answered { number, answer });
    }
}
