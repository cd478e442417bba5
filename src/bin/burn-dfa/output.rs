//! The result and the output of a subcommand: text, in colors if the terminal shows them, or JSON.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use burn_dfa::cli::Failure;

/// The result of a subcommand. An error is printed; its exit code is that of
/// [`report`](burn_dfa::cli::report).
pub type Result<T> = std::result::Result<T, Failure>;

/// The exit code of a failed check: a text that does not match, a refused constraint, an unsound
/// artifact, a count that got worse, a device that fails.
pub const FOUND: u8 = 1;

/// The output of a subcommand.
pub struct Output<'a> {
    pub to: &'a mut dyn Write,
    /// Whether to print JSON.
    pub json: bool,
    pub styles: Styles,
}

/// Styles of printed text; none by default.
#[derive(Clone, Copy, Default)]
pub struct Styles {
    /// A passed check.
    pub good: Style,
    /// A failed check.
    pub bad: Style,
    /// The important number or word.
    pub strong: Style,
    /// Minor details.
    pub faint: Style,
}

impl Styles {
    /// The styles of `stream`: none if it is no terminal, unless `CLICOLOR_FORCE` is set; none
    /// under `NO_COLOR`.
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
