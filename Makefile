# `make demo` and `make test` set everything up themselves: Python >= 3.11 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-slow lint bench bench-quick bench-peers clean

demo: $(STAMP)
	$(BIN)/nefele demo

# One thread of linear algebra per test process: threads that wait for each other cost more.
test test-slow: export OPENBLAS_NUM_THREADS = 1

test: $(STAMP) lint
	$(BIN)/python -m pytest -n 2

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow -n 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

bench-quick: $(STAMP)
	$(BIN)/python benchmarks/run.py --quick

# Packages that the TV benchmark compares with, each in an environment of its own: see
# benchmarks/README.md. `make bench` uses those that are there.
PEERS := .bench

bench-peers: $(PEERS)/prox_tv/.installed $(PEERS)/cut_pursuit/.installed

$(PEERS)/prox_tv/.installed: REQUIREMENTS = "prox_tv==3.2.1"
$(PEERS)/cut_pursuit/.installed: REQUIREMENTS = "numpy<2" "pycut-pursuit==0.1.4"

$(PEERS)/%/.installed:
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(REQUIREMENTS)
	@touch $@

# The environment is stale when pyproject.toml changed or when its interpreter is gone.
ifneq ($(shell $(BIN)/python -c "import sys; print(sys.version_info >= (3, 11))" 2>/dev/null),True)
.PHONY: $(STAMP)
endif

$(STAMP): pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
	  { echo "nefele needs Python >= 3.11; $(PYTHON) is older. Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $(STAMP)

clean:
	rm -rf $(VENV) $(PEERS) .pytest_cache .mypy_cache .ruff_cache .hypothesis
