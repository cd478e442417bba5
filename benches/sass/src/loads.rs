//! The loads from memory for a token, counted in the sources of the kernels.

use std::fs;

use super::cases;
use super::tile::{AT_ONCE, UNITS};
use crate::tensor::arrays::TILE_WORDS;

/// The source of a kernel.
struct Source {
    text: String,
    /// The names of the pointers into each buffer, in the order of the arguments.
    pointers: Vec<Vec<String>>,
}

impl Source {
    fn new(text: String) -> Self {
        let (_, kernel) = text.split_once("__global__").unwrap();
        let (signature, _) = kernel.split_once(") {\n").unwrap();
        let (_, arguments) = signature.rsplit_once('(').unwrap();
        let is_buffer = |argument: &&str| argument.contains("__restrict__") && !argument.contains(STRIDES);
        let pointers = arguments.split(", ").filter(is_buffer).map(|argument| {
            let index = format!(" = &{}[", last_word(argument));
            text.match_indices(&index).map(|(at, _)| last_word(&text[..at]).to_owned()).collect::<Vec<_>>()
        });
        Self { pointers: pointers.collect(), text }
    }

    /// The number of loads from a buffer in a part of the source.
    fn loads(&self, part: &str, buffer: usize) -> usize {
        let loads = |pointer: &String| part.matches(&format!(" = *{pointer};")).count();
        self.pointers[buffer].iter().map(loads).sum()
    }

    /// The bodies of the loops.
    fn loops(&self) -> impl Iterator<Item = &str> {
        const START: &str = "}()) {\n";
        self.text.match_indices(START).map(|(at, _)| block(&self.text[at + START.len()..]))
    }
}

/// The argument with the strides and shapes of tensors.
const STRIDES: &str = "dynamic_meta";

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap()
}

/// The text up to the brace that closes the block in which the text begins.
fn block(text: &str) -> &str {
    let mut depth = 1;
    let end = text.find(|character: char| {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    &text[..end.unwrap()]
}

/// With a mask row, a unit loads a vector of logits once, and a word for 32 tokens; with a stack
/// also the word of the tokens that depend on older frames. Gumbel noise takes another load for
/// each logit. A mask in place loads one vector at a time: it skips most of them.
#[test]
fn a_hit_loads_a_logit_once_and_a_word_for_32_tokens() {
    // Each unit of a cube loads one word of a tile.
    assert_eq!(UNITS as usize, TILE_WORDS);
    let folder = std::env::temp_dir().join(format!("burn-dfa-loads-{}", std::process::id()));
    cases::write(&folder).unwrap();
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let parts: Vec<&str> = name.split(", ").collect();
        if !["mask", "mask in place", "choose"].contains(&parts[0]) || !parts.contains(&"pool") {
            continue;
        }
        count += 1;
        let (_, size) = name.split_once(" by ").unwrap();
        let size: usize = size[..1].parse().unwrap();
        let source = Source::new(fs::read_to_string(&path).unwrap());
        // The logits are the first buffer of all kernels, the quantiles of the noise are the fourth
        // of a choice. The pool is the last one before the masked logits.
        let buffers = source.pointers.len();
        let pool = buffers - if parts[0] == "mask" { 2 } else { 1 };
        let mut expected = vec![0; buffers];
        let is_alone = parts[0] == "mask in place" || parts.contains(&"loaded alone");
        expected[0] = if is_alone { 1 } else { AT_ONCE as usize };
        if parts.contains(&"Gumbel") {
            expected[3] = expected[0] * size;
        }
        let loops: Vec<&str> = source.loops().filter(|body| source.loads(body, 0) > 0).collect();
        assert_eq!(loops.len(), 1, "{name}: loops over the logits");
        let loads: Vec<usize> = (0..buffers).map(|buffer| source.loads(loops[0], buffer)).collect();
        assert_eq!(loads, expected, "{name}: loads from each buffer in the loop");
        assert!(!loops[0].contains(STRIDES), "{name}: a stride is loaded for {size} logits");
        let in_loops: usize = source.loops().map(|body| source.loads(body, pool)).sum();
        assert_eq!(in_loops, 0, "{name}: loads from the pool in a loop");
        // The first load finds the budgets for which the words are exact.
        let words = if name.contains("stack") { 2 } else { 1 };
        assert_eq!(source.loads(&source.text, pool), 1 + words, "{name}: loads from the pool");
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(count > 20, "{count} kernels");
}
