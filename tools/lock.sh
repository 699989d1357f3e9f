#!/usr/bin/env bash
# Writes the lock files anew from pyproject.toml: exact versions and hashes, no addresses.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch"
"$scratch/bin/pip" install --quiet pip-tools==7.6.2
lock() {
    "$scratch/bin/pip-compile" --quiet --generate-hashes --strip-extras --no-header \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
        --allow-unsafe --extra build "$@" pyproject.toml
}
lock --extra bench --extra dev --extra station --upgrade --output-file requirements-dev.lock
# It loses their markers: the others of them have nothing to install there.
sed -i -E "s/^(atheris|rerun-sdk)(==[^ ]+) /\1\2 ; platform_machine == 'x86_64' /" \
    requirements-dev.lock
# requirements-picamera2.lock is written by hand: `pip hash` of two wheels.
lock --extra bench --extra station --constraint requirements-dev.lock \
    --output-file requirements-bench.lock
# tools/install.sh
lock --constraint requirements-dev.lock --output-file requirements-car.lock
