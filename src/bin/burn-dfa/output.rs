//! What a subcommand returns, and where it prints: text, in colours where the terminal shows them, or JSON.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use burn_dfa::cli::Failure;

/// What a subcommand returns: an error is printed, and the exit code is 2.
pub type Result<T> = std::result::Result<T, Failure>;

/// The exit code of a check that found something: a text that does not match, a schema that is refused, an artefact
/// that is not sound, a count that got worse.
pub const FOUND: u8 = 1;

/// Where a subcommand prints.
pub struct Output<'a> {
    pub to: &'a mut dyn Write,
    /// JSON is asked for.
    pub json: bool,
    pub styles: Styles,
}

/// Styles of printed text; none by default.
#[derive(Clone, Copy, Default)]
pub struct Styles {
    /// A check that holds.
    pub good: Style,
    /// A check that does not.
    pub bad: Style,
    /// The figure or word that matters.
    pub strong: Style,
    /// What can be skipped.
    pub faint: Style,
}

impl Styles {
    /// Those for `stream`: none where it is no terminal, unless `CLICOLOR_FORCE` is set; none under `NO_COLOR`.
    pub fn of(stream: &impl anstream::stream::RawStream) -> Self {
        if anstream::AutoStream::choice(stream) == anstream::ColorChoice::Never {
            return Self::default();
        }
        Self {
            good: AnsiColor::Green.on_default().bold(),
            bad: AnsiColor::Red.on_default().bold(),
            strong: Style::new().bold(),
            faint: Style::new().dimmed(),
        }
    }
}
