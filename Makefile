# Every target sets itself up: make and a Python from 3.11 to 3.14 are all it takes.
#
#   make test PYTHON=python3.13    choose the interpreter (rebuilds .venv if it has another one)
#   make test WORKERS=4            choose the number of test processes
#   make test ARGS="-k jet -x"     hand arguments on to pytest, the benchmarks or the demo

PYTHON ?=
WORKERS ?= auto
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BROWSER := $(VENV)/.browser
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Material is in use until its successor reads our plugins; it says so at each build.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal --benchmark-skip

# Looked for in this order; constraints.txt has versions for these and no others.
CANDIDATES := python3 python3.13 python3.12 python3.11 python3.14 python
SUPPORTED := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
VERSION := import sys; print("%d.%d.%d" % sys.version_info[:3])

.PHONY: help demo test slow bench lint docs docs-serve dist setup clean FORCE

help:
	@echo 'make demo    train digits without and with a budget, and compare: two minutes'
	@echo 'make test    run the default tests'
	@echo 'make slow    run the long tests'
	@echo 'make lint    check style, formatting, imports and types'
	@echo 'make docs    build the site into site/; make docs-serve shows it'
	@echo 'make dist    build the wheel and the sdist'
	@echo 'make bench   measure speed'
	@echo 'make setup   make .venv and nothing else'
	@echo 'make clean   remove .venv and everything else that was made here'
	@echo
	@echo 'The first run sets up .venv, which takes a minute or two; later ones start at once.'
	@echo 'Options: PYTHON=python3.13, WORKERS=4, ARGS="-k jet".'

demo: $(READY)
	@$(BIN)/taynode demo $(ARGS)

test: $(READY) $(BROWSER)
	@$(PYTEST) $(ARGS)

slow: $(READY) $(BROWSER)
	@$(PYTEST) -m slow $(ARGS)

bench: $(READY)
	@$(BIN)/python -m benchmarks $(ARGS)

# pyright brings its own node and its own program; the variable stops its search for a newer version.
# lint-imports has a lot to say, of which only a broken contract is of interest.
lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@if report=$$($(BIN)/lint-imports --no-logo --no-cache 2>&1); \
	then echo "$$report" | tail -n 1; else echo "$$report" >&2; exit 1; fi
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

# Needs no network. The tutorials are executed: less than two minutes the first time, then seconds.
docs: $(READY)
	@$(MKDOCS) build --quiet --strict $(ARGS)
	@echo 'The site is in site/: open site/index.html.'

docs-serve: $(READY)
	@$(MKDOCS) serve $(ARGS)

# A wheel and an sdist. What is in them is checked by the long tests.
dist: $(READY)
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist .
	@ls -l dist

setup: $(READY)

clean:
	rm -rf $(VENV) .cache .hypothesis .pytest_cache .ruff_cache .benchmarks build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The tests of the page run in a Chromium. The stamp is made with or without one: a machine that cannot
# download a browser tries once. A browser that is installed later is found by the tests themselves.
$(BROWSER): $(READY)
	@$(BIN)/python -m tests.lab.report.browser
	@touch $@

# The stamp holds the version of the interpreter. It is made again if the requirements change, if the
# interpreter has gone, or if PYTHON names another version.
ifeq ($(wildcard $(BIN)/python),)
$(READY): FORCE
else ifneq ($(PYTHON),)
ifneq ($(shell $(PYTHON) -c '$(VERSION)' 2>/dev/null),$(shell cat $(READY) 2>/dev/null))
$(READY): FORCE
endif
endif

$(READY): pyproject.toml constraints.txt
	@set -e; \
	rm -f $(READY); \
	python='$(PYTHON)'; \
	if [ -n "$$python" ]; then \
	    $$python -c '$(SUPPORTED)' || { \
	        echo "PYTHON=$$python is not a Python from 3.11 to 3.14 with venv and ensurepip." >&2; exit 1; }; \
	elif $(BIN)/python -c 'import pip; $(SUPPORTED)' 2>/dev/null; then \
	    python=$(BIN)/python; \
	else \
	    for candidate in $(CANDIDATES); do \
	        if $$candidate -c '$(SUPPORTED)' >/dev/null 2>&1; then python=$$candidate; break; fi; \
	    done; \
	    if [ -z "$$python" ]; then \
	        echo "No Python from 3.11 to 3.14 found (looked for: $(CANDIDATES))." >&2; \
	        echo "Install one, with its venv module (python3-venv on Debian), or name it: make PYTHON=..." >&2; \
	        exit 1; \
	    fi; \
	fi; \
	version=$$($$python -c '$(VERSION)'); \
	echo "Setting up $(VENV) with Python $$version: a minute or two, this once." >&2; \
	if [ "$$($(BIN)/python -c '$(VERSION)' 2>/dev/null)" != "$$version" ] \
	    || ! $(PIP) --version >/dev/null 2>&1; then \
	    rm -rf $(VENV); \
	    $$python -m venv $(VENV); \
	fi; \
	$(PIP) install --constraint constraints.txt --upgrade pip; \
	$(PIP) install --constraint constraints.txt --build-constraint constraints.txt \
	    --group dev --editable '.[all]'; \
	echo "$$version" > $(READY)
