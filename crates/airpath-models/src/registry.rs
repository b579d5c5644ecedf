// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The macro that joins the models of a role, and the traits by which it knows them: the tagged
//! configuration, the enumeration that dispatches to the models without boxes, and the examples with
//! which the laws are tested.
//!
//! A new model is one file, its `mod` line, and one line in the registry of its role. Everything that
//! differs from model to model is a method of a trait, so that the compiler asks for it.

use airpath_core::{DrawKey, Time};

use crate::file::VisitFile;
use crate::filter::VisitFilter;
use crate::problem::Problem;

/// The parameters of a model, which is built from them and from `Beginning`.
pub(crate) trait Configured<Beginning = DrawKey>: Sized {
    /// The model.
    type Model;

    /// Errors in the parameters, if any. Files are loaded.
    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// Visits the files that the parameters name, each with its key.
    fn files(&mut self, _visit: &mut VisitFile<'_>) {}

    /// Visits the filters of packets in the parameters.
    fn filters(&mut self, _visit: &mut VisitFilter<'_>) {}

    /// The model at its beginning. Its draws, if it draws at all, are those of the key in `beginning`.
    fn build(&self, beginning: Beginning) -> Self::Model;

    /// Parameters worth testing.
    fn examples() -> Vec<Self>;
}

/// Parameters that may change while the model works.
pub(crate) trait Reconfigured<Beginning = DrawKey>: Configured<Beginning> {
    /// Gives `model` these parameters at `at`.
    fn configure(&self, model: &mut Self::Model, at: Time);
}

/// Declares the models of a role. Each line names the variant, its module, its configuration type
/// and its model type. `built from` names what a model needs at its beginning besides its parameters.
/// `reconfigured yes` says that parameters of the role may change while a model works: all
/// configurations are [`Reconfigured`] then.
macro_rules! registry {
    (
        $(#[$config_meta:meta])* config $Config:ident,
        $(#[$model_meta:meta])* model $Model:ident,
        dispatch $dispatch:ident, $config_dispatch:ident,
        built from $Beginning:ty,
        reconfigured $reconfigured:ident,
        $( $(#[$variant_meta:meta])* $Variant:ident = $module:ident::{$C:ident, $M:ident}, )*
    ) => {
        registry! { @enums ($) $(#[$config_meta])* config $Config, $(#[$model_meta])* model $Model,
            dispatch $dispatch, $config_dispatch, $Beginning,
            $( $(#[$variant_meta])* $Variant = $module::{$C, $M}, )* }
        registry! { @reconfigured $reconfigured $Config, $Model, $( $Variant, )* }
    };
    (@enums ($d:tt)
        $(#[$config_meta:meta])* config $Config:ident,
        $(#[$model_meta:meta])* model $Model:ident,
        dispatch $dispatch:ident, $config_dispatch:ident, $Beginning:ty,
        $( $(#[$variant_meta:meta])* $Variant:ident = $module:ident::{$C:ident, $M:ident}, )*
    ) => {
        $(#[$config_meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum $Config { $( $(#[$variant_meta])* $Variant($module::$C), )* }

        $(#[$model_meta])*
        #[derive(Clone, Debug)]
        pub enum $Model { $( $(#[$variant_meta])* $Variant($module::$M), )* }

        macro_rules! $dispatch {
            ($d model:expr, $d inner:ident => $d body:expr) => {
                match $d model { $( $Model::$Variant($d inner) => $d body, )* }
            };
        }

        macro_rules! $config_dispatch {
            ($d config:expr, $d inner:ident => $d body:expr) => {
                match $d config { $( $Config::$Variant($d inner) => $d body, )* }
            };
        }

        impl $Config {
            /// Configurations of every registered model; the laws are tested with each of them.
            pub fn examples() -> Vec<$Config> {
                let mut all = Vec::new();
                $( all.extend(
                    <$module::$C as $crate::registry::Configured<$Beginning>>::examples().into_iter().map($Config::$Variant)
                ); )*
                all
            }

            /// Errors in the configuration, if any.
            pub fn problems(&self) -> Vec<$crate::problem::Problem> {
                $config_dispatch!(self, config => $crate::registry::Configured::problems(config))
            }

            /// Visits the files that the parameters name, each with its key.
            pub fn files(&mut self, visit: &mut $crate::file::VisitFile<'_>) {
                $config_dispatch!(self, config => $crate::registry::Configured::files(config, visit))
            }

            /// Visits the filters of packets in the parameters.
            pub fn filters(&mut self, visit: &mut $crate::filter::VisitFilter<'_>) {
                $config_dispatch!(self, config => $crate::registry::Configured::filters(config, visit))
            }
        }

        impl $Model {
            /// The model that `config` describes, at its beginning.
            pub fn new(config: &$Config, beginning: $Beginning) -> $Model {
                match config {
                    $( $Config::$Variant(config) =>
                        $Model::$Variant($crate::registry::Configured::build(config, beginning)), )*
                }
            }
        }
    };
    (@reconfigured no $Config:ident, $Model:ident, $( $Variant:ident, )*) => {};
    (@reconfigured yes $Config:ident, $Model:ident, $( $Variant:ident, )*) => {
        impl $Model {
            /// Changes the parameters at `at`; false, and nothing is changed, if the configuration is
            /// of another kind.
            fn reconfigure(&mut self, config: &$Config, at: airpath_core::Time) -> bool {
                match (self, config) {
                    $( ($Model::$Variant(model), $Config::$Variant(config)) =>
                        $crate::registry::Reconfigured::configure(config, model, at), )*
                    // Of two kinds; each kind has its line above.
                    #[allow(unreachable_patterns, reason = "a role may have one kind only")]
                    _ => return false,
                }
                true
            }
        }
    };
}
pub(crate) use registry;
