# shellcheck shell=sh
# Sourced by customize.sh. The packages of the tests start their own services.
