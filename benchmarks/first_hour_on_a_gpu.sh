#!/usr/bin/env bash
# The first hour on a real GPU: nothing here was measured on one. One JSON and a page to send back.
#
#   benchmarks/first_hour_on_a_gpu.sh [--trial] [--data FOLDER] [--toolkit FOLDER] [--out FOLDER]
#
# --trial runs all of it on any machine with tiny models: does the script itself run to its end?
# A step that fails is reported and does not stop the others. Needs `make bench`'s packages.
set -uo pipefail
cd "$(dirname "$0")/.."

trial='' data=../shared/feta toolkit='' out=results/first_hour
while (($#)); do
    case "$1" in
        --trial) trial=1; shift; continue ;;
        --data | --toolkit | --out) [ $# -ge 2 ] || { echo "$1: a folder is missing" >&2; exit 2; } ;;
        *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    printf -v "${1#--}" %s "$2"
    shift 2
done

mkdir -p "$out"
out=$(cd "$out" && pwd)
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}" HF_HUB_OFFLINE=1
: > "$out/steps.tsv"

step() { # NAME COMMAND...: run it, keep what it says and how it ended
    local name=$1 began=$SECONDS code
    shift
    echo "== $name: $*" >&2
    "$@" > "$out/$name.log" 2>&1
    code=$?
    printf '%s\t%d\t%d\n' "$name" "$code" $((SECONDS - began)) >> "$out/steps.tsv"
    [ $code -eq 0 ] || { echo "   failed ($code):" >&2; tail -n 5 "$out/$name.log" >&2; }
}

together() { # N ARGUMENTS...: N whole baselines side by side on one GPU
    local count=$1 pids=() number code=0
    shift
    for number in $(seq "$count"); do # what the first has prepared serves all
        [ "$number" = 1 ] || [ -d "$out/work-$number" ] || cp -r "$out/work-1" "$out/work-$number"
        TASKTRANSFER_SLOTS_PER_GPU=$count python -m benchmarks.training_speed --whole-baseline "$@" \
            --work "$out/work-$number" --out "$out/slots-$count-$number.json" &
        pids+=($!)
    done
    for number in "${pids[@]}"; do wait "$number" || code=1; done
    return $code
}

if [ -n "$trial" ]; then
    bench=(--quick --data tiny_world --contestants tasktransfer --threads 1)
    whole=(--shapes tiny --data tiny_world --epochs 1 --threads 1 --cases encoder:emotion_recognition)
    slots=(1 2) tests=(tests/unit/test_flash.py tests/unit/test_switches.py)
else
    bench=(--shapes base --data "$data" ${toolkit:+--toolkit "$toolkit"})
    bench+=(--cases encoder:emotion_recognition encoder:dialogue_nli decoder:emotion_recognition
        encoder_decoder:emotion_recognition)
    whole=(--shapes base --data "$data" --cases encoder:emotion_recognition)
    slots=(1 2 4)
    tests=(tests/unit/test_flash.py tests/fidelity/test_gpu_path.py tests/unit/test_fast_paths.py
        tests/unit/test_half_weights.py tests/unit/test_train_stage.py)
fi

rm -f "$out"/slots-*.json
step environment python -m benchmarks.first_hour environment --out "$out" ${trial:+--trial}
step tests python -m pytest -p no:xdist -q "${tests[@]}"
step bench python -m benchmarks.training_speed "${bench[@]}" --work "$out/work" --out "$out/bench.json"
for count in "${slots[@]}"; do # with one slot it is the whole baseline
    step "slots-$count" together "$count" "${whole[@]}"
done
python -m benchmarks.first_hour report --out "$out"
