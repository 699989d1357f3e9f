#!/usr/bin/env bash
# Keeps a station beside the bench: tools/run_station.sh ARGUMENTS of `fpvstation run`.
# One that a signal ended is started again; one that refused has said why.
set -uo pipefail

while true; do
    setpriv --pdeathsig=TERM .venv/bin/python -m fpvstation run "$@"
    status=$?
    case $((status - 128)) in
    -* | 0 | 2 | 15) exit "$status" ;; # by itself, by Ctrl-C, by kill
    esac
    echo "fpvstation: ended by signal $((status - 128)); it is started again" >&2
    sleep 1
done
