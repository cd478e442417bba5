//! scratch
#![allow(unsafe_code)]
use burn_dfa::constraint::*;
use burn_dfa::*;
use serde_json::Value;
use std::time::{Duration, Instant};
fn cpu() -> Duration {
    #[repr(C)]
    struct T {
        s: i64,
        n: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(c: i32, t: *mut T) -> i32;
    }
    let mut t = T { s: 0, n: 0 };
    unsafe { clock_gettime(3, &mut t) };
    Duration::new(t.s as u64, t.n as u32)
}
fn main() {
    let mut all = Vec::new();
    let verbose = std::env::var("V").is_ok();
    let limits = Limits { time: Duration::from_secs(2), ..Limits::default() };
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap();
        let (mut n, mut pass, mut refused, mut limit, mut vr, mut ia, mut fo, mut nv, mut ni, mut mism) =
            (0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        let mut reasons = std::collections::BTreeMap::<String, (usize, String)>::new();
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let tests = row["tests"].as_array().unwrap();
            let id = row["id"].as_str().unwrap_or("").to_string();
            if !tests.is_empty() {
                n += 1;
            }
            let _ = Instant::now();
            let clock = cpu();
            let c = Constraint::json_schema_with(
                row["schema"].clone(),
                &JsonOptions { whitespace: Whitespace::Spaced, ..Default::default() },
            );
            let c = match c {
                Ok(c) => c,
                Err(e) => {
                    if !tests.is_empty() {
                        refused += 1;
                    }
                    let m = e.to_string();
                    let k = m.splitn(3, ": ").last().unwrap().to_string();
                    let k: String = k.chars().take(90).collect();
                    let en = reasons.entry(k).or_insert((0, format!("{id} {m}")));
                    en.0 += 1;
                    continue;
                }
            };
            let dfa = c.to_byte_dfa(&limits);
            let t = (cpu() - clock);
            all.push((t, id.clone(), dfa.as_ref().map_or(0, |d| d.as_ref().unwrap().state_count())));
            let dfa = match dfa {
                Ok(d) => d,
                Err(e) if e.is_limit() => {
                    limit += 1;
                    println!("LIMIT {id} {e} {t:?}");
                    continue;
                }
                Err(e) if e.is_unsatisfiable() => None,
                Err(e) => {
                    refused += 1;
                    let m = e.to_string();
                    let k = m.splitn(3, ": ").last().unwrap().to_string();
                    let k: String = k.chars().take(90).collect();
                    let en = reasons.entry(k).or_insert((0, format!("{id} {m}")));
                    en.0 += 1;
                    continue;
                }
            };
            let mut ok = true;
            for (i, t) in tests.iter().enumerate() {
                let valid = t["valid"].as_bool().unwrap();
                let (s, member) = match c.json_text(&t["data"], &limits) {
                    Ok(Some(x)) => x,
                    _ => continue,
                };
                let m = dfa.as_ref().is_some_and(|d| d.matches(s.as_bytes()));
                if m != member {
                    mism += 1;
                    if mism < 10 {
                        println!(
                            "MISMATCH {id} #{i} dfa {m} plan {member} valid {valid} {}",
                            s.chars().take(300).collect::<String>()
                        );
                    }
                }
                if valid {
                    nv += 1
                } else {
                    ni += 1
                }
                if valid && !m {
                    vr += 1;
                    ok = false;
                    if verbose {
                        println!("REJECTED {id} #{i} {}", s.chars().take(1500).collect::<String>());
                    }
                }
                if !valid && m {
                    if t["needs_format"].as_bool() == Some(true) {
                        fo += 1
                    } else {
                        ia += 1;
                        ok = false;
                        if verbose {
                            println!("ACCEPTED {id} #{i} {}", s.chars().take(1500).collect::<String>());
                        }
                    }
                }
            }
            if ok && !tests.is_empty() {
                pass += 1;
            }
        }
        println!(
            "{file}: pass {pass}/{n} refused {refused} limit {limit} valid_rejected {vr}/{nv} invalid_accepted {ia}/{ni} format-only {fo} mismatch {mism}"
        );
        let mut r: Vec<_> = reasons.into_iter().collect();
        r.sort_by_key(|x| std::cmp::Reverse(x.1.0));
        for (k, v) in r.iter().take(12) {
            println!("   {} × {k}   e.g. {}", v.0, v.1.chars().take(200).collect::<String>());
        }
    }
    all.sort();
    if all.is_empty() {
        return;
    }
    let q = |p: f64| &all[((all.len() - 1) as f64 * p) as usize];
    for p in [0.5, 0.9, 0.95, 0.99, 1.0] {
        println!("{p}: {:?}", q(p));
    }
    let mut st: Vec<_> = all.iter().map(|x| x.2).collect();
    st.sort();
    for p in [0.5, 0.9, 0.95, 0.99, 1.0] {
        println!("states {p}: {:?}", st[((st.len() - 1) as f64 * p) as usize]);
    }
}
