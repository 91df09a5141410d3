# Every target but help and clean sets up first; a set-up that has nothing to do takes a few milliseconds.
# ARGS goes to the program behind the target: `make test ARGS="-k ledger"`, `make bench ARGS=--json`.

PYTHON_BIN := .venv/bin/python
PYTEST := $(PYTHON_BIN) -m pytest
WORKERS ?= auto
FAULT_WORKERS ?= 4
SEEDS ?= 1000
# Some machines forbid Python to keep what it has compiled: then every process of the tests compiles it all again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup users run demo screenshots test lint check bench agents faults simulate fuzz format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

setup: ## .venv with the locked packages, tests and linters too, and the system packages that are missing
	@bash scripts/setup.sh

users: ## .venv with what running needs, the command `spak` too
	@bash scripts/setup.sh users

run: users ## the platform in the browser, with a demo team: http://127.0.0.1:8000; ARGS="--port 8101"
	@$(PYTHON_BIN) manage.py up --demo $(ARGS)

demo: users ## tune a C attention kernel on this machine, verify its ledger, replay it
	@.venv/bin/spak demo $(ARGS)

test: setup ## the tests, without the long fault and fuzz walks
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not (slow and (faults or fuzz))" $(ARGS)

lint: setup ## ruff, mypy, the import contracts, figures of the sources
	$(PYTHON_BIN) -m ruff check .
	$(PYTHON_BIN) -m ruff format --check .
	$(PYTHON_BIN) -m mypy
	.venv/bin/lint-imports
	$(PYTHON_BIN) scripts/house.py

check: lint test ## what CI runs

screenshots: setup ## the README's pictures of the platform, taken anew
	$(PYTEST) -q tests/e2e/shell/test_screenshots.py --screenshots docs/img $(ARGS)

bench: setup ## our figures beside their floors and aims, measured now; ARGS=peers beside other systems
	$(PYTHON_BIN) -m bench $(ARGS)

agents: setup ## real coding agents behind the guard, from npm, against a scripted model
	@$(PYTHON_BIN) -m bench agents $(ARGS)

faults: setup ## every fault test, the long walks too; more workers than cores, for they mostly wait
	$(PYTEST) -n $(FAULT_WORKERS) --dist loadfile --no-loadscope-reorder -m faults $(ARGS)

simulate: setup ## workers, queue, store and faults from one seed each, in virtual time; SEEDS=10000, ARGS="--seed 7"
	@PYTHONPATH=agents:platform $(PYTHON_BIN) -m simulate --seeds $(SEEDS) $(ARGS)

fuzz: setup ## every test with random input, the long ones too: 10,000 examples of each law of policies, 10 minutes of the API
	SPAK_FUZZ_EXAMPLES=$${SPAK_FUZZ_EXAMPLES:-10000} SPAK_FUZZ_SECONDS=$${SPAK_FUZZ_SECONDS:-600} $(PYTEST) --timeout 7200 -n $(WORKERS) --dist loadfile -m fuzz $(ARGS)

format: setup ## let ruff rewrite the sources
	$(PYTHON_BIN) -m ruff format .
	$(PYTHON_BIN) -m ruff check --fix .

clean: ## remove .venv and every cache; runs in .spak stay
	rm -rf .venv .uv .venv-peers .venv-strategies .venv-links .venv-repowise .venv-code-review-graph .venv-codegraph .venv-repair .venv-selection .venv-codeipi .venv-agents .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
