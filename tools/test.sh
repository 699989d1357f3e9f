#!/usr/bin/env bash
# Runs all tests: the page's, the car's, then those with real processes and a real browser.
# With arguments: runs only pytest with these arguments.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
# Hundreds of processes start here: without cached byte code each would compile all modules.
unset PYTHONDONTWRITEBYTECODE

if [ $# -gt 0 ]; then
    exec "$python" -m pytest -q "$@"
fi
node --test tests/web/*/*.test.js

outputs=$(mktemp -d)
declare -A lanes
trap 'kill "${lanes[@]}" 2>/dev/null && wait "${lanes[@]}"; rm -rf "$outputs"' EXIT
# Chromium treats a new network interface as a network change, and aborts its requests: the
# pipes' tests create many interfaces, so they have their own network namespace.
apart=()
if [ "$(id -u)" = 0 ]; then
    apart=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
fi
make -s -j2 -C base-station/rdma all storm # two lanes use them
# A namespace has no network to build the S3 server in.
"$python" -c 'from tests.support.base_station import versitygw; versitygw.program()' ||
    echo "no S3 server: its tests will fail"

covering=(
    tests/unit/{drive,recorder,recordings,wire} tests/unit/runtime/test_files.py
    tests/unit/server/auth/test_access.py tests/unit/server/http/test_limits.py tests/unit/wheels/test_lease.py
    tests/unit/video/test_{bitrate,h264,keys,stream}.py
)
with_sites=(tests/test_deb.py tests/e2e/recordings)
stopping=(tests/e2e/stops tests/e2e/{test_hil,browser/test_guard,recordings/test_recording}.py)
timed='e2e and not unhurried and not guest'
suite() { # NAME ARG..: exec pytest over a part of the tests
    local name=$1 run=("$python" -m)
    shift
    # A test that hangs fails after 10 minutes, and the others run.
    set -- pytest -q --timeout 600 -o "cache_dir=$outputs/$name.cache" "$@"
    case $name in
    covered) # traced code takes twice as long: only the tests needed for coverage
        run+=(coverage run --append --omit='pi/fpvbench/*' -m)
        set -- "$@" -m 'not e2e' "${covering[@]}" ;;
    units) # test_prose.py is a part of `make check`
        set -- "$@" -m 'not e2e' --ignore=tests/{test_prose.py,unit/fpv{station,sites,bench}} \
            "${covering[@]/#/--ignore=}" ;;
    stations) set -- "$@" -m 'not e2e' tests/unit/fpv{station,sites,bench} ;;
    pipes)
        run=("${apart[@]}" "${run[@]}")
        set -- "$@" -m 'e2e and not guest' tests/rdma ;;
    guests) # computing all the time, and ending early: the other lanes come first
        run=(nice -n 5 "${run[@]}")
        set -- "$@" -m guest tests/rdma tests/guest_sensors ;;
    sites)
        run=("${apart[@]}" "${run[@]}")
        set -- "$@" -m unhurried tests/e2e/test_sites.py "${with_sites[@]}" ;;
    unhurried)
        set -- "$@" -m unhurried --durations=5 \
            --ignore=tests/{unit,rdma,e2e/test_sites.py} "${with_sites[@]/#/--ignore=}" ;;
    stops) set -- "$@" -m "$timed" --durations=5 "${stopping[@]}" ;;
    links)
        set -- "$@" -m "$timed" --durations=5 \
            --ignore=tests/{unit,rdma} "${stopping[@]/#/--ignore=}" ;;
    esac
    exec "${run[@]}" "$@"
}

# Rerun up to five failed tests of a part once, alone: only a second failure counts. The
# output of the first run stays above.
again() {
    local failed="$outputs/$1.cache/v/cache/lastfailed" count=0
    [ ! -f "$failed" ] || count=$(grep -c '": true' "$failed")
    if [ "$count" = 0 ] || [ "$count" -gt 5 ]; then
        echo "$1: failed"
        return 1
    fi
    echo "$1: failed, and run once more, alone:"
    cat "$failed"
    (suite "$1" --last-failed)
}

# Run a part beside others, after the part AFTER; its output is printed when it has ended.
start() { # NAME [AFTER]
    ([ $# = 1 ] || tail --pid="${lanes[$2]}" -f /dev/null && suite "$1") \
        >"$outputs/$1" 2>&1 </dev/null &
    lanes[$1]=$!
}

# Wait for the parts that `start` started, and rerun failed tests.
finish() {
    for name in "${!lanes[@]}"; do
        wait "${lanes[$name]}" || failed+=("$name")
        unset "lanes[$name]"
        echo "beside others ran, $name:"
        cat "$outputs/$name"
    done
    red=0
    for name in "${failed[@]}"; do
        again "$name" || red=1
    done
    failed=()
    [ "$red" = 0 ]
}

# Tests without timing limits run first. All lanes but the guests take equal times, because a
# lane that runs on alone leaves a core idle.
failed=()
"$python" -m coverage erase
start guests
start pipes
start sites
start covered sites
start stations
start unhurried
(suite units) || failed+=(units)
finish

# Code that decides about motion, pictures and recordings has full branch coverage.
"$python" -m coverage report --fail-under=100 --skip-covered --include="$(
    printf 'pi/fpvcar/%s.py,' drive/{gate,guard,mixing,seat} 'wire/*' server/{auth/access,http/limits} \
        video/{h264,keys,stream,bitrate} wheels/lease \
        recordings/{'mcap/*',codec,messages,reader,names,repair/{recover,salvage}} \
        recorder/{handover,writer,rotation,retention} runtime/files
)"
# The timing tests now have the machine to themselves, in two lanes of a core each.
start links
(suite stops) || failed+=(stops)
finish
if [ "$(id -u)" != 0 ]; then
    echo "not tested without root: power cuts, a full card, network namespaces:" \
        "sudo make test"
fi
