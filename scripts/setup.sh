#!/usr/bin/env bash
# Make the virtual environment $1 from requirements/dev.lock and install the project in it.
# uv when it is there, else python's own venv and pip. Exit 2 names what is missing.
set -eu
venv=$1
cd "$(dirname "$0")/.."

python=""
for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
  if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 &&
    "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "setup: Python 3.11 or newer is needed and not on PATH (Debian: apt-get install python3)" >&2
  exit 2
fi

echo "setup: Python packages into $venv ($("$python" --version))" >&2
if command -v uv >/dev/null 2>&1; then
  uv venv --quiet --allow-existing --python "$python" "$venv"
  VIRTUAL_ENV=$venv uv pip install --quiet --require-hashes -r requirements/dev.lock
  VIRTUAL_ENV=$venv uv pip install --quiet --no-deps --no-build-isolation -e .
else
  if ! "$python" -m venv "$venv" 2>/dev/null; then
    rm -rf "$venv"
    echo "setup: python's venv module does not work (Debian: apt-get install python3-venv)" >&2
    exit 2
  fi
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
fi
