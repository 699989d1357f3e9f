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

# The pipes' tests wait much and compute little: they run beside the units and the real
# processes that no clock judges. What they say comes when all of them are through.
said=$(mktemp)
"$python" -m pytest -q -m e2e tests/rdma >"$said" 2>&1 &
pipes=$!
trap 'kill "$pipes" 2>/dev/null && wait "$pipes"; rm -f "$said"' EXIT
units=0
"$python" -m coverage run -m pytest -q -m 'not e2e' || units=$?
unhurried=0
"$python" -m pytest -q -m 'e2e and unhurried' --durations=5 || unhurried=$?
piped=0
wait "$pipes" || piped=$?
echo "the pipes' tests, which ran beside these:"
cat "$said"
[ "$units" = 0 ]
[ "$unhurried" = 0 ]
[ "$piped" = 0 ]

# What decides about motion, pictures and recordings is covered to the last branch.
"$python" -m coverage report --fail-under=100 --skip-covered --include="$(
    printf 'pi/fpvcar/%s.py,' drive/{gate,guard,mixing,seat} 'wire/*' server/{access,limits} \
        video/{h264,stream,bitrate} wheels/lease 'mcap/*' \
        recordings/{messages,reader,recover,names,salvage} \
        recorder/{handover,writer,rotation,retention} files
)"
# Now the machine is theirs alone.
"$python" -m pytest -q -m 'e2e and not unhurried' --ignore tests/rdma --durations=10
if [ "$(id -u)" != 0 ]; then
    echo "not tested without root: power cuts, a full card, network namespaces:" \
        "sudo make test"
fi
