# The membership-inference book. `make` alone prints what there is.
#
# Everything runs in .venv, made once from constraints.txt and again when that or pyproject.toml changes. uv installs, with
# what pip is configured to (.ci/install.py), or pip itself where uv is not to be had.
# PYTHON    the Python to make it with; otherwise the first of python3, python3.13, python3.12, python3.11 that will do
# PIP_ARGS  more arguments for pip and uv. On Linux the package index gives torch with several GB of CUDA libraries; where
#           there is no GPU, say
#           make setup PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"

SHELL := /bin/sh
BIN := .venv/bin
PYTHON ?=
PIP_ARGS ?=
PRESET ?= published
NOTEBOOK ?= bayes
ARGS ?=
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup book slides test coverage run lab lint clean

help: ## print this
	@echo "The membership-inference book: make TARGET [NAME=value ...]"
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'
	@echo "Without a GPU on Linux, first: make setup PIP_ARGS=\"--extra-index-url https://download.pytorch.org/whl/cpu\""

setup: .venv/.ready ## install what everything needs into .venv (PYTHON=python3.12, PIP_ARGS=...)

book: .venv/.ready ## run every notebook and build the book (PRESET=smoke for a first look)
	@$(BIN)/mia build --preset $(PRESET)

slides: book ## build the book, then a deck of slides for each lesson and the quizzes to print
	@$(BIN)/mia slides --preset $(PRESET)

test: .venv/.ready ## run all tests, in two processes (ARGS="-k store" for some)
	$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder $(ARGS)

coverage: .venv/.ready ## the same in nearly twice the time, and say which lines no test runs
	$(MAKE) test ARGS='--cov=mia_lib --cov=mia_book --cov-report=term-missing:skip-covered --cov-fail-under=90'

run: .venv/.ready ## run one notebook with new parameters (NOTEBOOK=bayes ARGS="-p seed 1")
	@$(BIN)/mia run $(NOTEBOOK) $(ARGS)

lab: .venv/.ready ## open the notebooks in JupyterLab, paired with their sources
	$(BIN)/jupyter lab notebooks/$(NOTEBOOK).ipynb $(ARGS)

lint: .venv/.ready ## check style, the types of what is promised, and that each notebook is in step with its source
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/mia sync --check

clean: ## remove what was built and run; trained models stay in the store
	rm -rf _build runs .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage build *.egg-info

.venv/.ready: constraints.txt pyproject.toml
	@enough='import sys; sys.exit(sys.version_info < (3, 11))'; chosen=; \
	for p in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	  if "$$p" -c "$$enough" 2>/dev/null; then chosen=$$p; break; fi; \
	  found="$$found $$p ($$("$$p" -c 'import sys; print(sys.version.split()[0])' 2>/dev/null || echo 'not found'))"; \
	done; \
	if [ -z "$$chosen" ]; then \
	  echo "Python 3.11 or newer is needed. Found:$$found. Install one, or name it: make PYTHON=/path/to/python3.11" >&2; \
	  exit 1; \
	fi; \
	echo "Making .venv with $$chosen"; \
	"$$chosen" -m venv .venv || { rm -rf .venv; \
	  echo "$$chosen cannot make virtual environments (on Debian: apt-get install python3-venv)." >&2; exit 1; }
	@$(BIN)/python -m pip install -q --only-binary uv $(PIP_ARGS) -c constraints.txt uv 2>/dev/null || true
	$(BIN)/python .ci/install.py $(PIP_ARGS) -c constraints.txt -e ".[test,lab]"
	@touch $@
