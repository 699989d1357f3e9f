"""The packages of the car in a QEMU VM with Debian Trixie and its systemd.

The pin daemon and its chip are the bench's emulators. A second VM has no daemon; its chip is the
kernel's gpio-sim. A third one has a PWM of the kernel, too. Packages, units, users, sandboxes and
systemd are the same as on a Pi. Every time is the VM's own: its clock counts instructions,
however busy the host is.
"""
