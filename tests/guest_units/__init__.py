"""The packages of the car in a QEMU guest with Debian Trixie and its systemd.

The pin daemon is the bench's emulator and so is its chip; in another guest there is no
daemon, and the chip is the kernel's gpio-sim. Packages, units, users, sandboxes and
systemd are what a Pi has. Every time is the guest's own: its clock counts
instructions, however busy the host is.
"""
