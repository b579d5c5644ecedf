// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath fading generate`: the signal-to-noise ratios of a radio channel.

use std::any::TypeId;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use airpath_log::place;
use airpath_models::fading::{Fading, FadingConfig, Theory};
use airpath_models::file::{AnyData, FileSource, ParseFile};

use crate::cli::fading::{FadingAction, FadingArgs, GenerateArgs};
use crate::error::{Failure, Result};
use crate::seed::fresh_seed;
use crate::terminal::say;

/// Does what `airpath fading` was asked for.
///
/// # Errors
/// When the channel is wrong, or the file cannot be written.
pub fn run(args: &FadingArgs) -> Result<i32> {
    match &args.action {
        FadingAction::Generate(args) => generate(args),
    }
}

/// Files beside the one that names them.
struct Beside(PathBuf);

impl FileSource for Beside {
    fn load(&mut self, name: &str, _: TypeId, parse: ParseFile<'_>) -> std::result::Result<AnyData, String> {
        let path = self.0.join(name);
        let bytes = std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        parse(&bytes)
    }
}

/// The first key of `given` that is not in `known`, which is what `given` was understood as.
pub(super) fn unknown(given: &toml::Table, known: &toml::Table) -> Option<String> {
    given.iter().find_map(|(key, value)| match (value, known.get(key)) {
        (_, None) => Some(key.clone()),
        (toml::Value::Table(given), Some(toml::Value::Table(known))) => {
            unknown(given, known).map(|below| format!("{key}.{below}"))
        }
        _ => None,
    })
}

fn channel(text: &str) -> Result<FadingConfig> {
    let (source, folder) = if text.trim_start().starts_with('{') {
        (format!("channel = {text}"), PathBuf::new())
    } else {
        let path = Path::new(text);
        let source = std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("cannot read the channel {text}: {error}")))?;
        (source, path.parent().map(Path::to_owned).unwrap_or_default())
    };
    let wrong = |what: String| Failure::usage(format!("the channel {text}: {what}"));
    let mut table: toml::Table = source.parse().map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
    if let Some(toml::Value::Table(channel)) = table.remove("channel") {
        table = channel;
    }
    let mut config: FadingConfig =
        table.clone().try_into().map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
    let known = toml::Table::try_from(&config).map_err(|error| wrong(error.to_string()))?;
    if let Some(key) = unknown(&table, &known) {
        return Err(wrong(format!("`{key}` is no key of this type; docs/fading.md lists them")));
    }
    let mut missing = None;
    config.files(&mut |key, file| {
        if let Err(error) = file.load(&mut Beside(folder.clone())) {
            missing.get_or_insert(format!("{key}: {error}"));
        }
    });
    if let Some(what) = missing {
        return Err(wrong(what));
    }
    match config.problems().first() {
        Some(problem) => Err(wrong(format!("`{}` {}", problem.key, problem.message))),
        None => Ok(config),
    }
}

/// Properties that the ratios should have; those predicted have less power than the true ones.
fn theory(config: &FadingConfig, is_predicted: bool) -> Theory {
    let mut theory = config.theory();
    if is_predicted {
        theory.mean_db = theory.mean_db.map(|mean| mean + 10.0 * (1.0 - config.prediction_error).log10());
    }
    theory
}

/// Suffixes of text, beside none at all.
const TEXT: [&str; 3] = ["csv", "txt", "snr"];

/// Refuses a file whose name promises something else than text.
fn refuse_other_than_text(output: &Path) -> Result<()> {
    let suffix = output.extension().map(|extension| extension.to_string_lossy().into_owned()).unwrap_or_default();
    if suffix.is_empty() || TEXT.contains(&suffix.as_str()) {
        return Ok(());
    }
    let text = output.with_extension("csv");
    let (output, text) = (output.display(), text.display());
    Err(Failure::usage(match suffix.as_str() {
        "parquet" | "mat" => format!(
            "fading generate writes text, not .{suffix}; write {text}, then airpath fading convert {text} {output}"
        ),
        _ => format!("fading generate writes text: give {output} the suffix .{}, or none", TEXT.join(", .")),
    }))
}

fn generate(args: &GenerateArgs) -> Result<i32> {
    refuse_other_than_text(&args.output)?;
    let config = channel(&args.channel)?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let scope = DrawScope { hop: "radio", direction: Direction::Downlink, role: "fading", instance: 0 };
    let mut fading = Fading::new(&config, DrawKey::new(Seed(seed), &scope));
    let head = format!(
        "# airpath fading generate '{}' --slots {} --seed {seed}{}\n# theory: {}\n# decibels, a line for each slot\n",
        args.channel.replace(['\n', '\r'], " "),
        args.slots,
        if args.predicted { " --predicted" } else { "" },
        serde_json::to_string(&theory(&config, args.predicted)).map_err(|error| Failure::new(error.to_string()))?,
    );
    let mut write = |file: &mut dyn Write| -> io::Result<f64> {
        file.write_all(head.as_bytes())?;
        let mut sum = 0.0;
        for slot in 0..args.slots {
            let snr = if args.predicted { fading.predicted(slot) } else { fading.snr(slot) };
            for (resource, snr) in snr.iter().enumerate() {
                let comma = if resource == 0 { "" } else { "," };
                // A ratio of zero has no logarithm; what cannot be read again must not be written.
                write!(file, "{comma}{:.3}", 10.0 * f64::from(snr.max(1e-30)).log10())?;
                sum += f64::from(*snr);
            }
            file.write_all(b"\n")?;
        }
        file.flush()?;
        Ok(sum / (args.slots as f64 * f64::from(config.resources)))
    };
    let mean = match args.output.as_os_str() == "-" {
        true => write(&mut BufWriter::new(io::stdout().lock())),
        false => place::output(&args.output).and_then(|file| write(&mut BufWriter::new(file))),
    };
    let mean = mean.map_err(|error| Failure::unwritable(format!("cannot write {}: {error}", args.output.display())))?;
    if !args.quiet {
        let (slots, resources) = (args.slots, config.resources);
        say!("airpath: {slots} slots of {resources} resources, mean {:.2} dB; seed {seed}", 10.0 * mean.log10());
    }
    Ok(0)
}
