//! Times of single operations: `cargo bench -p count`. For instructions, which do not move with the
//! machine's load: the program `count`.

use count::micro;
use criterion::{Criterion, criterion_group, criterion_main};

fn operations(criterion: &mut Criterion) {
    for (name, make) in micro::all() {
        let mut operation = make();
        criterion.bench_function(name, |bencher| bencher.iter_custom(|count| operation.time(count)));
    }
}

criterion_group!(benches, operations);
criterion_main!(benches);
