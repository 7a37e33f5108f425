#!/usr/bin/env bash
# The tests that touch one package, with another release of it than .venv has:
#   tests/with-release.sh snakemake|transformers floor|newest|VERSION
# `floor` is the oldest that pyproject.toml allows, `newest` the newest that it allows. A version may
# lie outside: that is how a range is widened. The release stands in an environment of its own,
# .venv-PACKAGE-*, with what it asks for itself; all other packages are .venv's.
set -euo pipefail
cd "$(dirname "$0")/.."
package="${1:?snakemake or transformers}"
release="${2:?floor, newest or a version}"
case "$package" in
    snakemake) tests=(tests/workflow/test_snakemake_call.py tests/workflow/test_dag*.py
                      tests/workflow/test_submission.py) ;;
    # What is private of it (docs/dependencies.md), and checkpoints of each family, trained and not.
    transformers) tests=(tests/unit/test_fast_paths.py tests/unit/test_flash.py tests/unit/test_gelu.py
                         tests/unit/test_half_weights.py tests/unit/test_dual_encoder.py
                         tests/unit/test_low_rank.py tests/unit/test_models.py
                         tests/fidelity/test_good_checkpoints.py) ;;
    *) echo "no tests are listed for $package" >&2; exit 2 ;;
esac
# The first line that names it: gguf's extra has a narrower range of transformers.
allowed=$(sed -nE "s/^ *\"$package(>=[0-9.]+,<[0-9.]+)\",\$/\1/p" pyproject.toml)
case "$release" in
    floor) wanted="==${allowed#>=}" wanted="${wanted%,*}" ;;
    newest) wanted="$allowed" ;;
    *) wanted="==$release" ;;
esac
folder=".venv-$package-$release"
test -x "$folder/bin/python" || .venv/bin/python -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --upgrade "$package$wanted"
purelib='import sysconfig; print(sysconfig.get_path("purelib"))'
.venv/bin/python -c "$purelib" > "$("$folder/bin/python" -c "$purelib")/others.pth"
version="import importlib.metadata as m; print(m.version('$package'))"
echo "$package $("$folder/bin/python" -c "$version") (asked for: $release)"
PATH="$PWD/$folder/bin:$PATH" PYTHONPATH="$PWD/src" HF_HUB_OFFLINE=1 \
    "$folder/bin/python" -m pytest -p no:xdist "${tests[@]}"
