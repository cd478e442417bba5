//! Colours, where the output is a terminal that shows them.

use anstyle::{AnsiColor, Style};

/// What a text is painted with; nothing by default.
#[derive(Clone, Copy, Default)]
pub struct Styles {
    /// It holds.
    pub good: Style,
    /// It does not.
    pub bad: Style,
    /// Look here.
    pub strong: Style,
    /// Beside the matter.
    pub faint: Style,
}

impl Styles {
    /// Those for `stream`: by whether it is a terminal, and what `NO_COLOR` and `CLICOLOR_FORCE` say.
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
