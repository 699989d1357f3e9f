#!/usr/bin/env bash
# Keeps a station running beside the bench: tools/run_station.sh ARGUMENTS of `fpvstation run`.
# A station ended by a signal is started again; one that refused to start has logged the reason.
set -uo pipefail

while true; do
    setpriv --pdeathsig=TERM .venv/bin/python -m fpvstation run "$@"
    status=$?
    case $((status - 128)) in
    -* | 0 | 2 | 15) exit "$status" ;; # own exit, Ctrl-C, kill
    esac
    echo "fpvstation: ended by signal $((status - 128)); it is started again" >&2
    sleep 1
done
