#!/bin/sh
# cli_hardening.sh: what the program says that it was compiled with is in it: checked calls, guarded stacks, tables that are
# read-only once they are filled, an address that differs from start to start. Read by readelf.
. tests/lib/tap.sh
flags=$("$PROGRAM" version --json | sed -n 's/.*"flags":"\([^"]*\)".*/\1/p')
if [ -n "${SAN:-}" ]; then
    skip "a hardened program" "sanitizers check the same and more"
    finish
    exit
fi
if ! command -v readelf > /dev/null 2>&1; then
    skip "a hardened program" "readelf is not installed"
    finish
    exit
fi
# The compilers that it can be built with all know these; HARDEN=0 leaves them out.
case $flags in
*-D_FORTIFY_SOURCE=[23]*-fstack-protector-strong*) ok "it says how it was hardened" ;;
*)
    skip "a hardened program" "built without: $flags"
    finish
    exit
    ;;
esac
readelf -lW "$PROGRAM" > "$W/segments" 2> /dev/null
readelf -dW "$PROGRAM" > "$W/dynamic" 2> /dev/null
readelf -W --dyn-syms "$PROGRAM" > "$W/symbols" 2> /dev/null
readelf -hW "$PROGRAM" > "$W/head" 2> /dev/null
check "stacks are guarded" grep -q '__stack_chk_fail' "$W/symbols"
check "calls that know their room are checked" grep -q '__[a-z]*printf_chk\|__memcpy_chk' "$W/symbols"
check "tables of addresses are read-only" grep -q 'GNU_RELRO' "$W/segments"
check "from the start" grep -q 'BIND_NOW\|FLAGS_1.*NOW' "$W/dynamic"
check "its address differs from start to start" grep -q 'Type: *DYN' "$W/head"
check "its stack is not executed" sh -c "grep 'GNU_STACK' '$W/segments' | grep -q 'RW ' && ! grep 'GNU_STACK' '$W/segments' | grep -q 'RWE'"
if command -v objdump > /dev/null 2>&1 && [ "${flags#*-fcf-protection}" != "$flags" ]; then
    check "functions that are called through a pointer begin with a mark" [ "$(objdump -d --no-show-raw-insn -j .text "$PROGRAM" 2> /dev/null | grep -c endbr64)" -gt 100 ]
else
    skip "functions that are called through a pointer begin with a mark" "no objdump, or a compiler without -fcf-protection"
fi
finish
