# `make demo` and `make test` work in an empty clone: they need Python 3.11 or newer, make and the package registries.
# All paths are relative, so that a checkout below a directory with spaces works.

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help setup demo test test-registry coverage format generate bench acceptance canary audit lock docs clean
.PHONY: check check-style check-types check-imports check-javascript check-documents

# Without compiled files each worker of the tests compiles all tests anew, and each program that they start all of ours.
unexport PYTHONDONTWRITEBYTECODE

SHELL := /bin/sh
BIN := .venv/bin
STAMP := .venv/.installed
DOCS := .venv/.installed-docs
LOCK ?= tools/development.lock
# Everybody works with the same versions of the development tools; LOCK= takes the newest ones.
INSTALL := -m pip install --disable-pip-version-check --quiet $(if $(LOCK),--constraint $(LOCK))
BENCH := .venv/.installed-bench
SITE := rm -rf build/site && $(BIN)/python -m sphinx -q -E -W --keep-going -c tools/site -d build/doctrees . build/site
# More workers than two processors: a test often waits for a process of its own.
WORKERS ?= 3
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11 python3

help:
	@echo 'make setup    create .venv, install the program and the pinned Pi SDK'
	@echo 'make demo     see the main job work, offline, without credentials'
	@echo 'make test     run the whole test suite'
	@echo 'make test-registry  install the Pi SDK and published packages of other authors from the npm registry'
	@echo 'make coverage run the unit tests, and see that they still reach as many branches'
	@echo 'make check    format, lint, types, import contracts, JavaScript, documents'
	@echo 'make docs     build the documentation as a site into build/site'
	@echo 'make format   let ruff format and fix the code'
	@echo 'make generate write what is made from the program: help, manual, completions, schemas, parts of docs'
	@echo 'make bench    measure the server from outside: tables, and a plot in build; sooner: QUICK=1; into docs: DOCUMENT=1'
	@echo 'make acceptance    try setup and work with real MCP clients in throw-away homes; one target: TARGETS=codex:user'
	@echo 'make canary   try other versions of the Pi SDK than the pinned one; all contract tests: CANARY=--whole'
	@echo 'make audit    ask for advisories about what a release brings'
	@echo 'make lock     write tools/development.lock anew: the newest versions of the development tools'
	@echo 'make clean    remove everything that make created'

setup: $(STAMP)
	@$(BIN)/pi-session-mcp runtime install

demo: setup
	@$(BIN)/pi-session-mcp demo

test: setup
	$(BIN)/pytest tests -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=20

test-registry: setup
	$(BIN)/pytest tests/contract -m registry -n $(WORKERS) --dist loadfile

coverage: setup
	$(BIN)/pytest tests/unit -n $(WORKERS) --dist loadfile --cov

check: check-style check-types check-imports check-javascript check-documents

check-style: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell

check-types: $(DOCS)
	$(BIN)/mypy --platform linux
	$(BIN)/mypy --platform darwin

check-imports: $(STAMP)
	$(BIN)/lint-imports --no-logo

check-javascript: $(STAMP)
	sh tools/check_javascript.sh

check-documents: $(DOCS)
	$(BIN)/python tools/check_docs.py
	$(SITE)
	$(BIN)/python -m tools.generate --check
	$(BIN)/python tools/check_configuration.py

docs: $(DOCS)
	@sh tools/install_javascript.sh
	$(SITE)
	@echo 'The site is there: build/site/index.html'

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(STAMP)
	$(BIN)/python -m tools.generate

bench: setup $(BENCH)
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick) $(if $(DOCUMENT),--document docs/performance.md)

acceptance: setup
	$(BIN)/python -m acceptance $(TARGETS)

canary: setup
	@sh tools/install_javascript.sh
	$(BIN)/python tools/canary.py $(CANARY)

audit: $(STAMP)
	@$(BIN)/python tools/audit.py

lock:
	@sh tools/make_lock.sh $(PYTHONS)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .import_linter_cache .hypothesis .pytest_cache build dist
	rm -rf tools/js/node_modules .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml $(LOCK)
	@LOCK='$(LOCK)' sh tools/make_environment.sh $(PYTHONS)
	@touch $(STAMP)

$(DOCS): $(STAMP)
	@$(BIN)/python $(INSTALL) --editable '.[docs]' </dev/null
	@touch $(DOCS)

$(BENCH): $(STAMP)
	@$(BIN)/python $(INSTALL) --editable '.[bench]' </dev/null
	@touch $(BENCH)
