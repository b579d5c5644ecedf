// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Trait of distributions, and the macro that joins all of them.

use std::fmt::Debug;

use airpath_core::{DrawKey, Time};

use super::Quantity;
use crate::file::VisitFile;
use crate::problem::Problem;

/// The parameters of a distribution.
pub(super) trait Configured<Q: Quantity>: Sized {
    /// Type that draws.
    type Drawer: Draw;

    /// True if a draw that belongs to an instant follows from that alone.
    const IS_TIMED: bool = false;

    /// No draw is below this.
    fn least(&self) -> Q;

    /// Errors in the parameters, if any. Files are loaded.
    fn problems(&self) -> Vec<Problem>;

    /// Visits the files that the parameters name.
    fn files(&mut self, _visit: &mut VisitFile<'_>) {}

    /// A drawer at its beginning, whose draws are those of `key`.
    fn drawer(&self, key: DrawKey) -> Self::Drawer;

    /// Parameters worth testing; `typical` is a value that matters where they are used.
    fn examples(typical: Q) -> Vec<Self>;
}

/// Draws from one distribution, in base units.
pub(super) trait Draw: Clone + Debug + Send {
    /// The draw of step number `step`; steps are asked for in ascending order, each at most once.
    fn draw(&mut self, step: u64) -> u64;

    /// The same where a draw belongs to an instant, for distributions that change with time; instants do
    /// not descend.
    fn draw_at(&mut self, step: u64, _at: Time) -> u64 {
        self.draw(step)
    }
}

/// Declares the distributions. Each line names the variant, which is also the type of its parameters,
/// and its module.
macro_rules! distributions {
    ($( $(#[$meta:meta])* $Name:ident = $module:ident, )*) => {
        /// A distribution by its name.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum Distribution<Q: Quantity> { $( $(#[$meta])* $Name($module::$Name<Q>), )* }

        /// A drawer of any distribution.
        #[derive(Clone, Debug)]
        enum Drawer { $( $Name($module::Drawer), )* }

        impl<Q: Quantity> Distribution<Q> {
            fn least(&self) -> Q {
                match self { $( Distribution::$Name(config) => Configured::least(config), )* }
            }

            fn is_timed(&self) -> bool {
                match self { $( Distribution::$Name(_) => <$module::$Name<Q> as Configured<Q>>::IS_TIMED, )* }
            }

            fn problems(&self) -> Vec<Problem> {
                match self { $( Distribution::$Name(config) => Configured::problems(config), )* }
            }

            fn files(&mut self, visit: &mut VisitFile<'_>) {
                match self { $( Distribution::$Name(config) => Configured::files(config, visit), )* }
            }

            fn drawer(&self, key: DrawKey) -> Drawer {
                match self { $( Distribution::$Name(config) => Drawer::$Name(config.drawer(key)), )* }
            }

            /// Parameters of every distribution; the laws are tested with each of them, `typical` being
            /// a value that matters where they are used.
            pub fn examples(typical: Q) -> Vec<Distribution<Q>> {
                let mut all = Vec::new();
                $( all.extend($module::$Name::examples(typical).into_iter().map(Distribution::$Name)); )*
                all
            }
        }

        impl Drawer {
            fn draw(&mut self, step: u64) -> u64 {
                match self { $( Drawer::$Name(drawer) => drawer.draw(step), )* }
            }

            fn draw_at(&mut self, step: u64, at: Time) -> u64 {
                match self { $( Drawer::$Name(drawer) => drawer.draw_at(step, at), )* }
            }
        }
    };
}
pub(super) use distributions;
