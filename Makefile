# Everything a fresh machine needs: Python 3.11+, pip and make. The environment is made in .venv on first use.
PYTHON ?= python3
BIN = .venv/bin

.PHONY: demo test lint bench evidence clean

demo: .venv/installed   ## compare every estimator of the paper on embedded data, with a picture
	$(BIN)/muhat compare --out muhat-compare.png

test: .venv/tested lint ## style, types and all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/tested      ## style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/tested     ## speed, as ratios measured in one run
	$(BIN)/python -m benchmarks

evidence: .venv/installed ## the paper's figures and tables at full size, and docs/evidence.md; DATA names svmguide2's folder
	$(BIN)/muhat reproduce --out docs/evidence --page docs/evidence.md $(if $(DATA),--data $(DATA))

clean:                  ## forget the environment
	rm -rf .venv

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "muhat needs Python 3.11 or newer; call make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/tested: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@ .venv/installed
