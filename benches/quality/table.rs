//! The report in Markdown.

use std::fmt::Write as _;

use crate::acceptance::DraftCounts;
use crate::engine::Drafts;
use crate::measure::Score;
use crate::ours::{FORCED, LOOKUP};
use crate::sets::Set;
use crate::speculation::Speculation;
use crate::speed::{Figures, Memory, ROWS, Speed};
use crate::types::BlockType;
use crate::variants::{BATCH, Constraint, MAX_TOKENS, TEMPERATURE, Variant};

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
    /// The figures of each block type.
    pub types: Vec<BlockType>,
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
        let _ =
            writeln!(page, "- Machine: {};\n  threads: {}{}", self.machine, self.threads, self.load_note());
        for engine in &self.engines {
            let _ = writeln!(page, "- Engine: {engine}");
        }
        let _ = writeln!(
            page,
            "- An answer has at most {MAX_TOKENS} tokens. Sampled answers have a temperature of {TEMPERATURE}, a fixed\n  \
             seed and no other rule such as top-k; all others are greedy. Tokens per second are of single rows,\n  \
             from the first token to the last. Variants without tokens per second answer in batches of up to\n  \
             {BATCH} prompts."
        );
        if self.has_picture() {
            page.push_str("\n![The shares of right answers, and tokens per second](quality.svg)\n");
        }
        for (set, scores) in &self.sets {
            self.quality(&mut page, set, scores);
        }
        self.speed(&mut page);
        self.types(&mut page);
        self.speculation(&mut page);
        self.acceptance(&mut page);
        page
    }

    /// Whether the picture has any bars.
    pub fn has_picture(&self) -> bool {
        let is_judged = |(_, scores): &(Set, Vec<Score>)| scores.iter().any(|score| score.values > 0);
        !self.speed.is_empty() || self.sets.iter().any(is_judged)
    }

    /// A warning if other programs ran before the run.
    fn load_note(&self) -> String {
        match self.load {
            Some(load) if load >= 0.5 => {
                format!("; busy: a load of {load:.1} before the run, so compare times only within this page")
            }
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
            let rate = score.steps as f64 / score.seconds;
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} | {:.1} | {} |",
                variant.name(),
                of_prompts(score.json),
                of_prompts(score.fitting),
                of_values(score.right, score.prompts),
                of_values(score.right_values, score.values),
                score.tokens as f64 / score.prompts as f64,
                if variant.is_timed() { format!("{rate:.0}") } else { "–".to_owned() }
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
             Tokens per second of a single row, medians over prompts of the extraction set, and of a prompt of\n\
             {} tokens. Memory is the peak of resident memory of the process so far, which includes the program\n\
             itself, divided by the size of the file.\n\n\
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
            let mut memory = |when: &str, peak: fn(&Memory) -> u64| {
                let share = |figures: &Figures| peak(&figures.memory) as f64 / self.model.1 as f64;
                let theirs = llama_cpp.as_ref().map(share);
                let _ = writeln!(
                    page,
                    "| {threads} | memory ÷ file, {when} | {:.2} | {} | {} |",
                    share(burn_dfa),
                    theirs.map_or("–".to_owned(), |theirs| format!("{theirs:.2}")),
                    theirs.map_or("–".to_owned(), |theirs| format!("{:.2}", share(burn_dfa) / theirs)),
                );
            };
            memory("after loading", |memory| memory.loaded);
            memory("after one answer under a JSON schema", |memory| memory.answered);
            memory("after all single rows and the prompt", |memory| memory.all);
        }
    }

    fn types(&self, page: &mut String) {
        if self.types.is_empty() {
            return;
        }
        page.push_str(
            "\n## Block types\n\n\
             One thread, a single row, greedy, on prompts of the extraction set. Each prompt is answered under\n\
             its JSON schema, then twice free with at most as many tokens, then under the schema again. The\n\
             ratio is the time of a constrained token divided by the time of a free one, as the median over\n\
             the prompts. The first file is the model of the other sections. A file with the name of a type is\n\
             a copy of it by [`requantize.py`](../quality/requantize.py), with all matrices in that type. Only\n\
             rows of a multiple of 256 numbers can have a K type (Q2_K to Q6_K), in SmolLM2-135M the rows of\n\
             `ffn_down`, a fifth of all numbers. The other matrices then have Q4_0 (for Q2_K and Q3_K), Q5_0\n\
             (for Q4_K), Q5_1 (for Q5_K) or Q8_0 (for Q6_K).\n\n\
             | type | file, MB | free, tokens/s | constrained, tokens/s | constrained time ÷ free time |\n\
             |---|---:|---:|---:|---:|\n",
        );
        for BlockType { name, bytes, free, constrained, ratio } in &self.types {
            let megabytes = *bytes as f64 / 1e6;
            let _ = writeln!(page, "| {name} | {megabytes:.0} | {free:.1} | {constrained:.1} | {ratio:.3} |");
        }
    }

    fn speculation(&self, page: &mut String) {
        if self.speculation.is_empty() {
            return;
        }
        page.push_str(
            "\n## Speculative decoding\n\n\
             One row, greedy. Time is without the first call, which reads the prompt.\n\n\
             | prompts | constraint | draft tokens | tokens a call | calls saved | time ÷ without | same answers |\n\
             |---|---|---|---:|---:|---:|---:|\n",
        );
        let mut without = f64::NAN;
        for case in &self.speculation {
            if case.drafts == Drafts::None {
                without = case.seconds;
            }
            let _ = writeln!(
                page,
                "| {} | {:.2} | {} | {:.2} | {} |",
                case_name(case),
                case.tokens as f64 / case.calls as f64,
                percent(case.tokens.saturating_sub(case.calls), case.tokens),
                case.seconds / without,
                percent(case.same, case.answers)
            );
        }
    }

    fn acceptance(&self, page: &mut String) {
        if self.speculation.is_empty() {
            return;
        }
        let _ = writeln!(
            page,
            "\n## Acceptance of draft tokens\n\n\
             The draft tokens of the answers above. Each call of the model verifies a chain of fixed length:\n\
             {LOOKUP} tokens of a prompt lookup, {FORCED} forced tokens, or both. Filler completes a chain with fewer\n\
             proposals. *Legal* draft tokens come before the first token of their chain that breaks the\n\
             constraint or the budget. The verification rejects that token and all tokens after it. So a\n\
             constraint that cuts chains there before the verification leaves fewer tokens to verify, namely\n\
             the legal ones, and the same tokens are accepted.\n\n\
             | prompts | constraint | draft tokens | verified | legal | accepted | accepted ÷ verified | accepted ÷ legal |\n\
             |---|---|---|---:|---:|---:|---:|---:|"
        );
        for case in self.speculation.iter().filter(|case| case.drafts != Drafts::None) {
            let DraftCounts { verified, legal, accepted } = case.counts;
            let _ = writeln!(
                page,
                "| {} | {verified} | {legal} | {accepted} | {} | {} |",
                case_name(case),
                percent(accepted, verified),
                percent(accepted, legal)
            );
        }
    }
}

/// The first cells of the row of a case.
fn case_name(case: &Speculation) -> String {
    let constraint = if case.constraint == Constraint::Free { "free" } else { "spaced" };
    let drafts = match case.drafts {
        Drafts::None => "none",
        Drafts::Lookup => "prompt lookup",
        Drafts::Forced => "forced tokens",
        Drafts::ForcedThenLookup => "forced tokens, then prompt lookup",
    };
    format!("{} | {constraint} | {drafts}", case.set)
}

fn percent(count: usize, all: usize) -> String {
    format!("{:.0} %", 100.0 * count as f64 / all as f64)
}
