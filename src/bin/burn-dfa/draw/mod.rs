//! `burn-dfa draw`: draws the automaton of a constraint, its stack along a text, its table over
//! tokens, or the rules of a grammar.

mod rules;
mod stack;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use burn_dfa::automaton::ByteAutomaton;
use burn_dfa::cli::{Graph, LimitArgs};
use burn_dfa::{CompiledConstraint, Constraint, StateId};
use clap::Args;
use serde_json::{Value, json};

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::output::{Output, Result};
use rules::Diagrams;
use stack::Steps;

/// Draw the automaton of a constraint over bytes, its table over the tokens of a tokenizer, its
/// stack along a text, or the rules of a grammar.
///
/// The dead state is omitted. Accepting states have a double circle. In an automaton with a stack,
/// call and RETURN states (↩, with the exit) have their own colors, and dashed lines lead to their
/// next states; `--table` draws the automaton copied to a fixed depth. An SVG picture fits on a
/// page: a long automaton has several parts, one below the other, and a dashed circle has the
/// number of a state in another part.
#[derive(Args)]
#[command(after_help = "Examples:
  burn-dfa draw --regex '(cat|dog)s?' -o automaton.svg
  burn-dfa draw --regex '(cat|dog)s?' | dot -Tpdf > automaton.pdf
  burn-dfa draw --regex '[0-9]{4}' --table --tokenizer tokenizer.json -o table.svg
  burn-dfa draw --grammar c.gbnf --syntax gbnf --rules -o c.svg
  burn-dfa draw --grammar sum.gbnf --syntax gbnf --stack '(1+(2+3))' -o stack.svg")]
pub struct Draw {
    #[command(flatten)]
    constraint: ConstraintArgs,
    /// The picture: `.svg`, or `.dot` for Graphviz. Without it, the DOT text is printed.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw the table of states and token classes instead, as SVG.
    #[arg(long, requires = "tokenizer", requires = "output")]
    table: bool,
    /// Draw the rules of the grammar instead, each as a syntax diagram, as SVG.
    #[arg(long, requires = "grammar", requires = "output", conflicts_with = "table")]
    rules: bool,
    /// Draw the stack of a recursive constraint along this text instead, as SVG: the call states on
    /// the stack, after each part of the text that changes it.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "output",
        conflicts_with_all = ["table", "rules"],
        allow_hyphen_values = true
    )]
    stack: Option<String>,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Maximum number of states to draw, by default 200, or of boxes of rules or steps of the
    /// stack, by default 1,000.
    #[arg(long, value_name = "N")]
    max_nodes: Option<usize>,
    #[command(flatten)]
    limits: LimitArgs,
}

/// A picture, and its sizes.
struct Picture {
    /// The picture as a file.
    text: String,
    /// The sizes as JSON, and as text.
    sizes: (Value, String),
}

impl Draw {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let constraint = self.constraint.read()?;
        let Picture { text, sizes } = if self.rules {
            self.rules(&constraint)?
        } else if self.table {
            self.table(&constraint)?
        } else if let Some(text) = &self.stack {
            self.stack(&constraint, text)?
        } else {
            self.automaton(&constraint)?
        };
        match &self.output {
            Some(path) => {
                std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
                if !out.json {
                    writeln!(out.to, "{}: {}", path.display(), sizes.1)?;
                }
            }
            None if out.json => {}
            None => out.to.write_all(text.as_bytes())?,
        }
        if out.json {
            writeln!(out.to, "{}", sizes.0)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn rules(&self, constraint: &Constraint) -> Result<Picture> {
        self.check_svg("rules are")?;
        let grammar = constraint.as_grammar().ok_or("--rules is for grammars: give --grammar")?;
        let diagrams = Diagrams::new(grammar);
        let (rules, boxes) = (diagrams.len(), diagrams.boxes());
        self.check(boxes, "boxes", 1000)?;
        let sizes = (json!({"rules": rules, "boxes": boxes}), format!("{rules} rules, {boxes} boxes"));
        Ok(Picture { text: diagrams.svg(), sizes })
    }

    fn table(&self, constraint: &Constraint) -> Result<Picture> {
        self.check_svg("a table is")?;
        let vocabulary = self.tokenizer.read()?;
        let compiled =
            CompiledConstraint::compile_token_level(constraint, &vocabulary, &self.limits.limits())?;
        let states = compiled.state_count() - StateId::RESERVED as usize;
        self.check(states, "states", 200)?;
        let classes = compiled.class_count();
        let sizes = format!("{states} states, {classes} token classes");
        let sizes = (json!({"states": states, "classes": classes}), sizes);
        Ok(Picture { text: table::svg(&compiled, &vocabulary), sizes })
    }

    fn stack(&self, constraint: &Constraint, text: &str) -> Result<Picture> {
        self.check_svg("a stack is")?;
        let steps = Steps::new(&self.byte_automaton(constraint)?, text)?;
        let (count, frames) = (steps.len(), steps.frames());
        self.check(count, "steps", 1000)?;
        let sizes = (json!({"steps": count, "frames": frames}), format!("{count} steps, {frames} frames"));
        Ok(Picture { text: steps.svg(), sizes })
    }

    fn automaton(&self, constraint: &Constraint) -> Result<Picture> {
        let automaton = self.byte_automaton(constraint)?;
        self.check(automaton.state_count() - 1, "states", 200)?;
        let graph = Graph::new(&automaton);
        let (states, edges) = (graph.states(), graph.edges());
        let sizes = format!("{states} states, {} edges", edges.len());
        let sizes = (json!({"accepting": graph.accepting(), "edges": edges}), sizes);
        let text = match self.extension().as_deref() {
            Some("svg") => graph.svg(),
            Some("dot" | "gv") | None => graph.dot(),
            Some(_) => return Err("the picture's name ends in .svg or .dot".into()),
        };
        Ok(Picture { text, sizes })
    }

    fn byte_automaton(&self, constraint: &Constraint) -> Result<ByteAutomaton> {
        let automaton = constraint.to_automaton(&self.limits.limits())?;
        Ok(automaton.ok_or("the constraint is on tokens, not on text")?)
    }

    /// The extension of the output.
    fn extension(&self) -> Option<String> {
        let path = self.output.as_ref()?;
        Some(path.extension().unwrap_or_default().to_string_lossy().into_owned())
    }

    /// Requires an SVG file; `subject` is the beginning of the message.
    fn check_svg(&self, subject: &str) -> Result<()> {
        if self.extension().as_deref() != Some("svg") {
            return Err(format!("{subject} drawn as SVG: name a file that ends in .svg with -o").into());
        }
        Ok(())
    }

    fn check(&self, count: usize, what: &str, max: usize) -> Result<()> {
        let max = self.max_nodes.unwrap_or(max);
        if count > max {
            return Err(format!("{count} {what} exceed --max-nodes {max}: raise it").into());
        }
        Ok(())
    }
}
