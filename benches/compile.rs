//! Compile times: the first mask of the first MaskBench schemas by hash, the work done once per
//! vocabulary, and how the time grows with states, vocabulary size and token classes.
//!
//! `cargo bench --bench compile` prints the times and draws `benches/results/compile.svg`. Without
//! the test data (`BURN_DFA_DATA`), the vocabulary consists of numbered words, and the schemas are
//! left out.

mod data;
#[allow(dead_code, reason = "the comparison with peers takes the instances as well")]
mod maskbench;

use std::hint::black_box;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use burn::tensor::Device;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId, Vocabulary,
};
use divan::Bencher;
use plotters::prelude::*;
use serde_json::json;

use maskbench::Row;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn main() {
    divan::main();
    // Skip the drawing if the benchmarks are only listed or run once as a test.
    if std::env::args().any(|argument| argument == "--bench")
        && std::env::args().all(|argument| argument != "--test")
    {
        draw(&Path::new(ROOT).join("results/compile.svg")).expect("a drawing");
    }
}

fn tokenizer() -> Option<String> {
    data::read("tokenizers/smollm2/tokenizer.json", "SmolLM2's vocabulary")
}

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let vocabulary = match tokenizer() {
        Some(json) => Vocabulary::from_tokenizer_json(json).unwrap().with_eos([TokenId(2)]).unwrap(),
        None => {
            let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
            let words = (256..49_151).map(|number| number.to_string().into_bytes());
            let tokens = bytes.chain(words).map(Some).chain([None]);
            Vocabulary::from_bytes(tokens).unwrap().with_eos([TokenId(49_151)]).unwrap()
        }
    };
    warm(&vocabulary);
    vocabulary
});

/// Does the work that happens once per vocabulary.
fn warm(vocabulary: &Vocabulary) {
    vocabulary.fingerprint();
    first_mask(&Constraint::regex("a").unwrap(), vocabulary);
}

/// The number of MaskBench schemas to compile.
const SCHEMAS: usize = 20;

/// The first schemas by hash. Refused schemas are printed and left out.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut rows = maskbench::first(SCHEMAS);
    rows.retain(|row| {
        let constraint = Constraint::json_schema(row.schema.clone());
        let compiled =
            constraint.and_then(|one| CompiledConstraint::compile(&one, &VOCABULARY, &Limits::default()));
        match compiled {
            Ok(_) => true,
            Err(error) => {
                println!("refused: {}: {error}", row.id);
                false
            }
        }
    });
    rows
});

/// The whole path to a first mask: automaton, compiled constraint, upload, one row.
fn first_mask(constraint: &Constraint, vocabulary: &Vocabulary) -> CompiledConstraint {
    let device = Device::flex();
    let compiled = CompiledConstraint::compile(constraint, vocabulary, &Limits::default()).unwrap();
    let tensors =
        DeviceConstraint::new(&[&compiled], vocabulary.len(), &TensorOptions::default(), &device).unwrap();
    let states = tensors.states(&[tensors.start(0)]).unwrap();
    black_box(tensors.illegal(states, None).into_data());
    compiled
}

#[divan::bench(args = 0..SCHEMAS)]
fn schema(bencher: Bencher, at: usize) {
    let Some(row) = ROWS.get(at) else { return };
    let vocabulary = &*VOCABULARY;
    bencher.bench(|| first_mask(&Constraint::json_schema(row.schema.clone()).unwrap(), vocabulary));
}

#[divan::bench(args = [r"\d{4}-\d\d-\d\d", r"[a-zA-Z0-9._%+\-]+@[a-zA-Z0-9.\-]+\.[a-zA-Z]{2,}"])]
fn regex(bencher: Bencher, pattern: &str) {
    let vocabulary = &*VOCABULARY;
    bencher.bench(|| first_mask(&Constraint::regex(pattern).unwrap(), vocabulary));
}

#[divan::bench]
fn a_string_of_10000(bencher: Bencher) {
    let vocabulary = &*VOCABULARY;
    bencher.bench(|| first_mask(&string_of(10_000), vocabulary));
}

