#!/bin/sh
# Installs the SAT solvers of the example: Debian's packages, also of Ubuntu and other descendants.
set -eu

packages="minisat cadical picosat cryptominisat clasp z3"

if ! command -v apt-get >/dev/null; then
    echo "install.sh knows Debian's packages only, and apt-get is not here." >&2
    echo "Install what your system has of: $packages; the programs must be in PATH." >&2
    echo "'preselect race init' takes those that it finds." >&2
    exit 1
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null; then
    as_root="sudo"
else
    echo "install.sh must be run by root, or where there is sudo." >&2
    exit 1
fi

$as_root apt-get update
# shellcheck disable=SC2086  # the words are meant one by one
$as_root apt-get install --yes --no-install-recommends $packages
