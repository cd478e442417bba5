//! The picture, for each vocabulary: the quantiles of a step, and the share of schemas with a mask
//! over time.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::results::Results;
use crate::statistics::{QUANTILES, quantile};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// An error while drawing.
pub type Failure = Box<dyn std::error::Error>;

const COLORS: [RGBColor; 10] = [
    RGBColor(214, 69, 65),
    RGBColor(46, 109, 180),
    RGBColor(124, 173, 222),
    RGBColor(26, 58, 107),
    RGBColor(67, 147, 88),
    RGBColor(150, 120, 170),
    RGBColor(150, 200, 120),
    RGBColor(190, 160, 60),
    RGBColor(110, 110, 110),
    RGBColor(230, 150, 120),
];

/// The line of one engine.
struct Series {
    engine: usize,
    points: Vec<(f64, f64)>,
}

/// Draws all results into the file at `path`.
pub fn draw(results: &[Results], path: &Path) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let root = SVGBackend::new(path, (1280, 420 * results.len().max(1) as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, results) in root.split_evenly((results.len(), 1)).iter().zip(results) {
        let (left, right) = area.split_horizontally(560);
        let name = format!("{}, {} tokens", results.vocabulary, results.vocab_size);
        let ticks =
            |x: f64| QUANTILES.get(x.round() as usize).map_or(String::new(), |(name, _)| name.to_string());
        let title = format!("{name}: a step, batch 1");
        let axis = Axis { title: &title, labels: QUANTILES.len(), ticks: &ticks, points: 3 };
        lines(&left, results, &axis, &steps(results), SeriesLabelPosition::LowerRight)?;
        let title =
            format!("First mask: % of {} schemas, each engine's fastest first", results.schemas().count());
        let axis = Axis { title: &title, labels: 11, ticks: &|x| format!("{x:.0}"), points: 0 };
        lines(&right, results, &axis, &first_masks(results), SeriesLabelPosition::UpperLeft)?;
    }
    root.present()?;
    Ok(())
}

/// The quantiles of a step.
fn steps(results: &Results) -> Vec<Series> {
    let engines = (0..results.engines.len()).map(|engine| (engine, results.steps(engine, true).theirs));
    engines
        .filter(|(_, times)| !times.is_empty())
        .map(|(engine, times)| {
            let quantiles = QUANTILES.iter().map(|(_, q)| quantile(&times, *q)).enumerate();
            Series { engine, points: quantiles.filter_map(|(x, y)| Some((x as f64, y?))).collect() }
        })
        .collect()
}

/// For each engine, without variants, the time by which a share of all schemas has a mask. A line
/// ends at the share of refused schemas.
fn first_masks(results: &Results) -> Vec<Series> {
    let engines = (0..results.engines.len()).filter(|&engine| !results.engines[engine].contains(','));
    engines
        .map(|engine| {
            let mut times = results.own_first_masks(engine);
            times.sort_unstable_by(f64::total_cmp);
            let share = 100.0 / results.schemas().count() as f64;
            let points = times.iter().enumerate().map(|(rank, time)| ((rank + 1) as f64 * share, *time));
            Series { engine, points: points.collect() }
        })
        .filter(|series| !series.points.is_empty())
        .collect()
}

/// The lower axis of a drawing, and the size of its points.
struct Axis<'a> {
    title: &'a str,
    labels: usize,
    ticks: &'a dyn Fn(f64) -> String,
    points: u32,
}

/// Draws lines over a logarithmic axis.
fn lines(
    area: &Area,
    results: &Results,
    axis: &Axis,
    series: &[Series],
    legend: SeriesLabelPosition,
) -> Result<(), Failure> {
    let points = || series.iter().flat_map(|series| &series.points);
    let max = |pick: fn(&(f64, f64)) -> f64| points().map(pick).fold(1.0, f64::max);
    let least = points().map(|point| point.1).fold(f64::INFINITY, f64::min).min(1e6);
    let (right, top) = (max(|point| point.0), max(|point| point.1));
    let mut chart = ChartBuilder::on(area)
        .caption(axis.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(28)
        .y_label_area_size(64)
        .build_cartesian_2d(-0.2..right + 0.2, (least / 2.0..top * 2.0).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(axis.labels)
        .x_label_formatter(&|x| (axis.ticks)(*x))
        .y_label_formatter(&|y| format!("{y}"))
        .y_desc("µs")
        .draw()?;
    for line in series {
        let color = COLORS[line.engine % COLORS.len()];
        chart
            .draw_series(
                LineSeries::new(line.points.iter().copied(), color.stroke_width(2)).point_size(axis.points),
            )?
            .label(results.engines[line.engine])
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(3)));
    }
    chart.configure_series_labels().position(legend).background_style(WHITE.mix(0.8)).draw()?;
    Ok(())
}
