//! The simulation of servers: small traces against calculations by hand, long traces against
//! queueing theory.

use std::path::Path;

use serde_json::{Value, json};

use super::{example, fails, file, succeeds, text};

/// Costs in round numbers, with steps of a second.
fn costs(name: &str, rows: &[u32], prompt_token: f64, admit: f64) -> String {
    let costs = json!({
        "of": "round numbers",
        "step": rows.iter().map(|&rows| (rows, 1.0)).collect::<Vec<_>>(),
        "prompt_token": prompt_token,
        "admit": admit,
        "compile": 2.0,
        "compile_state": 0.0,
        "host_token": 0.0,
        "cache_token": 1.0,
        "state": 4.0,
    });
    file(name, &costs.to_string()).to_str().unwrap().to_owned()
}

/// One line for each number of rows.
fn plans(trace: &Path, args: &[&str]) -> Vec<Value> {
    let output = succeeds(example("capacity").arg("plan").arg(trace).args(args).arg("--json"));
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn assert_seconds(quantiles: &Value, p50: f64, p99: f64) {
    let near = |name: &str, expected: f64| (quantiles[name].as_f64().unwrap() - expected).abs() < 1e-9;
    assert!(near("p50", p50) && near("p99", p99), "{quantiles}: not {p50} and {p99}");
}

/// The second request needs no constraint and begins at once: half a second to begin, half a second
/// to read its prompt, then steps. The constraint of the first request is compiled meanwhile, and
/// it begins when a row is free, or at the host's next read.
#[test]
fn a_trace_of_two_requests_matches_a_calculation_by_hand() {
    let trace = file("two.csv", "arrival,prompt,output,constraint,states\n0,5,2,c,33\n0,5,3,,\n");
    let costs = costs("two.json", &[1, 2], 0.1, 0.5);
    let plans = plans(&trace, &["--costs", &costs, "--latency", "4.5", "--max-replicas", "1"]);
    let [one, two] = &plans[..] else { panic!("{plans:?}") };
    // The second: 0.5 + 0.5 + 1, then another step, 3 s. Then the first: 0.5 + 0.5 + 1.
    assert_eq!(one["replicas"], Value::Null);
    assert_seconds(&one["outcome"]["first_token"], 5.0, 5.0);
    assert_seconds(&one["outcome"]["latency"], 5.0, 5.0);
    // The first begins after 2 s, while the second runs, and its prompt delays the second.
    assert_eq!(two["replicas"], 1);
    assert_seconds(&two["outcome"]["first_token"], 4.0, 4.0);
    assert_seconds(&two["outcome"]["latency"], 4.0, 4.0);
    assert_eq!(two["outcome"]["arena_peak"], 64);
    assert_eq!(one["outcome"]["busy"], 1.0);
}

/// A second replica takes the second request.
#[test]
fn replicas_are_added_until_they_suffice() {
    let trace = file("many.csv", "arrival,prompt,output\n0,1,2\n0,1,2\n0,1,2\n0,1,2\n0,1,2\n0,1,2\n0,1,2\n");
    let costs = costs("many.json", &[1], 0.0, 0.0);
    for (latency, replicas) in [("1", 7), ("2", 4), ("3", 3), ("4", 2), ("6.5", 2), ("7", 1)] {
        let plans = plans(&trace, &["--costs", &costs, "--latency", latency]);
        assert_eq!(plans[0]["replicas"], replicas, "{latency} s: {plans:?}");
    }
}

/// Two constraints of one page each in an arena of one page: the second waits for the first, though
/// a row is idle.
#[test]
fn a_full_arena_holds_requests_up() {
    let trace =
        file("arena.csv", "arrival,prompt,output,constraint,states\n0,1,4,a,32\n0,1,4,b,32\n0,1,4,a,32\n");
    let costs = costs("arena.json", &[4], 0.0, 0.0);
    let args = ["--costs", &costs, "--latency", "100"];
    let free = plans(&trace, &args);
    // Compiled for 2 s on two threads, and 3 steps after the first token.
    assert_seconds(&free[0]["outcome"]["latency"], 5.0, 5.0);
    assert_eq!(
        (&free[0]["outcome"]["arena_peak"], &free[0]["outcome"]["arena_waits"]),
        (&json!(64), &json!(0))
    );
    let bound = plans(&trace, &[&args[..], &["--arena-states", "32"]].concat());
    // One queue: the third waits for the second, and then for the space of its constraint.
    assert_seconds(&bound[0]["outcome"]["latency"], 8.0, 11.0);
    assert_eq!(bound[0]["outcome"]["arena_peak"], 32);
    assert!(bound[0]["outcome"]["arena_waits"].as_u64().unwrap() > 0);
}

/// One row with answers of one step is a queue with random arrivals and one server of constant
/// time. Erlang calculated its waiting times (*Løsning af nogle Problemer fra
/// Sandsynlighedsregningen*, 1917).
#[test]
fn waiting_times_match_queueing_theory() {
    let rate = 0.7;
    let args = "trace --rate 0.7 --seconds 300000 --prompt 1 --output 2 --max-tokens 2".split(' ');
    let output = succeeds(example("capacity").args(args).args(["--constrained", "0"]));
    let trace = file("queue.csv", &output);
    let costs = costs("queue.json", &[1], 0.0, 0.0);
    let plans = plans(&trace, &["--costs", &costs, "--latency", "1000"]);
    // The probability of waiting at most `seconds`.
    let waits_at_most = |seconds: f64| {
        let terms = (0..=seconds as i32).map(|k| {
            let x = rate * (f64::from(k) - seconds);
            let factorial: f64 = (1..=k).map(f64::from).product();
            x.powi(k) / factorial * (-x).exp()
        });
        (1.0 - rate) * terms.sum::<f64>()
    };
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        let latency = plans[0]["outcome"]["latency"][name].as_f64().unwrap();
        let reached = waits_at_most(latency - 1.0);
        assert!((reached - part).abs() < 0.005, "{name}: {latency} s is the quantile {reached}");
    }
    let busy = plans[0]["outcome"]["busy"].as_f64().unwrap();
    assert!((busy - rate).abs() < 0.01, "{busy}");
}

