#!/bin/sh
# Create .venv with the first usable Python among the arguments, and install this checkout into it.
# LOCK names the file that holds every package to a version; without it, the newest ones are taken.
set -eu

. tools/find_python.sh

if ! usable .venv/bin/python; then
    python=$(first_usable "$@")
    echo "Creating .venv with $("$python" --version 2>&1)" >&2
    "$python" -m venv --clear .venv
fi

echo 'Installing pi-session-mcp and its development tools into .venv' >&2
.venv/bin/python -m pip install --disable-pip-version-check --quiet ${LOCK:+--constraint "$LOCK"} --editable '.[node,dev]' </dev/null
