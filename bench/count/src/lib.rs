//! Single operations, for the benches that time them and for the program that counts their
//! instructions.

pub mod micro;
