#!/bin/sh
# Write tools/development.lock: the versions that an empty environment gets today for the checkout and all of its extras.
# Only names and versions stand in it, so it holds for every registry, system and supported Python.
set -eu

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT INT TERM

. tools/find_python.sh
python=$(first_usable "$@")
"$python" -m venv "$place/environment"
"$place/environment/bin/python" -m pip install --disable-pip-version-check --quiet '.[node,dev,docs,bench]' </dev/null
{
    echo '# The versions that `make setup` installs. Written by `make lock`; used as constraints of pip.'
    "$place/environment/bin/python" -m pip freeze --disable-pip-version-check --exclude pi-session-mcp
} >"$place/lock"
mv "$place/lock" tools/development.lock
