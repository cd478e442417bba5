//! The picture: bars of right answers for each set, and of tokens per second.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Failure;
use crate::table::Report;

const WIDTH: u32 = 480;
const BAR: i32 = 20;
const BURN_DFA: RGBColor = RGBColor(214, 69, 65);
const LLAMA_CPP: RGBColor = RGBColor(46, 109, 180);

/// A bar with its label.
struct Bar {
    label: String,
    value: f64,
    color: RGBColor,
}

/// Draws a report into the file at `path`.
///
/// # Errors
/// The file cannot be written.
pub fn draw(report: &Report, path: &Path) -> Result<(), Failure> {
    let panels = panels(report);
    let rows = panels.iter().map(|(_, bars)| bars.len()).max().unwrap_or(0) as u32;
    let size = (WIDTH * panels.len().max(1) as u32, BAR as u32 * (rows + 1) + 64);
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, (title, bars)) in root.split_evenly((1, panels.len().max(1))).iter().zip(&panels) {
        panel(area, title, bars)?;
    }
    root.present()?;
    Ok(())
}

/// The titles and the bars: right answers of greedy variants, and single rows.
fn panels(report: &Report) -> Vec<(String, Vec<Bar>)> {
    let color = |is_llama_cpp: bool| if is_llama_cpp { LLAMA_CPP } else { BURN_DFA };
    let judged = report.sets.iter().filter(|(_, scores)| scores.iter().any(|score| score.values > 0));
    let mut panels: Vec<_> = judged
        .map(|(set, scores)| {
            let greedy = report.variants.iter().zip(scores).filter(|(variant, _)| !variant.is_sampled);
            let bars = greedy.map(|(variant, score)| Bar {
                label: variant.name(),
                value: 100.0 * score.right as f64 / score.prompts as f64,
                color: color(variant.is_llama_cpp),
            });
            (format!("{}, all right, % of {}", set.title, set.tasks.len()), bars.collect())
        })
        .collect();
    let mut speed = Vec::new();
    for measured in &report.speed {
        let engines =
            [("burn-dfa", Some(&measured.burn_dfa), false), ("llama.cpp", measured.llama_cpp.as_ref(), true)];
        for (name, figures, is_llama_cpp) in engines {
            let Some(figures) = figures else { continue };
            for (what, value) in [("free", figures.free), ("JSON schema", figures.constrained)] {
                let label = format!("{name}: {what}, threads: {}", measured.threads);
                speed.push(Bar { label, value, color: color(is_llama_cpp) });
            }
        }
    }
    if !speed.is_empty() {
        panels.push(("Tokens per second, one row".to_owned(), speed));
    }
    panels
}

/// Draws a title, and the bars below each other.
fn panel(area: &DrawingArea<SVGBackend, Shift>, title: &str, bars: &[Bar]) -> Result<(), Failure> {
    let left = 210;
    let max = bars.iter().map(|bar| bar.value).fold(1.0, f64::max);
    let scale = f64::from(WIDTH as i32 - left - 60) / max;
    let font = ("sans-serif", 13).into_font();
    area.draw_text(title, &("sans-serif", 17).into_font().color(&BLACK), (16, 14))?;
    for (row, bar) in bars.iter().enumerate() {
        let top = 44 + BAR * row as i32;
        let middle = top + BAR / 2;
        let right = left + (bar.value * scale).round() as i32;
        area.draw(&Rectangle::new([(left, top + 3), (right, top + BAR - 3)], bar.color.filled()))?;
        let label = font.color(&BLACK).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(&bar.label, &label, (left - 8, middle))?;
        let value = font.color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(&format!("{:.0}", bar.value), &value, (right + 6, middle))?;
    }
    Ok(())
}
