# Every target does its own set-up. `make` alone lists the targets.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
JOBS ?= 2
ARGS ?=
SEED ?=
SEEDS ?=
FIRST ?= 1
SECONDS ?= 15
MINUTES ?= $(if $(SEEDS),0,10)
SECTION ?= core
ONLY ?=

.PHONY: help setup demo test unit stories contract live live-full faults lint types check schemas bench cluster controlplane tools wheel clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements/dev.lock pyproject.toml scripts/setup.sh
	@scripts/setup.sh $(VENV)
	@touch $(READY)

setup: $(READY) ## Install everything: Python packages, helm and kubectl, the control plane
	@scripts/tools.sh $(PY)
	@scripts/controlplane.sh $(PY)

tools: $(READY)
	@scripts/tools.sh $(PY)

controlplane: $(READY)
	@scripts/controlplane.sh $(PY)

demo: $(READY) ## Watch four scenes on an embedded cluster (ARGS=--real, ARGS=--keep)
	@if [[ " $(ARGS) " == *" --real "* ]]; then scripts/controlplane.sh $(PY); fi
	@$(PY) -m stoker demo $(ARGS)

test: setup unit stories contract live ## Pass all tests: unit, stories, contract, live

unit: $(READY)
	@scripts/tier.sh unit $(PY) -m pytest tests/unit tests/shape tests/faults -q -n $(JOBS) -m "not faults and not full"

stories: $(READY)
	@scripts/tier.sh stories $(PY) -m pytest tests/stories -q -n $(JOBS) -m "not full"

contract: $(READY)
	@scripts/tier.sh contract $(PY) -m pytest tests/contract -q -n $(JOBS) --dist loadfile

live: $(READY)
	@scripts/tier.sh live $(PY) -m pytest tests/live -q -m "not full"

live-full: setup ## Pass the long tests too, and all examples of properties
	@scripts/tier.sh unit-full $(PY) -m pytest tests/unit tests/shape tests/faults -q -n $(JOBS) \
	  -m "not faults" --hypothesis-profile full
	@scripts/tier.sh live-full $(PY) -m pytest tests/live tests/contract tests/stories -q

faults: setup ## Run seeded mixes of faults (MINUTES=10, or SEEDS=200 SECONDS=15; SEED=7 runs one again)
	@FAULT_SEED=$(SEED) FAULT_SEEDS=$(SEEDS) FAULT_FIRST=$(FIRST) FAULT_SECONDS=$(SECONDS) \
	  FAULT_MINUTES=$(MINUTES) FAULT_LANES=$(JOBS) \
	  scripts/tier.sh faults $(PY) -m pytest tests/faults/test_faults.py -q -n $(JOBS) -p no:randomly

lint: $(READY) ## Format and lint
	@$(VENV)/bin/ruff format --check controller tests benchmarks scripts
	@$(VENV)/bin/ruff check --output-format=concise controller tests benchmarks scripts
	@$(VENV)/bin/codespell controller templates overlays policies docs examples README.md

types: $(READY) ## Check the types
	@$(VENV)/bin/mypy

check: $(READY) ## Lint, types, import contracts, generated files
	@scripts/tier.sh check scripts/check.sh $(VENV)

schemas: setup ## Write generated files anew (list types from the rig's OpenAPI, JSON schemas)
	@$(PY) tests/tools/generate_list_types.py
	@$(PY) -m stoker schema --all --to docs/schemas

bench: setup ## Measure (SECTION=core, apply, warmth; ONLY=soak for a part); prints a table, writes benchmarks/results.json
	@$(PY) benchmarks/run.py --section $(SECTION) $(if $(ONLY),--only $(ONLY))

cluster: setup ## Leave a real control plane with simulated GPU nodes up
	@$(PY) -m stoker dev cluster --background $(ARGS)

wheel: $(READY) ## Build sdist and wheel into dist/
	@rm -rf dist
	@$(PY) -m build --no-isolation

clean: ## Remove what the targets made in this folder
	@rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .stoker
