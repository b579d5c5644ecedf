// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath modes`: the modes of a radio link, and the levels at which link adaptation changes between them.

use std::sync::Arc;

use airpath_models::adaptation::{Frames, Levels, Modes, ModesConfig, rayleigh_throughput};
use serde_json::{Value, json};

use super::fading::unknown;
use crate::cli::modes::ModesArgs;
use crate::error::{Failure, Result};
use crate::terminal::show;

/// The modes that `text` describes: a word, or a table.
fn config(text: &str) -> Result<ModesConfig> {
    let wrong = |what: String| Failure::usage(format!("the modes {text}: {what}"));
    let source = match text {
        "qam" => "modes = { type = 'qam' }".to_owned(),
        table if table.trim_start().starts_with('{') => format!("modes = {table}"),
        word => format!("modes = {{ type = 'coded', table = '{word}' }}"),
    };
    let mut document: toml::Table =
        source.parse().map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
    let Some(toml::Value::Table(table)) = document.remove("modes") else {
        return Err(wrong("must be qam, the name of a table, or a table in braces".into()));
    };
    let config: ModesConfig =
        table.clone().try_into().map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
    let known = toml::Table::try_from(&config).map_err(|error| wrong(error.to_string()))?;
    if let Some(key) = unknown(&table, &known) {
        return Err(wrong(format!("`{key}` is no key of this type; docs/link-adaptation.md lists them")));
    }
    match config.problems().first() {
        Some(problem) => Err(wrong(format!("`{}` {}", problem.key, problem.message))),
        None => Ok(config),
    }
}

/// A level in decibels; none for the lowest mode, which is used however low the ratio is.
fn decibels(level: f32) -> Option<f64> {
    (level > 0.0).then(|| 10.0 * f64::from(level).log10())
}

/// Prints them.
///
/// # Errors
/// When the modes or the prediction are wrong.
pub fn run(args: &ModesArgs) -> Result<i32> {
    let modes = Arc::new(Modes::new(&config(&args.modes)?, ()));
    let error = args.prediction_error;
    if !(0.0..1.0).contains(&error) {
        return Err(Failure::usage(format!("--prediction-error is {error}; it must be from 0 to below 1")));
    }
    if !(-30.0..=45.0).contains(&args.snr.0) {
        return Err(Failure::usage(format!("--snr is {}; it must be from -30 to 45 dB", args.snr)));
    }
    let mean = args.snr.ratio();
    let frames = |error_power| Frames { modes: Arc::clone(&modes), symbols: args.symbols, error_power };
    let (perfect, predicted) = (frames(0.0), frames(error * mean));
    let levels = Levels::of_greatest_throughput(&perfect, 0.0);
    let shifted = Levels::of_greatest_throughput(&predicted, 0.0);
    let throughput = rayleigh_throughput(&levels, &perfect, mean);
    let with_error = rayleigh_throughput(&shifted, &predicted, mean);
    if args.json {
        let mode = |mode: usize| -> Value {
            json!({
                "name": modes.name(mode),
                "bits_per_symbol": modes.bits_per_symbol(mode),
                "frame_bits": modes.frame_bits(mode, args.symbols),
                "level_db": decibels(levels.ratios()[mode]),
                "level_with_error_db": decibels(shifted.ratios()[mode]),
            })
        };
        let all = json!({
            "symbols": args.symbols,
            "prediction_error": error,
            "snr_db": args.snr.0,
            "modes": (0..modes.len()).map(mode).collect::<Vec<_>>(),
            "rayleigh_bits_per_symbol": throughput,
            "rayleigh_bits_per_symbol_with_error": with_error,
        });
        show!("{}\n", serde_json::to_string_pretty(&all).expect("numbers and texts are JSON"));
        return Ok(0);
    }
    let level = |level: f32| decibels(level).map_or_else(|| "-".to_owned(), |db| format!("{db:.2} dB"));
    show!("{:<8}  {:>6}  {:>10}  {:>10}", "MODE", "BITS", "FRAME BITS", "LEVEL");
    show!("{}\n", if error > 0.0 { "  WITH ERROR" } else { "" });
    for mode in 0..modes.len() {
        let (name, bits) = (modes.name(mode), modes.bits_per_symbol(mode));
        let frame_bits = modes.frame_bits(mode, args.symbols);
        show!("{name:<8}  {bits:>6.4}  {frame_bits:>10}  {:>10}", level(levels.ratios()[mode]));
        let column = if error > 0.0 { format!("  {:>10}", level(shifted.ratios()[mode])) } else { String::new() };
        show!("{column}\n");
    }
    show!("\nOver Rayleigh fading of mean {}: {throughput:.3} bits a symbol in frames without errors", args.snr);
    if error > 0.0 {
        let loss = 100.0 * (1.0 - with_error / throughput);
        show!("; with the error\n{with_error:.3} bits a symbol, {loss:.1} % less");
    }
    show!(".\n");
    Ok(0)
}
