#!/usr/bin/env bash
# Every test: the page's, the car's, then real processes and a real browser.
# With arguments only pytest runs, with these.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
# Hundreds of processes start here: where no byte code is kept, each compiles it all anew.
unset PYTHONDONTWRITEBYTECODE

if [ $# -gt 0 ]; then
    exec "$python" -m pytest -q "$@"
fi
node --test tests/web/*/*.test.js

said=$(mktemp -d)
declare -A lanes
trap 'kill "${lanes[@]}" 2>/dev/null && wait "${lanes[@]}"; rm -rf "$said"' EXIT
# To Chromium a cable that is plugged in is a network that changed, and it drops what it
# is loading: the pipes' tests, which plug many, have a network of their own.
apart=()
if [ "$(id -u)" = 0 ]; then
    apart=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
fi
make -s -j2 -C base-station/rdma all storm # two lanes use them

covering=(
    tests/unit/{drive,recorder,recordings,wire} tests/unit/runtime/test_files.py
    tests/unit/server/auth/test_access.py tests/unit/server/http/test_limits.py tests/unit/wheels/test_lease.py
    tests/unit/video/test_{bitrate,h264,stream}.py
)
suite() { # NAME ARG..: pytest over a part of the tests, in place of this shell
    local name=$1 run=("$python" -m)
    shift
    set -- pytest -q -o "cache_dir=$said/$name.cache" "$@"
    case $name in
    covered) # traced code takes twice as long: these cover what has to be covered
        run+=(coverage run --append --omit='pi/fpvbench/*' -m)
        set -- "$@" -m 'not e2e' "${covering[@]}" ;;
    units) set -- "$@" -m 'not e2e' "${covering[@]/#/--ignore=}" ;;
    pipes)
        run=("${apart[@]}" "${run[@]}")
        set -- "$@" -m 'e2e and not guest' tests/rdma ;;
    guests) set -- "$@" -m guest tests/rdma tests/guest_sensors ;;
    unhurried)
        set -- "$@" -m unhurried --durations=5 --ignore tests/unit --ignore tests/rdma ;;
    timed)
        set -- "$@" -m 'e2e and not unhurried and not guest' --durations=10 \
            --ignore tests/unit --ignore tests/rdma ;;
    esac
    exec "${run[@]}" "$@"
}

# Five tests at most of a part that fail run once more, alone: only what fails
# twice is red. What they said the first time stays above.
again() {
    local failed="$said/$1.cache/v/cache/lastfailed" count=0
    [ ! -f "$failed" ] || count=$(grep -c '": true' "$failed")
    if [ "$count" = 0 ] || [ "$count" -gt 5 ]; then
        echo "$1: failed"
        return 1
    fi
    echo "$1: failed, and run once more, alone:"
    cat "$failed"
    (suite "$1" --last-failed)
}

# What no clock judges comes first, in three lanes: the units compute, the pipes' tests
# wait and after them the guests compute, the other real processes do both. A lane's words
# come when it is through.
suite pipes >"$said/pipes" 2>&1 &
lanes[pipes]=$!
(tail --pid="${lanes[pipes]}" -f /dev/null && suite guests) >"$said/guests" 2>&1 &
lanes[guests]=$!
suite unhurried >"$said/unhurried" 2>&1 &
lanes[unhurried]=$!
"$python" -m coverage erase
failed=()
for name in covered units; do
    (suite "$name") || failed+=("$name")
done
for name in "${!lanes[@]}"; do
    wait "${lanes[$name]}" || failed+=("$name")
    unset "lanes[$name]"
    echo "beside these ran, $name:"
    cat "$said/$name"
done
red=0
for name in "${failed[@]}"; do
    again "$name" || red=1
done
[ "$red" = 0 ]

# What decides about motion, pictures and recordings is covered to the last branch.
"$python" -m coverage report --fail-under=100 --skip-covered --include="$(
    printf 'pi/fpvcar/%s.py,' drive/{gate,guard,mixing,seat} 'wire/*' server/{auth/access,http/limits} \
        video/{h264,keys,stream,bitrate} wheels/lease 'mcap/*' \
        recordings/{messages,reader,names,repair/{recover,salvage}} \
        recorder/{handover,writer,rotation,retention} runtime/files
)"
# Now the machine is theirs alone.
(suite timed) || again timed
if [ "$(id -u)" != 0 ]; then
    echo "not tested without root: power cuts, a full card, network namespaces:" \
        "sudo make test"
fi
