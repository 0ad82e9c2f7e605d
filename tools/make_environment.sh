#!/bin/sh
# Create .venv with the first usable Python among the arguments, and install this checkout into it.
# A name on PATH is not enough: version managers leave shims that only print an error, and Debian splits off ensurepip.
# LOCK names the file that holds every package to a version; without it, the newest ones are taken.
set -eu

usable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' </dev/null >/dev/null 2>&1
}

first_usable() {
    for candidate in "$@"; do
        if usable "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    echo 'Python 3.11 or newer with the venv module is needed; name one with: make PYTHON=/path/to/python3' >&2
    return 1
}

if ! usable .venv/bin/python; then
    python=$(first_usable "$@")
    echo "Creating .venv with $("$python" --version 2>&1)" >&2
    "$python" -m venv --clear .venv
fi

echo 'Installing pi-session-mcp and its development tools into .venv' >&2
.venv/bin/python -m pip install --disable-pip-version-check --quiet ${LOCK:+--constraint "$LOCK"} --editable '.[node,dev]' </dev/null
