# Every target prepares .venv first (once, and again when pyproject.toml or constraints.txt change).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
OLDEST := .venv-oldest
# One thread each: two test processes with a thread pool each would fight over the cores.
SINGLE := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test oldest lint format bench docs clean

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

$(STAMP): pyproject.toml constraints.txt
	@echo "== preparing $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[torch,jax,scipy,html,plot,cluster,docs,dev]"
	@touch $@

demo: $(STAMP) ## check the bundled examples and show what a user sees
	@echo "== demo"
	@$(BIN)/python examples/demo.py

test: lint ## lint, then run all tests
	@echo "== tests"
	@$(SINGLE) $(BIN)/python -m pytest -n $(WORKERS)

$(OLDEST)/.installed: pyproject.toml constraints-oldest.txt
	@echo "== preparing $(OLDEST) (torch of this age brings gigabytes of GPU packages)"
	@test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt -e ".[torch,jax,scipy,html,plot,cluster,dev]"
	@touch $@

# Pages show what the current releases print.
oldest: $(OLDEST)/.installed ## run all tests with the oldest releases that pyproject.toml allows
	@echo "== tests with the oldest releases"
	@$(SINGLE) $(OLDEST)/bin/python -m pytest -n $(WORKERS) --ignore=tests/docs --ignore=tests/cli/test_codes.py

lint: $(STAMP) ## ruff (rules and format) and mypy --strict
	@echo "== ruff check"
	@$(BIN)/ruff check .
	@echo "== ruff format"
	@$(BIN)/ruff format --check .
	@echo "== mypy --strict"
	@$(BIN)/mypy --strict src

format: $(STAMP) ## let ruff format and mend what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP) ## the tables of the README: calibration, catalogue, times
	@echo "== bench"
	@$(BIN)/python -m bench

docs: $(STAMP) ## the documentation's site, in build/site
	@echo "== docs"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open build/site/index.html"

clean: ## remove .venv and everything that can be made again
	rm -rf $(VENV) $(OLDEST) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
