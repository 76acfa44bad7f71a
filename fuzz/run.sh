#!/usr/bin/env bash
# Builds all fuzz targets, writes their seeds, and runs each for some seconds. Exit status 1 if any of them crashed.
#
# Usage: fuzz/run.sh [SECONDS PER TARGET, default 60] [TARGET...]
# Needs: cargo-fuzz. Takes the nightly toolchain where there is one, else the stable one with its unstable options on.
# TILEKERN_FIXTURES, where set, adds the tiles of the conformance corpus to the seeds.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-60}
shift || true
if cargo +nightly --version >/dev/null 2>&1; then
    toolchain=+nightly
else
    toolchain=
    export RUSTC_BOOTSTRAP=1
fi

cargo run --quiet --example seeds
# shellcheck disable=SC2086 # no toolchain is no argument
cargo $toolchain fuzz build --fuzz-dir .
binaries=target/$(rustc -vV | sed -n 's/^host: //p')/release
# Freed memory counts as used for as long as the sanitizer keeps it back.
export ASAN_OPTIONS=quarantine_size_mb=16:${ASAN_OPTIONS:-}
[ $# -gt 0 ] || set -- fuzz_targets/*.rs

failed=0
for target in "$@"; do
    target=$(basename "$target" .rs)
    echo "== $target, $seconds s"
    mkdir -p "artifacts/$target"
    "$binaries/$target" "corpus/$target" -artifact_prefix="artifacts/$target/" -max_total_time="$seconds" \
        -max_len=65536 -timeout=20 -rss_limit_mb=512 -malloc_limit_mb=64 -print_final_stats=1 ||
        { echo "== $target failed: see fuzz/artifacts/$target"; failed=1; }
done
exit $failed
