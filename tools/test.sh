#!/usr/bin/env bash
# Every test: the page's, the car's, then real processes and a real browser.
# With arguments only pytest runs, with these.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python

if [ $# -gt 0 ]; then
    exec "$python" -m pytest -q "$@"
fi
node --test tests/web/*.test.js
"$python" -m coverage run -m pytest -q -m 'not e2e'
# What decides about motion and pictures is covered to the last branch.
"$python" -m coverage report --fail-under=100 --skip-covered --include="$(
    printf 'pi/fpvcar/%s.py,' gate guard mixing wire seat access h264 stream bitrate lease
)"
"$python" -m pytest -q -m e2e
