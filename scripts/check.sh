#!/usr/bin/env bash
# Lint, types, import contracts and generated files, all of them even if one fails.
set -u
venv=$1
cd "$(dirname "$0")/.."
failed=0
step() {
  echo "check: $1"
  shift
  "$@" || failed=1
}
step format "$venv/bin/ruff" format --check --quiet controller tests benchmarks scripts
step lint "$venv/bin/ruff" check --quiet --output-format=concise controller tests benchmarks scripts
step spelling "$venv/bin/codespell" controller templates overlays policies docs examples README.md
step types "$venv/bin/mypy" --no-error-summary
step layers "$venv/bin/lint-imports" --no-cache
step generated "$venv/bin/python" scripts/generated.py --check
exit $failed
