# Two words: `make drill` runs the shipped drill, `make test` the tests. Both keep their environment in .venv.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

.PHONY: drill test check selftest bench clean

drill: $(VENV)/ready
	$(BIN)/stopdrill run $(ARGS)

test: check
	$(BIN)/python -m pytest -q $(ARGS)

check: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

selftest: $(VENV)/ready
	$(BIN)/stopdrill selftest $(ARGS)

bench: $(VENV)/ready-dev
	$(BIN)/python -m bench $(ARGS)

$(VENV)/ready: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "stopdrill needs Python 3.11 or later; none was found. Install one, or run: make PYTHON=/path/to/python3.12 drill" >&2; exit 2; }
	@command -v git >/dev/null || { echo "stopdrill needs git; install it (Debian: apt-get install git) and try again" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 2; }
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache
