#!/usr/bin/env bash
# What the workflow asks of Snakemake, tested with another release of it than .venv has:
# `floor`, the oldest that pyproject.toml allows; `newest`, the newest that it allows; or a version.
# That release stands in an environment of its own, .venv-snakemake-*; all other packages are .venv's.
set -euo pipefail
cd "$(dirname "$0")/.."
release="${1:?floor, newest or a version}"
allowed=$(sed -nE 's/^ *"snakemake(>=[0-9.]+,<[0-9]+)",$/\1/p' pyproject.toml)
case "$release" in
    floor) wanted="==${allowed#>=}" wanted="${wanted%,*}" ;;
    newest) wanted="$allowed" ;;
    *) wanted="==$release" ;;
esac
folder=".venv-snakemake-$release"
test -x "$folder/bin/python" || .venv/bin/python -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --upgrade "snakemake$wanted"
purelib='import sysconfig; print(sysconfig.get_path("purelib"))'
.venv/bin/python -c "$purelib" > "$("$folder/bin/python" -c "$purelib")/others.pth"
echo "snakemake $("$folder/bin/snakemake" --version) (asked for: $release)"
PATH="$PWD/$folder/bin:$PATH" PYTHONPATH="$PWD/src" HF_HUB_OFFLINE=1 \
    "$folder/bin/python" -m pytest -p no:xdist \
    tests/workflow/test_snakemake_call.py tests/workflow/test_dag*.py tests/workflow/test_submission.py
