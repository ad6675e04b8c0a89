# shellcheck shell=sh
# wav.sh: sourced by the tests of speech: files of recorded sound, which is noise.
. scripts/lib/wav.sh

# wav FILE SAMPLES [RATE [FROM]]: the bytes of the program from that one on
wav() {
    {
        wav_header "$2" "${3:-16000}"
        tail -c +"${4:-5000}" "$PROGRAM" | head -c $((2 * $2))
    } > "$1"
}
