//! `airpath timing calibrate`.

use airpath_core::Span;
use airpath_live::engine_loop::share_of_a_core;
use clap::Args;

/// The examples of `airpath timing calibrate`.
pub const EXAMPLES: &str = "\
Examples:
  airpath timing calibrate                            # some seconds
  airpath timing calibrate --bound '50 us' --budget 3%
  airpath timing calibrate --dry-run --json
  airpath timing calibrate --forget

Calibrate while the machine is quiet. Where something disturbs it, nothing is stored, unless --force says
otherwise; of the stored calibration and the new one the better is kept, unless --replace says otherwise.
Exit status: 0 also where the bound cannot be met; the table and the reasons say so. 1 where something disturbs.";

/// `airpath timing calibrate`.
#[derive(Args, Debug, Clone)]
pub struct CalibrateArgs {
    /// 99 in 100 packets are to leave no later than this after they are due.
    #[arg(long, value_name = "TIME", default_value = "20 us")]
    pub bound: Span,
    /// The share of a core that watching the clock may take.
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = share_of_a_core)]
    pub budget: u64,
    /// How long to measure.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=600))]
    pub seconds: u32,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
    /// Only tell whether there is one that fits: its file and exit status 0, else 1.
    #[arg(long, conflicts_with_all = ["dry_run", "json"])]
    pub check: bool,
    /// Store nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Store also what was measured while something disturbed the machine.
    #[arg(long, conflicts_with = "dry_run")]
    pub force: bool,
    /// Store it also where the calibration that is stored is better.
    #[arg(long, conflicts_with = "dry_run")]
    pub replace: bool,
    /// Only remove the calibration of this machine and user.
    #[arg(long, conflicts_with_all = ["check", "dry_run", "json", "force", "replace"])]
    pub forget: bool,
}
