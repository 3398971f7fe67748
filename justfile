# The steps of the merge gate by name. `.ci/run` runs them all and does not need just.

# As in .ci/run, so that neither rebuilds what the other built
export CARGO_INCREMENTAL := "0"
export CARGO_PROFILE_DEV_DEBUG := "none"

# List the recipes
default:
    @just --list

# The whole merge gate
gate:
    .ci/run

# Check the format
format:
    cargo fmt --check

# Lint everything but the fuzz targets, which need a C++ compiler; warnings are errors
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Run all tests, those on real control planes included
test:
    cargo test --workspace --no-fail-fast

# Run the demo's steps once, as README's first command builds it (the gate runs them as a test)
demo:
    cargo run --release -p demo -- --once

# Run every measurement for a moment
smoke:
    cargo run --release -p bench -- smoke

# Run the gate's steps, without installing the programs that the bench compares with
steps: format lint test smoke

# Tests on real control planes whose names contain NAME
hub *NAME:
    cargo test -p hub-tests --test hub -- {{ NAME }}

# Chaos on real control planes for MINUTES, with the faults whose names contain one of ONLY (a,b)
chaos MINUTES="1" ONLY="":
    CHAOS_ONLY={{ ONLY }} cargo test -p chaos-tests --test chaos -- --minutes {{ MINUTES }}

# Tests on real nodes whose names contain NAME
nodes *NAME:
    cargo test -p node-tests --test node -- {{ NAME }}

# Tests of the charts whose names contain NAME
charts *NAME:
    cargo test -p hub-tests --test charts -- {{ NAME }}

# Measure scenarios, or everything
bench *SCENARIOS:
    cargo run --release -p bench -- {{ if SCENARIOS == "" { "all" } else { "run " + SCENARIOS } }}

# Count instructions and compare them with bench/instructions.json
count *CASE:
    cargo run --profile counted -p count -- {{ CASE }}

# Build docs/ as a book in target/book (mdBook)
book:
    mdbook build

# Check dependencies, their licences and sources (cargo-deny)
deny:
    cargo deny check bans licenses sources
