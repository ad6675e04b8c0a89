# shellcheck shell=sh
# wav.sh: sourced by the tests of speech: files of recorded sound, which is noise.

# put_u32 NUMBER: four bytes, the lowest first
# shellcheck disable=SC2059 # the octal numbers are the format
put_u32() { printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255)))"; }
# wav FILE SAMPLES [RATE [FROM]]: the bytes of the program from that one on
wav() {
    {
        printf RIFF
        put_u32 $((2 * $2 + 36))
        printf 'WAVEfmt \020\000\000\000\001\000\001\000'
        put_u32 "${3:-16000}"
        put_u32 $((2 * ${3:-16000}))
        printf '\002\000\020\000data'
        put_u32 $((2 * $2))
        tail -c +"${4:-5000}" "$PROGRAM" | head -c $((2 * $2))
    } > "$1"
}
