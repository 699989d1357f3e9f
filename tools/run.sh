#!/usr/bin/env bash
# Starts the bench with the variables of `make run`: HOST, PORT, PIGPIO_PORT, CAMERA, BROWSER, SEED,
# PINS, RECORDINGS, WIRE, PIPE_DIR, V; and a base station with STATION, STATION_PORT, STORE,
# STORE_GB, STORE_CHANGED.
set -euo pipefail
cd "$(dirname "$0")/.."

arguments=(--host "${HOST:-127.0.0.1}" --port "${PORT:-8080}" --seed "${SEED:-1}"
    --set "pins.port = ${PIGPIO_PORT:-8888}")
if [ -n "${CAMERA:-}" ]; then
    # Split the command like a shell, and write it as a TOML array.
    command=$(.venv/bin/python -c '
import json, os, shlex
print(json.dumps(shlex.split(os.environ["CAMERA"])))')
    arguments+=(--set "camera.command = $command")
fi
if [ -n "${RECORDINGS:-}" ]; then
    folder=$(.venv/bin/python -c '
import json, os
print(json.dumps(os.path.abspath(os.path.expanduser(os.environ["RECORDINGS"]))))')
    arguments+=(--set "recording.directory = $folder")
fi
if [ -n "${PINS:-}" ]; then
    arguments+=(--pins "$PINS")
fi
for pins in ${WIRE:-}; do
    arguments+=(--wire "$pins")
done
if [ -n "${PIPE_DIR:-}" ]; then
    arguments+=(--pipe-dir "$PIPE_DIR")
fi
if [ "${BROWSER:-1}" != 0 ]; then
    arguments+=(--browser)
fi
if [ "${V:-0}" != 0 ]; then
    arguments+=(-v)
fi
case "${STATION:-1} ${HOST:-127.0.0.1}" in
"1 127.0.0.1" | "1 localhost" | "1 0.0.0.0" | "1 ::")
    # The last options: all behind --also belong to the station.
    arguments+=(--also fpvstation run
        --store "${STORE:-$HOME/fpvstation}" --port "${STATION_PORT:-8100}"
        --most-gb "${STORE_GB:-10}" ${STORE_CHANGED:+--store-changed}
        --beside "http://127.0.0.1:${PORT:-8080}")
    ;;
esac
exec .venv/bin/python -m fpvcar bench "${arguments[@]}"
