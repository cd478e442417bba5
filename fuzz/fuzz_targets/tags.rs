#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| burn_dfa_fuzz::tags(bytes));
