"""A Debian VM in QEMU, with kernel modules that the host lacks: Soft-RoCE, i2c-stub, vivid,
netem.

Everything runs by emulation (TCG). Figures from within are meaningful only in proportion to each
other.
"""
