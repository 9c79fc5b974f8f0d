#!/bin/sh
# Installs the SAT solvers of the example from the packages of Debian, Ubuntu and their descendants.
set -eu

packages="minisat cadical picosat cryptominisat clasp z3"

if ! command -v apt-get >/dev/null; then
    echo "install.sh needs apt-get, which is not installed here." >&2
    echo "Install those of these that your system has: $packages. The programs must be in PATH." >&2
    echo "'preselect race init' uses the ones that it finds." >&2
    exit 1
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null; then
    as_root="sudo"
else
    echo "Run install.sh as root, or install sudo." >&2
    exit 1
fi

$as_root apt-get update
# shellcheck disable=SC2086  # split into words on purpose
$as_root apt-get install --yes --no-install-recommends $packages
