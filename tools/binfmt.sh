# shellcheck shell=sh
# Sourced in a user namespace of its own: lets QEMU run programs of a Pi's processors, in
# that namespace alone. Since Linux 6.7 each one has its own register of them.
register=/proc/sys/fs/binfmt_misc
mount -t binfmt_misc binfmt_misc "$register"
for known in /usr/lib/binfmt.d/qemu-aarch64.conf /usr/lib/binfmt.d/qemu-arm.conf; do
    cat "$known" >"$register/register"
done
