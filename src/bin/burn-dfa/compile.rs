//! `burn-dfa compile`: compiles a constraint over the tokens of a tokenizer to a file.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use burn_dfa::cli::CompileArgs;
use burn_dfa::tokens::Origin;
use burn_dfa::{DeviceConstraint, TensorOptions};
use clap::Args;
use serde_json::json;

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::output::{Output, Result};

/// Compile a constraint for a tokenizer: print its size, and write it to a file.
///
/// The file is an artifact: `burn-dfa inspect` shows it, `CompiledConstraint::load` and
/// examples/pytorch use it.
#[derive(Args)]
#[command(mut_arg("tokenizer", |arg| arg.required(true)))]
#[command(after_help = "Examples:
  burn-dfa compile --regex '\\d{4}-\\d\\d-\\d\\d' --tokenizer model/
  burn-dfa compile --schema person.json --tokenizer model/ -o person.safetensors
  burn-dfa compile --schema person.json --tokenizer tokenizer.json --eos 2 --form byte-level --json")]
pub struct Compile {
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Write the compiled constraint to FILE, as a safetensors file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    compile: CompileArgs,
}

impl Compile {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let (constraint, vocabulary) = (self.constraint.read()?, self.tokenizer.read()?);
        self.constraint.warn(&constraint, &self.compile.limits(), false, out.json);
        let started = Instant::now();
        let compiled = self.compile.compile(&constraint, &vocabulary)?;
        let milliseconds = started.elapsed().as_secs_f64() * 1e3;
        let (vocab_size, fingerprint) = (vocabulary.len(), vocabulary.fingerprint());
        let (form, columns) = if compiled.is_byte_level() {
            ("byte-level", "byte classes ")
        } else {
            ("token-level", "token classes")
        };
        let (frames, exits) = (compiled.frames(), compiled.exits());
        let (states, classes, least) =
            (compiled.state_count(), compiled.class_count(), compiled.tokens_to_end(compiled.start()));
        // Report the size even if it exceeds the default limit.
        let options = TensorOptions::new().with_max_bytes(usize::MAX);
        let bytes = DeviceConstraint::bytes_needed(&[&compiled], vocab_size, &options)?;
        let unrolled = compiled.unrolled().unwrap_or_default();
        let mut artifact = None;
        if let Some(path) = &self.output {
            compiled.save(path, &Origin::new(&constraint, &self.compile.limits()))?;
            artifact = Some((path, std::fs::metadata(path)?.len()));
        }
        if out.json {
            let artifact = artifact.map(|(path, bytes)| json!({"path": path, "bytes": bytes}));
            let line = json!({
                "vocabulary": vocab_size, "fingerprint": fingerprint.to_string(), "form": form, "states": states,
                "classes": classes, "bytes": bytes, "least_tokens": least, "milliseconds": milliseconds,
                "artifact": artifact, "recursion": unrolled.recursion, "any_levels": unrolled.any,
                "unnamed_levels": unrolled.unnamed, "frames": frames, "exits": exits,
            });
            writeln!(out.to, "{line}")?;
            return Ok(ExitCode::SUCCESS);
        }
        let (strong, faint) = (out.styles.strong, out.styles.faint);
        writeln!(out.to, "vocabulary     {vocab_size} tokens, {faint}{fingerprint}{faint:#}")?;
        writeln!(out.to, "form           {form}")?;
        writeln!(out.to, "states         {strong}{states}{strong:#}")?;
        writeln!(out.to, "{columns}  {strong}{classes}{strong:#}")?;
        writeln!(out.to, "bytes          {bytes} on a device")?;
        writeln!(out.to, "least tokens   {least} (end of sequence included)")?;
        let depths = [
            ("recursion      followed", unrolled.recursion, "times"),
            ("any JSON      ", unrolled.any, "levels"),
            ("unnamed JSON  ", unrolled.unnamed, "levels"),
        ];
        for (what, depth, unit) in depths {
            if let Some(depth) = depth {
                writeln!(out.to, "{what} {depth} {unit}")?;
            }
        }
        if frames > 0 {
            writeln!(out.to, "stack          {frames} frames, procedures of up to {exits} exits")?;
        }
        writeln!(out.to, "compiled in    {milliseconds:.1} ms")?;
        if let Some((path, bytes)) = artifact {
            writeln!(out.to, "written to     {}, {bytes} bytes", path.display())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