/// A step reads 2 GB of weights, and for each row 100 tokens of 4,000 bytes and 1,000 logits twice,
/// at half of 1 GB/s. With many rows its time is bound by operations, 2e9 per row at half of 1e12
/// per second.
#[test]
fn an_estimate_is_bound_by_memory_and_then_by_operations() {
    let model = "--weights 1e9 --layers 10 --kv-heads 1 --head-dim 100 --vocabulary 1000 --context 100";
    let device = "--bandwidth 1e9 --flops 1e12 --efficiency 0.5 --classes 10 --max-rows 2048";
    let args = ["estimate", model, device].join(" ");
    let estimate: Value = serde_json::from_str(&succeeds(example("capacity").args(args.split(' ')))).unwrap();
    let steps = estimate["step"].as_array().unwrap();
    assert_eq!((&steps[0], &steps[11]), (&json!([1, 4.000816]), &json!([2048, 8.192])));
    let cost = |name: &str| estimate[name].as_f64().unwrap();
    assert_eq!((cost("prompt_token"), cost("cache_token"), cost("state")), (0.004, 4000.0, 40.0));
}

#[test]
fn a_plan_is_printed_as_text() {
    let trace = file("words.csv", "arrival,prompt,output\n0,1,2\n1,1,2\n");
    let costs = costs("words.json", &[1, 2], 0.0, 0.0);
    let plan = |latency: &str| {
        let mut command = example("capacity");
        command.arg("plan").arg(&trace).args(["--costs", &costs, "--latency", latency]);
        command
    };
    let output = succeeds(&mut plan("1"));
    assert!(output.starts_with("2 requests in 1 s, at most 1 within a second, 4 tokens\n"), "{output}");
    assert!(
        output.ends_with("\n1 replica of 1 rows, each with space for 0 states (0.0 MB on the device).\n"),
        "{output}"
    );
    let output = plan("0.5").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no number of rows answers in time on 1024 replicas"));
}

