# shellcheck shell=sh
# wav.sh: recordings for those who have none: files of one channel, 16 bits at 16 kHz.

# put_u32 NUMBER: four bytes, the lowest first
# shellcheck disable=SC2059 # the octal numbers are the format
put_u32() { printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255)))"; }
# wav_header SAMPLES [RATE]: what comes before so many samples
wav_header() {
    printf RIFF
    put_u32 $((2 * $1 + 36))
    printf 'WAVEfmt \020\000\000\000\001\000\001\000'
    put_u32 "${2:-16000}"
    put_u32 $((2 * ${2:-16000}))
    printf '\002\000\020\000data'
    put_u32 $((2 * $1))
}
