#!/bin/sh
# cli_coverage.sh: what is linked into programs that count their lines (scripts/coverage.sh): one that ends without exit()
# writes its counts all the same. The counting itself takes long: `make coverage`.
. tests/lib/tap.sh

sh scripts/coverage.sh --no-such > "$W/out" 2> "$W/err"
check "an option that is none is refused" [ $? -eq 2 ]
if [ -n "${SAN:-}" ]; then
    skip "counts of programs that end early" "the run without SAN does it"
    finish
    exit
fi
cat > "$W/ends.c" << 'END'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc < 2) return 0;
    if (strcmp(argv[1], "_exit") == 0) _exit(7);
    if (strcmp(argv[1], "_Exit") == 0) _Exit(7);
    if (strcmp(argv[1], "abort") == 0) abort();
    if (strcmp(argv[1], "SIGTERM") == 0) raise(SIGTERM);
    raise(SIGKILL);
}
END
cc=${CC:-cc}
if ! "$cc" -D_GNU_SOURCE -O1 -c tests/lib/coverage.c -o "$W/hook.o" || ! (cd "$W" && "$cc" -O0 --coverage -c ends.c -o ends.o && "$cc" --coverage ends.o hook.o -o ends) 2> "$W/err"; then
    skip "counts of programs that end early" "the compiler has no --coverage"
    finish
    exit
fi
for way in _exit:7 _Exit:7 abort:134 SIGTERM:143; do
    rm -f "$W/ends.gcda"
    "$W/ends" "${way%:*}" > "$W/out" 2>&1
    status=$?
    check "ended by ${way%:*}: its status, and its counts" [ "$status:$(test -s "$W/ends.gcda" && echo counts)" = "${way#*:}:counts" ]
done
rm -f "$W/ends.gcda"
"$W/ends" kill > "$W/out" 2>&1
check "killed: none, so that the test above can fail" [ ! -e "$W/ends.gcda" ]
finish
