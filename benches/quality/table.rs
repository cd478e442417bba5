//! The report in Markdown.

use std::fmt::Write as _;

use crate::engine::Drafts;
use crate::measure::Score;
use crate::sets::Set;
use crate::speculation::Speculation;
use crate::speed::{Figures, Memory, ROWS, Speed};
use crate::variants::{Constraint, MAX_TOKENS, TEMPERATURE, Variant};

/// What a run measured, and where.
pub struct Report {
    /// The arguments, with the names of files alone.
    pub arguments: String,
    /// The name and the bytes of the file of the model.
    pub model: (String, u64),
    /// The machine.
    pub machine: String,
    /// The number of threads of the answers.
    pub threads: usize,
    /// The load of the machine before the run.
    pub load: Option<f64>,
    /// The names of the engines.
    pub engines: Vec<String>,
    /// The variants.
    pub variants: Vec<Variant>,
    /// The sets with the scores of the variants.
    pub sets: Vec<(Set, Vec<Score>)>,
    /// The figures of speed.
    pub speed: Vec<Speed>,
    /// The figures of speculative decoding.
    pub speculation: Vec<Speculation>,
}

impl Report {
    /// The page.
    pub fn markdown(&self) -> String {
        let mut page = String::from("# Quality and speed with a real model\n\n");
        let (file, bytes) = &self.model;
        let _ = writeln!(page, "`cargo bench --bench quality -- {}`\n", self.arguments);
        let _ = writeln!(page, "- Model: {file}, {:.0} MB", *bytes as f64 / 1e6);
        let _ = writeln!(page, "- Machine: {}; threads: {}{}", self.machine, self.threads, self.load_note());
        for engine in &self.engines {
            let _ = writeln!(page, "- Engine: {engine}");
        }
        let _ = writeln!(
            page,
            "- An answer has at most {MAX_TOKENS} tokens. Sampled answers have a temperature of {TEMPERATURE} and a fixed seed;\n  \
             all others are greedy. Tokens per second are of single rows, from the first token to the last.\n\n\
             ![The shares of right answers, and tokens per second](quality.svg)"
        );
        for (set, scores) in &self.sets {
            self.quality(&mut page, set, scores);
        }
        self.speed(&mut page);
        self.speculation(&mut page);
        page
    }

    /// A warning if other programs ran before the run.
    fn load_note(&self) -> String {
        match self.load {
            Some(load) if load >= 0.5 => format!(
                "; busy: a load of {load:.1} before the run, so compare\n  times only within this page"
            ),
            _ => String::new(),
        }
    }

    fn quality(&self, page: &mut String, set: &Set, scores: &[Score]) {
        let _ = writeln!(
            page,
            "\n## {}: {} prompts\n\n\
             | constraint | valid JSON | fits the schema | all right | values right | tokens an answer | tokens/s |\n\
             |---|---:|---:|---:|---:|---:|---:|",
            set.title,
            set.tasks.len()
        );
        for (variant, score) in self.variants.iter().zip(scores) {
            let of_prompts = |count: usize| percent(count, score.prompts);
            let of_values = |count: usize, all: usize| {
                if score.values == 0 { "–".to_owned() } else { percent(count, all) }
            };
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} | {:.1} | {:.0} |",
                variant.name(),
                of_prompts(score.json),
                of_prompts(score.fitting),
                of_values(score.right, score.prompts),
                of_values(score.right_values, score.values),
                score.tokens as f64 / score.prompts as f64,
                score.steps as f64 / score.seconds
            );
        }
        let errors = self
            .variants
            .iter()
            .zip(scores)
            .filter_map(|(variant, score)| Some((variant, score.error.as_ref()?)));
        for (variant, error) in errors {
            let _ = writeln!(page, "\nRefused by \"{}\", and counted as wrong: {error}", variant.name());
        }
    }

    fn speed(&self, page: &mut String) {
        let Some(first) = self.speed.first() else { return };
        let _ = writeln!(
            page,
            "\n## Speed\n\n\
             Tokens per second of a single row, medians over prompts of the extraction set, and of a prompt of {} tokens.\n\
             Memory is the peak of resident memory of the process so far, which includes the program itself,\n\
             divided by the size of the file.\n\n\
             | threads | | burn-dfa | llama.cpp | ratio |\n|---:|---|---:|---:|---:|",
            first.prompt_tokens
        );
        for Speed { threads, burn_dfa, llama_cpp, .. } in &self.speed {
            let mut row = |what: &str, figure: fn(&Figures) -> f64| {
                let ours = figure(burn_dfa);
                let (theirs, ratio) = match llama_cpp.as_ref().map(figure) {
                    Some(theirs) => (format!("{theirs:.0}"), format!("{:.2}", ours / theirs)),
                    None => ("–".to_owned(), "–".to_owned()),
                };
                let _ = writeln!(page, "| {threads} | {what} | {ours:.0} | {theirs} | {ratio} |");
            };
            row("free text", |figures| figures.free);
            row("JSON schema", |figures| figures.constrained);
            row("prompt", |figures| figures.prompt);
            if let Some(batch) = burn_dfa.batch {
                let _ = writeln!(
                    page,
                    "| {threads} | JSON schema, a batch of {ROWS} in total | {batch:.0}, {:.1} times one row | – | – |",
                    batch / burn_dfa.constrained
                );
            }
            let memory: [(&str, fn(&Memory) -> u64); 3] = [
                ("after loading", |memory| memory.loaded),
                ("after one answer under a JSON schema", |memory| memory.answered),
                ("after all single rows and the prompt", |memory| memory.all),
            ];
            for (when, peak) in memory {
                let share = |figures: &Figures| peak(&figures.memory) as f64 / self.model.1 as f64;
                let theirs = llama_cpp.as_ref().map(share);
                let _ = writeln!(
                    page,
                    "| {threads} | memory ÷ file, {when} | {:.2} | {} | {} |",
                    share(burn_dfa),
                    theirs.map_or("–".to_owned(), |theirs| format!("{theirs:.2}")),
                    theirs.map_or("–".to_owned(), |theirs| format!("{:.2}", share(burn_dfa) / theirs)),
                );
            }
        }
    }

    fn speculation(&self, page: &mut String) {
        let Some(first) = self.speculation.first() else { return };
        let _ = writeln!(
            page,
            "\n## Speculative decoding: {} prompts\n\n\
             Prompts of the extraction set, one row, greedy. Time is without the first call, which reads the prompt.\n\n\
             | constraint | draft tokens | tokens a call | calls saved | time ÷ without | same answers |\n\
             |---|---|---:|---:|---:|---:|",
            first.answers
        );
        let mut without = f64::NAN;
        for case in &self.speculation {
            if case.drafts == Drafts::None {
                without = case.seconds;
            }
            let _ = writeln!(
                page,
                "| {} | {} | {:.2} | {} | {:.2} | {} |",
                if case.constraint == Constraint::Free { "free" } else { "spaced" },
                match case.drafts {
                    Drafts::None => "none",
                    Drafts::Lookup => "prompt lookup",
                    Drafts::Forced => "forced tokens",
                    Drafts::ForcedThenLookup => "forced tokens, then prompt lookup",
                },
                case.tokens as f64 / case.calls as f64,
                percent(case.tokens.saturating_sub(case.calls), case.tokens),
                case.seconds / without,
                percent(case.same, case.answers)
            );
        }
    }
}

fn percent(count: usize, all: usize) -> String {
    format!("{:.0} %", 100.0 * count as f64 / all as f64)
}
