//! One macro that joins the models of a role: the tagged configuration, the enumeration that
//! dispatches to them without boxes, and the examples with which the laws are tested.

/// Declares the models of a role. Each line names the variant, its module, its configuration type
/// and its model type; the module also has `examples()`, a list of configurations worth testing.
macro_rules! registry {
    (
        $(#[$config_meta:meta])* config $Config:ident,
        $(#[$model_meta:meta])* model $Model:ident,
        dispatch $dispatch:ident,
        $( $(#[$variant_meta:meta])* $Variant:ident = $module:ident::{$C:ident, $M:ident}, )*
    ) => { registry! { @with_dollar ($) $(#[$config_meta])* config $Config, $(#[$model_meta])* model $Model,
        dispatch $dispatch, $( $(#[$variant_meta])* $Variant = $module::{$C, $M}, )* } };
    (@with_dollar ($d:tt)
        $(#[$config_meta:meta])* config $Config:ident,
        $(#[$model_meta:meta])* model $Model:ident,
        dispatch $dispatch:ident,
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

        impl $Config {
            /// Configurations of every registered model; the laws are tested with each of them.
            pub fn examples() -> Vec<$Config> {
                let mut all = Vec::new();
                $( all.extend($module::examples().into_iter().map($Config::$Variant)); )*
                all
            }

            /// What is wrong with the configuration, if anything.
            pub fn problems(&self) -> Vec<$crate::config::Problem> {
                match self { $( $Config::$Variant(config) => config.problems(), )* }
            }
        }
    };
}
pub(crate) use registry;
