#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| edges::check("managed_cluster", input));