#[test]
fn malformed_traces_and_costs_are_refused() {
    let plan = |name: &str, trace: &str, costs: &str, message: &str| {
        let trace = file(&format!("{name}.csv"), trace);
        let costs = file(&format!("{name}.json"), costs);
        let mut command = example("capacity");
        fails(command.arg("plan").arg(trace).arg("--costs").arg(costs).args(["--latency", "1"]), &[message]);
    };
    let good = std::fs::read_to_string(costs("good.json", &[1], 0.0, 0.0)).unwrap();
    let head = "arrival,prompt,output,constraint,states\n";
    for (index, (lines, message)) in [
        ("a,b\n1,2,3", "line 1: \"a,b\" is not the header"),
        (head, "no requests"),
        (&format!("{head}1,2"), "line 2: \"1,2\" has fewer than three fields"),
        (&format!("{head}1,2,3,a,1,5"), "line 2: \"1,2,3,a,1,5\" has more than five fields"),
        (&format!("{head}NaN,2,3"), "line 2: an arrival at NaN s"),
        (&format!("{head}1,0,3"), "line 2: \"0\" is not a number of tokens from 1"),
        (&format!("{head}1,2,3\n0,2,3"), "line 3: it arrives before the line above"),
        (&format!("{head}1,2,3,,7"), "line 2: states of a constraint without a name"),
        (&format!("{head}1,2,3,a,7\n1,2,3,a,8"), "line 3: \"a\" has 8 states here and 7 above"),
    ]
    .into_iter()
    .enumerate()
    {
        plan(&format!("lines-{index}"), lines, &good, message);
    }
    let whole = format!("{head}1,2,3");
    let trace = file("rows.csv", &whole);
    let costs = costs("rows.json", &[1, 2], 0.0, 0.0);
    let mut command = example("capacity");
    command.arg("plan").arg(trace).args(["--costs", &costs, "--latency", "1", "--rows", "3"]);
    fails(&mut command, &["the costs are of batches of 1, 2 rows, not of 3"]);
    let changed = |name: &str, value: Value| {
        let mut costs: Value = serde_json::from_str(&good).unwrap();
        costs[name] = value;
        costs.to_string()
    };
    for (index, (costs, message)) in [
        ("{".to_owned(), "EOF"),
        (changed("spare", json!(1)), "unknown field `spare`"),
        (changed("admit", json!(-1.0)), "admit: -1 is no cost"),
        (changed("step", json!([])), "step: not a single number of rows"),
        (changed("step", json!([[2, 1.0], [1, 1.0]])), "step: numbers of rows from 1"),
        (changed("step", json!([[1, 0.0]])), "step: 0 seconds for 1 rows"),
    ]
    .into_iter()
    .enumerate()
    {
        plan(&format!("costs-{index}"), &whole, &costs, message);
    }
}

/// Plans use the measured costs.
#[test]
fn the_embedded_model_is_measured() {
    let args = ["measure", "--max-rows", "2", "--slots", "64"];
    let measured: Value = serde_json::from_str(&succeeds(example("capacity").args(args))).unwrap();
    let rows: Vec<_> =
        measured["step"].as_array().unwrap().iter().map(|step| step[0].as_u64().unwrap()).collect();
    assert_eq!(rows, [1, 2]);
    assert!(measured["compile_state"].as_f64().unwrap() > 0.0, "{measured}");
    let costs = file("measured.json", &measured.to_string());
    let trace = file("measured.csv", "arrival,prompt,output\n0,1,2\n");
    let plans = plans(&trace, &["--costs", costs.to_str().unwrap(), "--latency", "1000"]);
    assert!(plans.iter().all(|plan| plan["replicas"] == 1), "{plans:?}");
}
