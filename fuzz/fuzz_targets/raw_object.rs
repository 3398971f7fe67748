#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| edges::check("raw_object", input));
