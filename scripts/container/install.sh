#!/bin/sh
# install.sh [COMMIT [check]]: inside a container, in a copy of the sources: installs what is missing (scripts/deps.sh has the one
# list of packages), builds, and installs to /usr/local. COMMIT is what the program will say it is made from, since
# images have no git; with check, all tests run first. The Dockerfile and the Apptainer definition beside it do nothing else.
set -eu
cd "$(dirname "$0")/../.."
DEBIAN_FRONTEND=noninteractive
export DEBIAN_FRONTEND
if [ -n "${1:-}" ]; then echo "$1" >COMMIT; fi
sh scripts/deps.sh build text
# Not into build/, which may have come along from the machine that the sources are from.
BUILD=$(mktemp -d)
jobs=$(getconf _NPROCESSORS_ONLN)
make -j"$jobs" BUILD="$BUILD" all
if [ "${2:-}" = check ]; then
    sh scripts/deps.sh test
    make -j"$jobs" BUILD="$BUILD" check
fi
make BUILD="$BUILD" PREFIX=/usr/local install
rm -rf "$BUILD" /var/lib/apt/lists/*
sparsetrain version
