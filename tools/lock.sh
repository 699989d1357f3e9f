#!/usr/bin/env bash
# Regenerates the lock files from pyproject.toml: exact versions and hashes, no addresses.
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
lock --extra bench --extra dev --extra man --extra station --upgrade --output-file requirements-dev.lock
# pip-compile drops the markers of these packages: other machines have no builds of them.
sed -i -E "s/^(atheris|rerun-sdk)(==[^ ]+) /\1\2 ; platform_machine == 'x86_64' /" \
    requirements-dev.lock
# requirements-picamera2.lock is written by hand: `pip hash` of two wheels.
lock --extra bench --extra man --extra station --constraint requirements-dev.lock \
    --output-file requirements-bench.lock
# tools/install.sh
lock --constraint requirements-dev.lock --output-file requirements-car.lock
