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

limits=(-timeout=20 -rss_limit_mb=512 -malloc_limit_mb=64)

# A hang is told by the clock, which a machine that was paused falsifies: such an input runs once more by itself.
hangs() { # TARGET INPUT
    ! "$binaries/$1" "${limits[@]}" "$2" >/dev/null 2>&1
}

# What libFuzzer says while it runs fills megabytes: it goes to a file. A run is told in a line, a failure with its input.
failed=()
for target in "$@"; do
    target=$(basename "$target" .rs)
    artifacts=artifacts/$target
    log=$artifacts/log
    mkdir -p "$artifacts"
    if "$binaries/$target" "corpus/$target" -artifact_prefix="$artifacts/" -max_total_time="$seconds" \
        -max_len=65536 "${limits[@]}" -print_final_stats=1 >"$log" 2>&1; then
        echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs in $seconds s, $(sed -n 's/.*\(cov: [0-9]*\).*/\1/p' "$log" | tail -n 1)"
    else
        input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
        if [[ $(basename "$input") == timeout-* ]] && ! hangs "$target" "$input"; then
            echo "$target: fuzz/$input passed 20 s by the clock, and ended in time when it ran again"
            continue
        fi
        failed+=("$target")
        echo "== $target failed"
        # From the fault on, else the end; without the words that mutation liked best.
        fault=$(awk '/panicked|ERROR: |ALARM: |^==[0-9]/ { on = 1 } on && !/# Uses: / && ++n <= 100 { print substr($0, 1, 400) }' "$log")
        [ -n "$fault" ] || fault=$(tail -n 50 "$log")
        echo "$fault"
        if [ -n "$input" ]; then
            echo "== $target: fuzz/$input, the first 8 KiB of it in base64:"
            head -c 8192 "$input" | base64
        fi
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "== failed: ${failed[*]}"
    exit 1
fi
