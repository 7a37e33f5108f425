#!/usr/bin/env bash
# Snakemake runs this inside the new environment, in the folder that it was started from.
set -euo pipefail
python -m pip install --no-deps .
