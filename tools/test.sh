#!/usr/bin/env bash
# Every test: the page's, the car's, then real processes and a real browser.
# With arguments only pytest runs, with these.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python

if [ $# -gt 0 ]; then
    exec "$python" -m pytest -q "$@"
fi
node --test tests/web/*/*.test.js

# What no clock judges comes first, in three lanes: the units compute, the pipes' tests
# wait and after them the guests compute, the other real processes do both. A lane's words
# come when it is through.
said=$(mktemp -d)
declare -A lanes
trap 'kill "${lanes[@]}" 2>/dev/null && wait "${lanes[@]}"; rm -rf "$said"' EXIT
lane() {
    local name=$1
    shift
    "$@" >"$said/$name" 2>&1 &
    lanes[$name]=$!
}
# To Chromium a cable that is plugged in is a network that changed, and it drops what it
# is loading: the pipes' tests, which plug many, have a network of their own.
apart=()
if [ "$(id -u)" = 0 ]; then
    apart=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
fi
make -s -j2 -C base-station/rdma all storm # two lanes use them
lane pipes "${apart[@]}" "$python" -m pytest -q -m 'e2e and not guest' tests/rdma
# shellcheck disable=SC2016 # the inner shell's
lane guests sh -c 'tail --pid="$0" -f /dev/null; exec "$@"' "${lanes[pipes]}" \
    "$python" -m pytest -q -m guest tests/rdma tests/guest_sensors
lane unhurried "$python" -m pytest -q -m unhurried --durations=5 \
    --ignore tests/unit --ignore tests/rdma

failed=0
# Traced code is slow: not the emulated car, of which no line has to be covered.
"$python" -m coverage run --omit='pi/fpvcar/bench/*' -m pytest -q -m 'not e2e' ||
    failed=1
for name in "${!lanes[@]}"; do
    wait "${lanes[$name]}" || failed=1
    unset "lanes[$name]"
    echo "beside these ran, $name:"
    cat "$said/$name"
done
[ "$failed" = 0 ]

# What decides about motion, pictures and recordings is covered to the last branch.
"$python" -m coverage report --fail-under=100 --skip-covered --include="$(
    printf 'pi/fpvcar/%s.py,' drive/{gate,guard,mixing,seat} 'wire/*' server/{access,limits} \
        video/{h264,stream,bitrate} wheels/lease 'mcap/*' \
        recordings/{messages,reader,recover,names,salvage} \
        recorder/{handover,writer,rotation,retention} files
)"
# Now the machine is theirs alone.
"$python" -m pytest -q -m 'e2e and not unhurried and not guest' --durations=10 \
    --ignore tests/unit --ignore tests/rdma
if [ "$(id -u)" != 0 ]; then
    echo "not tested without root: power cuts, a full card, network namespaces:" \
        "sudo make test"
fi
