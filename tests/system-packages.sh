#!/usr/bin/env bash
# System packages that some tests use, by the program that each brings. Installed where that is
# allowed (Debian or Ubuntu, as root); otherwise this says what is missing, and the tests that need
# it skip and say so too. Never a failure.
set -uo pipefail

# Daemons are not on everybody's path.
PATH=$PATH:/usr/sbin:/sbin

# program:package
wanted=(
    chromium:chromium              # the HTML report in a real browser
    chromedriver:chromium-driver
    slurmctld:slurmctld            # a real Slurm on one machine; nothing is started by installing it
    slurmd:slurmd
    sbatch:slurm-client
)

missing=()
for entry in "${wanted[@]}"; do
    command -v "${entry%%:*}" > /dev/null || missing+=("${entry##*:}")
done
[ "${#missing[@]}" -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get > /dev/null; then
    echo "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    if { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } \
        > "$log" 2>&1; then
        rm "$log"
        exit 0
    fi
    tail -n 5 "$log"
    rm "$log"
fi
echo "not installed: ${missing[*]}; tests that need them will be skipped" \
    "(Debian, Ubuntu: apt-get install ${missing[*]})"
