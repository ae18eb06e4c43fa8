# A fresh machine needs Python 3.11 or newer, pip and make. The environment is made in .venv on first use.
PYTHON ?= python3
BIN = .venv/bin
LOWEST = .venv-lowest/bin

.PHONY: demo tour quick test test-lowest lint browser pages bench docs evidence dist clean

demo: .venv/installed   ## the main questions answered on embedded data: verdicts, pictures, a report
	$(BIN)/muhat tour --out muhat-tour

quick: .venv/tested     ## one small test of every capability, in about a minute
	$(BIN)/ruff check --quiet .
	$(BIN)/python -m pytest -n 2 tests/test_smoke.py tests/test_architecture.py

tour: .venv/installed   ## the pictures of README and guide: docs/tour, by a tour of everything on embedded data, and docs/*.png
	$(BIN)/muhat tour --out docs/tour
	$(BIN)/python docs/pictures.py

test: .venv/tested lint browser ## style, types and all tests: two processes, each with one thread of BLAS
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

test-lowest: .venv-lowest/tested browser ## all tests with the lowest versions that pyproject.toml declares
	OPENBLAS_NUM_THREADS=1 $(LOWEST)/python -m pytest -n 2 --dist worksteal -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning

lint: .venv/tested      ## style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

browser:                ## Debian's Chromium, where it may be installed; without one, tests in a browser are skipped
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && apt-get -qq update \
	&& DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install chromium fonts-dejavu-core > /dev/null; } \
	|| echo 'There is no Chromium and none can be installed: tests in a browser are skipped.'

pages: .venv/tested browser ## pages of all kinds of data in build/pages, each looked at in a browser (5 minutes)
	$(BIN)/python tests/pages.py build/pages
	$(BIN)/python tests/pages.py docs/report.png

bench: .venv/benched    ## speed, as ratios measured in one run; GROUP=core for one group of them; SAVE=1 for README's table
	$(BIN)/python -m benchmarks $(GROUP) $(if $(SAVE),--save)

docs: .venv/documented  ## the site in docs/_build/html, with every example run; and docs/api.md, from the public names
	$(BIN)/python docs/api.py
	$(BIN)/python docs/stub.py
	$(BIN)/python docs/badges.py
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

evidence: .venv/installed ## the paper's figures and tables at full size, and docs/evidence.md; DATA names svmguide2's folder
	$(BIN)/python -m paper --out docs/evidence --page docs/evidence.md $(if $(DATA),--data $(DATA))

dist: .venv/bin/python  ## wheel and sdist in dist/, built twice and compared: the same commit gives the same bytes
	$(BIN)/python -m pip install --quiet --upgrade 'hatchling>=1.25'
	rm -rf dist build/again
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/python -m hatchling build -d build/again
	diff -r dist build/again

clean:                  ## remove the environments
	rm -rf .venv .venv-lowest

%/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "muhat needs Python 3.11 or newer; call make PYTHON=python3.11")'
	$(PYTHON) -m venv $*

.venv/installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[cli,paper]'
	touch $@

.venv/tested: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@ .venv/installed

.venv/documented: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@ .venv/installed

.venv/benched: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@ .venv/installed

.venv-lowest/tested: .venv-lowest/bin/python pyproject.toml
	$(LOWEST)/python tests/lowest.py > .venv-lowest/constraints.txt
	$(LOWEST)/python -m pip install --quiet --constraint .venv-lowest/constraints.txt --editable '.[test]'
	touch $@
