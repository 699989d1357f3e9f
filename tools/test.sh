#!/usr/bin/env bash
# Runs a suite in parts, and sums them up:  tools/test.sh quick | all
# With more arguments: runs only pytest, with these.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
suite=$1
shift
# Hundreds of processes start here: without cached byte code each would compile all modules.
unset PYTHONDONTWRITEBYTECODE
[ "$suite" = quick ] || "$python" -m testkit.prepared "$@"
if [ $# -gt 0 ]; then
    exec "$python" -m pytest -q "$@"
fi

results=$(mktemp -d)
beside='' failed=()
trap '[ -z "$beside" ] || kill "$beside" 2>/dev/null; rm -rf "$results"' EXIT
# Deciding code, traced, takes twice as long: only the tests needed for its coverage.
deciding=(
    tests/unit/{drive,library,recorder,recordings,wire} tests/unit/runtime/test_files.py
    tests/unit/access/test_codes.py tests/unit/http/test_{addresses,limits}.py tests/unit/wheels/test_{lease,controller{,_faults}}.py
    tests/unit/video/test_{bitrate,h264,keys,stream}.py
)
# A test that hangs fails after 10 minutes, and the others run.
run=(-m pytest -q -rfEs --timeout 600 -p no:cacheprovider)
export COLUMNS=${COLUMNS:-160} # else a failure's line ends before its reason
# Whole files at a time, because their tests share fixtures.
spread() { printf '%s\n' -n "$1" --dist loadfile --no-loadscope-reorder; }

# Run a part; keep its closing line and time for the summary.
part() { # NAME COMMAND..
    local name=$1 begin=$SECONDS status=0
    shift
    printf '\n== %s\n' "$name"
    "$@" 2>&1 | tee "$results/$name.log" || status=$?
    [ "$status" -lt 128 ] || exit "$status" # killed: so is the suite
    local closing
    closing=$(grep -E '^(# pass|[0-9].* in [0-9.]+s)' "$results/$name.log" | tail -n 1 |
        sed -E 's/^# pass ([0-9]+)/\1 passed/; s/ in [0-9.]+s.*//') || closing='no result'
    printf '%-10s %3d:%02d  %s\n' "$name" $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60)) \
        "$closing" >"$results/$name"
    return "$status"
}

try() { # NAME COMMAND..: run a part; the others run if it fails
    part "$@" || failed+=("$1")
}

start() { # NAME COMMAND..: run a part beside others; `finish` prints its output
    part "$@" >"$results/started" 2>&1 </dev/null &
    beside=$! name=$1
}

finish() {
    wait "$beside" || failed+=("$name")
    beside=''
    cat "$results/started"
}

deciding() { # MARKS
    "$python" -m coverage run --omit='pi/fpvbench/*' "${run[@]}" -m "$1" "${deciding[@]}" &&
        "$python" -m coverage report --fail-under=100 --skip-covered --include="$(
            printf 'pi/fpvcar/%s.py,' drive/{gate,guard,mixing,seat} 'wire/*' \
                access/codes http/{addresses,limits} video/{h264,keys,stream,bitrate} wheels/controller \
                recordings/{'mcap/*',codec,messages,reader,names,repair/{recover,salvage}} \
                recorder/{handover,writer,rotation,retention} runtime/files
        )"
}

pages() { # one dot per test; a fault in full
    local status=0
    node --test --test-reporter=dot --test-reporter-destination=stdout \
        --test-reporter=tap --test-reporter-destination="$results/tap" tests/web/*/*.test.js || status=$?
    sed -n '/^ *not ok/,/^ *\.\.\./p; /^# pass/p' "$results/tap"
    return "$status"
}

mapfile -t two < <(spread 2)
mapfile -t three < <(spread 3)
mapfile -t four < <(spread 4)
elsewhere=("${deciding[@]/#/--ignore=}" --ignore=tests/test_prose.py) # the last: make check
if [ "$suite" = quick ]; then
    make -s -C base-station/rdma
    start deciding deciding 'not e2e and not slow'
    try units "$python" "${run[@]}" "${three[@]}" -m 'not e2e and not slow' "${elsewhere[@]}" \
        tests/{unit,mutation,rdma/units,test_*.py}
    try pages pages
    finish
    try smoke "$python" "${run[@]}" --durations=5 -m smoke
    left="slow units, processes, browsers, pipes and VMs: make test-all (40 minutes)"
else
    make -s -j2 -C base-station/rdma all storm
    start deciding deciding 'not e2e'
    # Chromium aborts its requests when a network interface appears, and pipes and sites make
    # many: so tests with a browser come later.
    try beside "$python" "${run[@]}" "${four[@]}" --durations=10 \
        -m 'not browser and not alone and not vm' "${elsewhere[@]}"
    finish
    try vms "$python" "${run[@]}" --durations=10 -m vm
    try pages pages
    try browser "$python" "${run[@]}" "${two[@]}" --durations=10 -m 'browser and not alone'
    try alone "$python" "${run[@]}" --durations=10 -m alone
    left="hours of video, fuzzing, power cuts, VMs with systemd, the card image: make soak"
fi

printf '\n== %s suite, %d:%02d minutes\n' "$suite" $((SECONDS / 60)) $((SECONDS % 60))
for name in pages deciding units smoke beside vms browser alone; do
    [ ! -f "$results/$name" ] || cat "$results/$name"
done
echo "left out: $left"
[ "$(id -u)" = 0 ] ||
    echo "left out without root: power cuts, a full card, network namespaces: sudo make test-all"
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}"
    for name in "${failed[@]}"; do
        grep -hE '^(FAILED|ERROR|Coverage failure| *not ok|pi/.* [0-9.]+%)' "$results/$name.log" |
            head -n 20 || true
    done
    exit 1
fi