fn string_of(max: usize) -> Constraint {
    Constraint::json_schema(json!({"type": "string", "maxLength": max})).unwrap()
}

mod once_for_a_vocabulary {
    use super::*;

    #[divan::bench]
    fn read_json_and_sort(bencher: Bencher) {
        let Some(json) = tokenizer() else { return };
        bencher.bench(|| {
            let vocabulary = Vocabulary::from_tokenizer_json(&json).unwrap();
            let vocabulary = vocabulary.with_eos([TokenId(2)]).unwrap();
            warm(&vocabulary);
            vocabulary
        });
    }

    #[divan::bench]
    fn load_from_file(bencher: Bencher) {
        let path = std::env::temp_dir().join(format!("burn-dfa-bench-{}", std::process::id()));
        VOCABULARY.save(&path).unwrap();
        bencher.bench(|| {
            let vocabulary = Vocabulary::load(&path).unwrap();
            warm(&vocabulary);
            vocabulary
        });
        std::fs::remove_file(&path).unwrap();
    }
}

/// The median time of a first mask in milliseconds, and the compiled constraint.
fn measure(constraint: &Constraint, vocabulary: &Vocabulary) -> (f64, CompiledConstraint) {
    let compiled = first_mask(constraint, vocabulary);
    let mut times: Vec<Duration> = (0..7)
        .map(|_| {
            let clock = Instant::now();
            first_mask(constraint, vocabulary);
            clock.elapsed()
        })
        .collect();
    times.sort();
    (times[times.len() / 2].as_secs_f64() * 1e3, compiled)
}

/// One panel of the drawing: times over one size, with the other sizes nearly constant.
struct Panel {
    title: &'static str,
    points: Vec<(f64, f64)>,
}

fn panels() -> [Panel; 3] {
    let vocabulary = &*VOCABULARY;
    let states = [10, 30, 100, 300, 1_000, 3_000, 10_000].map(|max| {
        let (time, compiled) = measure(&string_of(max), vocabulary);
        (compiled.state_count() as f64, time)
    });
    let word = |at: usize| {
        let id = TokenId(256 + (at * 7_919 % (vocabulary.len() - 512)) as u32);
        String::from_utf8_lossy(vocabulary.bytes(id).unwrap_or(b"-")).into_owned()
    };
    let classes = [4, 16, 64, 256, 1_024].map(|words| {
        let choice = Constraint::choice((0..words).map(word)).unwrap();
        let (time, compiled) = measure(&choice, vocabulary);
        (compiled.class_count() as f64, time)
    });
    let object = Constraint::json_schema(json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "tall": {"type": "boolean"}},
        "required": ["name", "age"]
    }));
    let object = object.unwrap();
    let vocab_sizes = [1_000, 3_000, 10_000, 20_000, vocabulary.len()].map(|vocab_size| {
        let cut = vocabulary.clone().with_eos([TokenId(2)]).unwrap().with_len(vocab_size).unwrap();
        warm(&cut);
        (vocab_size as f64, measure(&object, &cut).0)
    });
    [
        Panel { title: "states (strings of at most n characters)", points: states.to_vec() },
        Panel { title: "token classes (choices of n words)", points: classes.to_vec() },
        Panel { title: "tokens (an object)", points: vocab_sizes.to_vec() },
    ]
}

/// Draws the growth of the time of a first mask.
fn draw(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    let root = SVGBackend::new(path, (1200, 380)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, Panel { title, points }) in root.split_evenly((1, 3)).iter().zip(panels()) {
        println!("first mask, ms, by {title}: {points:.3?}");
        let max = points.iter().map(|&(x, _)| x).fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(30)
            .y_label_area_size(50)
            .build_cartesian_2d((1.0..max * 2.0).log_scale(), (0.01..1_000.0).log_scale())?;
        chart.configure_mesh().y_desc("first mask, ms").light_line_style(WHITE).draw()?;
        chart.draw_series([PathElement::new(points.clone(), BLUE.stroke_width(2))])?;
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, BLUE.filled())))?;
    }
    root.present()?;
    Ok(())
}
