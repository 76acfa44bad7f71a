#!/usr/bin/env bash
# Reads the disassembly of the kernels and fails where a level's function
#   - is missing, or one stands beside it that should have been inlined,
#   - calls anything but a panic, a copy of bytes or another such function,
#   - never uses the registers of its level.
# Such a function gives right results, only slowly, so that no other check sees it.
#
# Usage: check-inlining.sh [OBJECT]   an object file of tilekern-kernels for x86-64 or AArch64; built here if not given
# Env:   OBJDUMP                      a disassembler for the object's CPU (default objdump)
set -euo pipefail
cd "$(dirname "$0")/.."

object=${1:-}
if [ -z "$object" ]; then
    object=$(mktemp -d)/kernels.o
    trap 'rm -rf "$(dirname "$object")"' EXIT
    # Without link-time optimisation, which would leave no machine code here.
    cargo --config profile.release.lto=false rustc -q --release -p tilekern-kernels --lib -- \
        -C codegen-units=1 --emit "obj=$object"
fi

listing=$("${OBJDUMP:-objdump}" -dr --no-show-raw-insn --demangle=rust "$object")
planes="planes::words planes::counts_i32 planes::counts_f32 planes::counts_u16"
packed="bits::unpack_u8 bits::unpack_u16 bits::unpack_u32 bits::unpack_u64 bits::unpack_lanes_u64 delta::deltas_u32 delta::deltas_u64"
values="gather::gather_u32 gather::gather_u64 strings::offsets_u32"
tiles="varint::varints_u32 varint::varints_u64 varint::vbytes_u32 varint::vbytes_u64 zigzag::zigzag_u32 zigzag::zigzag_u64 zigzag::zigzag_deltas_u32 zigzag::zigzag_deltas_u64 zigzag::zigzag_deltas2_u32 morton::morton alp::alp_f64 alp::alp_f32 swap::swap_words"
# Level, its registers, its functions.
case $listing in
*"elf64-x86-64"*) wanted="x86::avx2 ymm $planes scan::gaps patch::add bits::unpack_lanes_u32 $packed $values gather::gather_bytes runs::repeat_u32 runs::repeat_u64 strings::entries strings::spans strings::prefixed $tiles spread::spread_u32 spread::spread_u64
x86::avx2 pdep|popcnt|bzhi|shrx spread::spread_bits
x86::avx512 zmm $planes scan::gaps $packed $values $tiles zigzag::zigzag_deltas2_u64 fsst::fsst" ;;
*"elf64-littleaarch64"*) wanted="aarch64::neon v[0-9]+[.] planes::words scan::gaps bits::unpack_u8 bits::unpack_u16 bits::unpack_u32 bits::unpack_u64 delta::deltas_u32 delta::deltas_u64 strings::prefixed varint::varints_u32 varint::varints_u64 varint::vbytes_u32 varint::vbytes_u64 zigzag::zigzag_deltas_u32 spread::spread_u32" ;;
*) echo "no object of x86-64 or AArch64: $object" >&2; exit 1 ;;
esac

awk -v list="$wanted" '
    BEGIN {
        for (n = split(list, levels, "\n"); n > 0; n--) {
            for (f = split(levels[n], level, " "); f > 2; f--) {
                name = "tilekern_kernels::" level[1] "::" level[f]
                wanted[name] = level[2]
                # As relocations spell it.
                symbol = ""
                for (p = split(name, path, "::"); p > 0; p--) symbol = length(path[p]) path[p] symbol
                symbols[symbol]
            }
        }
        n = 0
    }
    function is_wanted(callee) {
        for (symbol in symbols) if (index(callee, symbol)) return 1
        return 0
    }
    function wrong(what) { print "check-inlining: " current ": " what; failed = 1 }
    /^[0-9a-f]+ <.*>:$/ {
        current = $0
        sub(/^[0-9a-f]+ </, "", current)
        sub(/>:$/, "", current)
        inside = current ~ /^<?tilekern_kernels::(x86|aarch64)::/
        if (inside && !(current in wanted)) wrong("is no entry of a row; it should have been inlined")
        if (current in wanted) found[current] = 1
        next
    }
    !inside { next }
    # What a call, or a load of a function for a call through a register, refers to.
    /R_X86_64_(PLT32|GOTPCREL|REX_GOTPCRELX|GOTPCRELX)|R_AARCH64_(CALL26|JUMP26)/ {
        callee = $0
        sub(/^.*R_[A-Z0-9_]+[ \t]+/, "", callee)
        sub(/[-+]0x[0-9a-f]+$/, "", callee)
        if (callee !~ /^core::(panicking|slice::(index|copy_from_slice_impl))|^core::option::unwrap_failed|^(memcpy|memset|memmove)$|^anon\.|^\.rodata/ && !is_wanted(callee)) wrong("refers to " callee)
        next
    }
    # Calls within the object have no relocation.
    / call +[0-9a-f]+ <| bl +[0-9a-f]+ </ && !/\+0x/ {
        callee = $0
        sub(/^.*</, "", callee)
        sub(/>.*$/, "", callee)
        if (!(callee in wanted)) wrong("calls " callee)
    }
    (current in wanted) && $0 ~ wanted[current] { wide[current]++ }
    END {
        for (current in wanted) {
            if (!(current in found)) wrong("is missing")
            else if (wide[current] < 4) wrong("hardly uses its level (" wanted[current] ")")
            else n++
        }
        if (failed) exit 1
        print "check-inlining: " n " kernels, no call left inside"
    }
' <<<"$listing"
