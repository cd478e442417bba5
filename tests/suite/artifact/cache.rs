//! A shared folder of compiled constraints.

use burn_dfa::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use burn_dfa::constraint::{Expression, Grammar, JsonOptions, Whitespace};
use burn_dfa::{CompiledConstraint, Constraint, ConstraintCache, Limits, TokenId, Vocabulary};
use serde_json::json;

use super::vocabulary;

/// A new folder; the system cleans it up.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("burn-dfa-cache-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn regexes() -> Vec<Constraint> {
    ["a+", "(ab|ca)+é?", "[abc]{3,9}"].map(|regex| Constraint::regex(regex).unwrap()).into()
}

#[test]
fn a_constraint_is_compiled_once() {
    let folder = folder("once");
    let cache = ConstraintCache::new(&folder, 1 << 20).unwrap();
    let (vocabulary, limits) = (vocabulary(true), Limits::default());
    for constraint in regexes() {
        let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &limits).unwrap();
        assert!(cache.compile(&constraint, &vocabulary, &limits).unwrap() == compiled);
    }
    let entries = files(&folder);
    assert_eq!(entries.len(), 3);
    assert_eq!(cache.bytes(), entries.iter().map(|path| path.metadata().unwrap().len()).sum::<u64>());
    // Loads come from files: after an entry is overwritten by another, it returns the other
    // constraint.
    std::fs::copy(&entries[0], &entries[1]).unwrap();
    let same = regexes().iter().map(|c| cache.compile(c, &vocabulary, &limits).unwrap()).collect::<Vec<_>>();
    let equal = (0..3).flat_map(|i| (0..i).map(move |j| (i, j))).filter(|&(i, j)| same[i] == same[j]).count();
    assert_eq!(equal, 1);
    assert_eq!(files(&folder), entries);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_key_includes_every_difference() {
    let folder = folder("key");
    let cache = ConstraintCache::new(&folder, 1 << 20).unwrap();
    let (words, limits) = (vocabulary(true), Limits::default());
    let regex = Constraint::regex("a+").unwrap();
    let schema = |options: &JsonOptions| {
        let vocabulary = Vocabulary::from_chars("[]1, .".chars()).unwrap().with_eos([TokenId(5)]).unwrap();
        let constraint =
            Constraint::json_schema_with(json!({"items": {"const": 1}, "type": "array"}), options).unwrap();
        cache.compile(&constraint, &vocabulary, &limits).unwrap()
    };
    let dfa = |regex: &str| {
        let dfa = Constraint::regex(regex).unwrap().to_byte_dfa(&limits).unwrap().unwrap();
        cache.compile(&Constraint::dfa(dfa), &words, &limits).unwrap()
    };
    let other = words.clone().with_eos([TokenId(6)]).unwrap();
    let less = Limits { states: 1000, ..Limits::default() };
    let compact = JsonOptions { whitespace: Whitespace::Compact, ..JsonOptions::default() };
    let after = |marker: &str, constraint| {
        cache.compile(&Constraint::after(marker, constraint), &words, &limits).unwrap()
    };
    let automaton = |regex: &str| {
        Constraint::dfa(Constraint::regex(regex).unwrap().to_byte_dfa(&limits).unwrap().unwrap())
    };
    let asked: [&dyn Fn() -> CompiledConstraint; 13] = [
        &|| cache.compile(&regex, &words, &limits).unwrap(),
        &|| cache.compile_token_level(&regex, &words, &limits).unwrap(),
        &|| cache.compile_byte_level(&regex, &words, &limits).unwrap(),
        &|| cache.compile(&regex, &other, &limits).unwrap(),
        &|| cache.compile(&regex, &words, &less).unwrap(),
        &|| schema(&JsonOptions::default()),
        &|| schema(&compact),
        &|| dfa("a+"),
        &|| dfa("a+b"),
        &|| after("b", regex.clone()),
        &|| after("c", regex.clone()),
        &|| after("b", automaton("a+")),
        &|| after("b", automaton("a+b")),
    ];
    for (at, ask) in asked.iter().enumerate() {
        ask();
        assert_eq!(files(&folder).len(), at + 1);
    }
    asked.iter().for_each(|ask| drop(ask()));
    assert_eq!(files(&folder).len(), asked.len());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn grammars_that_are_built_by_hand_have_entries_of_their_own() {
    let folder = folder("built");
    let cache = ConstraintCache::new(&folder, 1 << 20).unwrap();
    let (vocabulary, limits) = (vocabulary(true), Limits::default());
    // Built like a server's grammar for a request with tools and another constraint.
    let either = |one: &str, other: &str| {
        let both = [one, other].map(|regex| Expression::constraint(Constraint::regex(regex).unwrap()));
        let mut builder = Grammar::builder();
        builder.define("answer", Expression::choice(both)).unwrap();
        Constraint::from_grammar(builder.finish("answer").unwrap())
    };
    let asked = [("a", "b"), ("a", "c"), ("ab", "c"), ("a", "b+")].map(|(one, other)| either(one, other));
    let after = asked.iter().map(|constraint| Constraint::after("c", constraint.clone()));
    let asked: Vec<Constraint> = asked.iter().cloned().chain(after).collect();
    for round in 0..2 {
        for (at, constraint) in asked.iter().enumerate() {
            let compiled = cache.compile(constraint, &vocabulary, &limits).unwrap();
            assert!(
                compiled == CompiledConstraint::compile(constraint, &vocabulary, &limits).unwrap(),
                "{at}"
            );
            assert_eq!(files(&folder).len(), if round == 0 { at + 1 } else { asked.len() });
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn corrupt_entries_are_compiled_again() {
    let folder = folder("corrupt");
    let cache = ConstraintCache::new(&folder, 1 << 20).unwrap();
    let (vocabulary, limits, constraint) = (vocabulary(true), Limits::default(), regexes().remove(1));
    let compiled = cache.compile(&constraint, &vocabulary, &limits).unwrap();
    let [path] = &files(&folder)[..] else { panic!("one entry") };
    let right = std::fs::read(path).unwrap();
    let mut flipped = right.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for wrong in [&b""[..], b"not an artifact", &right[..right.len() / 2], &flipped] {
        std::fs::write(path, wrong).unwrap();
        assert!(cache.compile(&constraint, &vocabulary, &limits).unwrap() == compiled);
        assert_eq!(std::fs::read(path).unwrap(), right);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_least_recently_used_entry_is_evicted() {
    let folder = folder("least");
    let (vocabulary, limits) = (vocabulary(true), Limits::default());
    let all = ConstraintCache::new(&folder, 1 << 20).unwrap();
    let ask =
        |cache: &ConstraintCache, at: usize| cache.compile(&regexes()[at], &vocabulary, &limits).unwrap();
    (0..3).for_each(|at| drop(ask(&all, at)));
    let total = all.bytes();
    std::fs::remove_dir_all(&folder).unwrap();

    let two = ConstraintCache::new(&folder, total - 1).unwrap();
    let mut entries = Vec::new();
    for at in 0..2 {
        ask(&two, at);
        let new = files(&folder).into_iter().find(|path| !entries.contains(path)).unwrap();
        entries.push(new);
    }
    // Both are old, and the second older; then the second is used.
    let ago = |seconds| SystemTime::now() - Duration::from_secs(seconds);
    let age = |path: &Path, seconds| {
        std::fs::OpenOptions::new().append(true).open(path).unwrap().set_modified(ago(seconds)).unwrap();
    };
    age(&entries[0], 100);
    age(&entries[1], 200);
    ask(&two, 1);
    // Foreign files stay, abandoned partial files are deleted.
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    let (left, fresh) = (folder.join("left.partial"), folder.join("fresh.partial"));
    std::fs::write(&left, "half").unwrap();
    std::fs::write(&fresh, "half").unwrap();
    age(&left, 7200);
    ask(&two, 2);
    let now = files(&folder);
    assert!(!now.contains(&entries[0]) && now.contains(&entries[1]), "{now:?}");
    assert!(
        !now.contains(&left) && now.contains(&fresh) && now.contains(&folder.join("notes.txt")),
        "{now:?}"
    );
    assert!(two.bytes() < total && now.len() == 4, "{now:?}");
    // A constraint larger than the limit is compiled and not stored.
    let none = ConstraintCache::new(&folder, 10).unwrap();
    let before = files(&folder);
    let regex = Constraint::regex("b+").unwrap();
    none.compile(&regex, &vocabulary, &limits).unwrap();
    assert_eq!(files(&folder), before);
    std::fs::remove_dir_all(&folder).unwrap();
    // If the folder is deleted, or is a file, only `new` fails.
    none.compile(&regex, &vocabulary, &limits).unwrap();
    std::fs::write(&folder, "a file").unwrap();
    assert_eq!(ConstraintCache::new(&folder, 10).unwrap_err().kind(), ErrorKind::Artifact);
    std::fs::remove_file(folder).unwrap();
}

/// Names the folder if this program is one of several.
const SHARED: &str = "BURN_DFA_TEST_CACHE";

/// Compiles and loads, from a few threads, in a folder with space for two of three constraints.
fn work(folder: &Path) {
    let (vocabulary, limits) = (vocabulary(true), Limits::default());
    let expected: Vec<_> =
        regexes().iter().map(|c| CompiledConstraint::compile(c, &vocabulary, &limits).unwrap()).collect();
    let least =
        expected.iter().map(|compiled| compiled.to_bytes(&Default::default()).unwrap().len()).sum::<usize>();
    let cache = ConstraintCache::new(folder, least as u64).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (cache, expected, vocabulary, limits) = (cache.clone(), &expected, &vocabulary, &limits);
            scope.spawn(move || {
                for round in 0..30 {
                    let at = (thread + round) % 3;
                    let compiled = cache.compile(&regexes()[at], vocabulary, limits).unwrap();
                    assert!(compiled == expected[at], "thread {thread}, round {round}");
                }
            });
        }
    });
}

#[test]
fn processes_share_a_folder() {
    if let Some(folder) = std::env::var_os(SHARED) {
        return work(Path::new(&folder));
    }
    let folder = folder("shared");
    let test = "artifact::cache::processes_share_a_folder";
    let start = |_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test]).env(SHARED, &folder).stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    work(&folder);
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
    let left = files(&folder);
    assert!(
        !left.is_empty() && left.iter().all(|path| path.extension().unwrap() == "safetensors"),
        "{left:?}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}
