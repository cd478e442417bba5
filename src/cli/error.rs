//! Reports errors to the user of the command line: with the name of the option that helps, and as
//! JSON on request.

use std::ffi::OsString;
use std::process::ExitCode;
use std::{fmt, io};

use anstream::eprintln;
use anstyle::{AnsiColor, Style};
use clap::Parser;
use clap::error::ErrorKind;
use serde_json::json;

use burn_dfa_tokens::{Error, Limit, Limits};

/// An error to be shown to the user of the command line.
pub type Failure = Box<dyn std::error::Error>;

/// A constraint that is refused, with the name of its file.
#[derive(Debug)]
pub(super) struct Refused(pub(super) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Whether an error is the refusal of a constraint, by the library or by
/// [`ConstraintArgs::read`](super::ConstraintArgs::read). Other errors concern files, options,
/// tokenizers and devices.
///
/// ```
/// use burn_dfa::{Constraint, cli};
///
/// assert!(cli::is_refusal(&Constraint::regex("a(").unwrap_err().into()));
/// assert!(!cli::is_refusal(&"cannot read person.json".into()));
/// ```
pub fn is_refusal(error: &Failure) -> bool {
    error.is::<Refused>() || error.downcast_ref::<Error>().is_some_and(|error| error.kind().is_constraint())
}

/// The exit code if the work failed.
const FAILED: u8 = 1;
/// The exit code of wrong usage.
const MISUSED: u8 = 2;

/// The message of the error, which names command line options instead of library settings: the
/// options of [`LimitArgs`](super::LimitArgs), [`CompileArgs`](super::CompileArgs),
/// [`DeviceArgs`](super::DeviceArgs), [`JsonArgs`](super::JsonArgs) and
/// [`SamplingArgs`](super::SamplingArgs).
///
/// ```
/// use burn_dfa::{Constraint, Limits, cli};
///
/// let limits = Limits { states: 100, ..Limits::default() };
/// let error = Constraint::regex("a{200}")?.to_byte_dfa(&limits).unwrap_err();
/// assert!(cli::message(&error).ends_with("simplify it, or raise --max-states"));
/// # Ok::<(), burn_dfa::Error>(())
/// ```
pub fn message(error: &Error) -> String {
    if let Some(limit) = error.breached() {
        let location = match error.pointer() {
            Some("") => ", most of it at the root of the schema".to_owned(),
            Some(pointer) => format!(", most of it at {pointer}"),
            None => String::new(),
        };
        return format!("the constraint needs more than {limit}{location}: simplify it{}", advice(limit));
    }
    if let Some(message) = error.unenforced_with("--ignore-unenforceable") {
        return message;
    }
    match error.tokens_needed() {
        Some(needed) => format!(
            "the shortest output of the constraint takes {needed} tokens (end of sequence included): raise \
             --max-tokens to {needed} at least"
        ),
        None => error.to_string(),
    }
}

/// The option that helps, besides a simpler constraint.
fn advice(limit: Limit) -> &'static str {
    // No tensor of a constraint can be larger.
    const MAX_ON_DEVICE: usize = i32::MAX as usize;
    match limit {
        Limit::States(_) => ", or raise --max-states",
        Limit::Bytes(_) => ", or raise --max-bytes",
        Limit::Time(_) => ", or raise --max-seconds",
        Limit::DeviceBytes(max) if max >= MAX_ON_DEVICE => "",
        Limit::DeviceBytes(_) => ", or raise --max-device-bytes",
        Limit::Binding(_) => ", or give --form byte-level",
        Limit::Nesting(_) => ", or lower --recursion or --any-depth",
        Limit::Frames(max) if max >= Limits::MAX_FRAMES => {
            ", or, if it is greater, lower --max-frames to 1024 at most"
        }
        Limit::Frames(_) => ", or raise --max-frames",
        _ => "",
    }
}

/// The arguments of the process. A usage error ends the process with code 2, and is printed as a
/// JSON object if `--json` is among the arguments.
pub fn parse<T: Parser>() -> T {
    T::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() || !is_json(std::env::args_os()) {
            error.exit();
        }
        let said = match error.kind() {
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "a subcommand is missing".to_owned(),
            _ => usage_error(&error.render().to_string()),
        };
        eprintln!("{}", json!({"error": said}));
        std::process::exit(error.exit_code())
    })
}

/// Whether `--json` is among the options.
fn is_json(mut args: impl Iterator<Item = OsString>) -> bool {
    args.by_ref().take_while(|arg| arg != "--").any(|arg| arg == "--json")
}

/// The error message of clap, without the heading and the usage.
fn usage_error(rendered: &str) -> String {
    let said = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let end = ["\n\nUsage: ", "\n\nFor more information"].iter().filter_map(|end| said.find(end)).min();
    said[..end.unwrap_or(said.len())].trim_end().to_owned()
}

/// Prints an error to standard error, as a JSON object on request. Returns the exit code of the
/// program: 1 if the work failed, 2 on wrong usage.
///
/// The work failed if the constraint [is refused](is_refusal), if the model, its device or the
/// connection to the device failed, or if the output cannot be written. Other errors are wrong
/// usage: an option, a file or a device that cannot be used. If the reader of the output has closed
/// the pipe, nothing is printed, and the exit code is 0.
pub fn report(error: &Failure, json: bool) -> ExitCode {
    let of_output = error.downcast_ref::<io::Error>();
    // As `head` does.
    if of_output.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    let said = error.downcast_ref::<Error>().map_or_else(|| error.to_string(), message);
    if json {
        eprintln!("{}", json!({"error": said}));
    } else {
        let red: Style = AnsiColor::Red.on_default().bold();
        eprintln!("{red}error:{red:#} {said}");
    }
    let has_failed = of_output.is_some() || is_refusal(error) || is_of_device(error);
    ExitCode::from(if has_failed { FAILED } else { MISUSED })
}

/// Whether the model, its device or the connection to the device failed.
fn is_of_device(error: &Failure) -> bool {
    use burn_dfa_tokens::ErrorKind::{Connection, Model};

    error.downcast_ref::<Error>().is_some_and(|error| matches!(error.kind(), Model | Connection))
}
