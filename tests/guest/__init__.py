"""A Debian guest in QEMU, with the kernel modules that the host has not: Soft-RoCE,
i2c-stub, vivid, netem. Everything runs by emulation (TCG): figures from within mean
nothing but in proportion to each other.
"""
