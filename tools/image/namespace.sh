#!/bin/sh
# Run a command as root of namespaces in which QEMU runs programs of a Pi's processors:
#   namespace.sh WORDS...
# All users are mapped, as the files of a root belong to many. unshare itself cannot do that
# without newuidmap and its list.
set -eu
case ${STAGE:-} in
"")
    STAGE=mapped unshare --user "$0" "$@" &
    child=$!
    trap 'kill "$child" 2>/dev/null || true' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    until [ "$(readlink "/proc/$child/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do
        sleep 0.1
    done
    for map in uid_map gid_map; do echo '0 0 65536' >"/proc/$child/$map"; done
    wait "$child"
    ;;
mapped)
    until [ "$(id -u)" = 0 ]; do sleep 0.1; done
    STAGE=inside exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@"
    ;;
inside)
    unset STAGE
    # shellcheck source=tools/binfmt.sh
    . "$(dirname "$0")/../binfmt.sh"
    "$@" # not exec: process 1 of a namespace is not like others
    ;;
esac
