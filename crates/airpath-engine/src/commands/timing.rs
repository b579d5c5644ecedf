//! `airpath timing`: how well this machine keeps time.

use airpath_live::host_state::HostState;

use crate::cli::timing::{TimingAction, TimingArgs};
use crate::terminal::show;

/// Carries out one of its actions.
pub fn run(args: &TimingArgs) -> i32 {
    match &args.action {
        TimingAction::Host(host) => {
            let state = HostState::look();
            if host.json {
                let json = serde_json::to_string_pretty(&state).expect("facts are JSON");
                show!("{json}\n");
            } else {
                show!("{state}");
            }
        }
    }
    0
}
