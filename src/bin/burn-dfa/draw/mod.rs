//! `burn-dfa draw`: draws the automaton of a constraint, its table over tokens, or the rules of a
//! grammar.

mod rules;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use burn_dfa::cli::{Graph, LimitArgs};
use burn_dfa::{CompiledConstraint, StateId};
use clap::Args;
use serde_json::json;

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::output::{Output, Result};
use rules::Diagrams;

/// Draw the automaton of a constraint over bytes, its table over the tokens of a tokenizer, or the
/// rules of a grammar.
///
/// The dead state is omitted. Accepting states have a double circle. In an automaton with a stack,
/// call and RETURN states (↩, with the exit) have their own colors, and dashed lines lead to their
/// next states; `--table` draws the automaton copied to a fixed depth.
#[derive(Args)]
#[command(after_help = "Examples:
  burn-dfa draw --regex '(cat|dog)s?' -o automaton.svg
  burn-dfa draw --regex '(cat|dog)s?' | dot -Tpdf > automaton.pdf
  burn-dfa draw --regex '[0-9]{4}' --table --tokenizer tokenizer.json -o table.svg
  burn-dfa draw --grammar c.gbnf --syntax gbnf --rules -o c.svg")]
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
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Maximum number of states to draw, by default 200, or of boxes of rules, by default 1,000.
    #[arg(long, value_name = "N", visible_alias = "most")]
    max_nodes: Option<usize>,
    #[command(flatten)]
    limits: LimitArgs,
}

impl Draw {
    pub fn run(&self, out: &mut Output) -> Result<ExitCode> {
        let constraint = self.constraint.read()?;
        let extension =
            self.output.as_ref().map(|path| path.extension().unwrap_or_default().to_string_lossy());
        // The sizes as JSON and as text.
        let said;
        let text = if self.rules {
            if extension.as_deref() != Some("svg") {
                return Err("rules are drawn as SVG: name a file that ends in .svg with -o".into());
            }
            let grammar = constraint.as_grammar().ok_or("--rules is for grammars: give --grammar")?;
            let diagrams = Diagrams::new(grammar);
            let (rules, boxes) = (diagrams.len(), diagrams.boxes());
            self.check(boxes, "boxes", 1000)?;
            said = (json!({"rules": rules, "boxes": boxes}), format!("{rules} rules, {boxes} boxes"));
            diagrams.svg()
        } else if self.table {
            if extension.as_deref() != Some("svg") {
                return Err("a table is drawn as SVG: name a file that ends in .svg with -o".into());
            }
            let vocabulary = self.tokenizer.read()?;
            let table =
                CompiledConstraint::compile_token_level(&constraint, &vocabulary, &self.limits.limits())?;
            let states = table.state_count() - StateId::RESERVED as usize;
            self.check(states, "states", 200)?;
            let classes = table.class_count();
            said = (
                json!({"states": states, "classes": classes}),
                format!("{states} states, {classes} token classes"),
            );
            table::svg(&table, &vocabulary)
        } else {
            let automaton = constraint.to_automaton(&self.limits.limits())?;
            let automaton = automaton.ok_or("the constraint is on tokens, not on text")?;
            self.check(automaton.state_count() - 1, "states", 200)?;
            let graph = Graph::new(&automaton);
            let (states, edges) = (graph.states(), graph.edges());
            let sizes = format!("{states} states, {} edges", edges.len());
            said = (json!({"accepting": graph.accepting(), "edges": edges}), sizes);
            match extension.as_deref() {
                Some("svg") => graph.svg(),
                Some("dot" | "gv") | None => graph.dot(),
                Some(_) => return Err("the picture's name ends in .svg or .dot".into()),
            }
        };
        match &self.output {
            Some(path) => {
                std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
                if !out.json {
                    writeln!(out.to, "{}: {}", path.display(), said.1)?;
                }
            }
            None if out.json => {}
            None => out.to.write_all(text.as_bytes())?,
        }
        if out.json {
            writeln!(out.to, "{}", said.0)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn check(&self, count: usize, what: &str, most: usize) -> Result<()> {
        let most = self.max_nodes.unwrap_or(most);
        if count > most {
            return Err(format!("{count} {what} exceed --max-nodes {most}: raise it").into());
        }
        Ok(())
    }
}
