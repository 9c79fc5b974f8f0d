PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin/python
# without bytecode, which some containers forbid, every process that tests start compiles all modules again
# many tests wait for processes that they start, so four workers use two cores better than two
TEST := env -u PYTHONDONTWRITEBYTECODE $(RUN) -m pytest --numprocesses 4 --dist worksteal

.PHONY: help demo test soak mutants coverage lint docs bench bench-serve clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

demo: $(VENV)/ready  ## a small synthetic study and a small learning race; about a minute
	@$(RUN) examples/demo.py
	@$(RUN) examples/race.py

test: $(VENV)/ready  ## all tests but the long ones; about 4 minutes
	$(TEST)

soak: $(VENV)/ready mutants  ## the long tests: mutants, kill loops, many random examples; at most 30 minutes
	$(TEST) -m 'soak or hypothesis' --hypothesis-profile soak

mutants: $(VENV)/ready  ## defining lines made wrong, one at a time: a test has to notice each; about 10 minutes
	$(RUN) tests/mutants.py

coverage: $(VENV)/ready  ## branch coverage of the tests
	$(TEST) --cov=preselect --cov-branch --cov-report=term:skip-covered

lint: $(VENV)/ready  ## style and types
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

docs: $(VENV)/ready  ## the documentation site, build/docs/index.html; warnings are errors; less than a minute
	$(RUN) -m sphinx -E -W --keep-going -q -d build/doctrees docs build/docs

bench: $(VENV)/ready  ## speed, as ratios to a reference in the same run; fails if a target is missed
	@missed=0; for name in rounds selecting blocks nearby fit propensities starting saps racing after_races journal dashboard dashboard_load; do $(RUN) benchmarks/$$name.py || missed=1; done; exit $$missed

bench-serve: $(VENV)/ready  ## load on the service, with storage and without; fails if a request costs too much CPU beside one that does nothing
	$(RUN) benchmarks/serve.py

clean:  ## remove the environment and caches
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else f"preselect needs Python 3.11 or newer, but {sys.executable} is {v[0]}.{v[1]}; use make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet --editable '.[dev]'
	@touch $@
