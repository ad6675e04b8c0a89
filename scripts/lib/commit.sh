#!/bin/sh
# commit.sh: prints of which commit the tree is in which this is started: what the Makefile puts into the program and
# gpu/tools.sh into results. A file COMMIT goes before git: a copy says in it what it is a copy of, also one that came with a git
# folder of another commit. Results that are not committed yet make no other program. Nothing is known: "unknown".
{
    cat COMMIT || {
        name=$(git describe --always --abbrev=12) &&
            if git diff --quiet HEAD -- . ':!results'; then echo "$name"; else echo "$name-dirty"; fi
    }
} 2>/dev/null || echo unknown
