//! Single operations, for the program that counts their instructions or times them.

pub mod micro;
