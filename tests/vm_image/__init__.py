"""The card image for a Raspberry Pi, booted by its own kernel in a QEMU VM of arm64.

QEMU's board has no firmware of a Pi, no SD card and no Wi-Fi: the kernel is given to QEMU, the card
is a virtio disk, the network is a cable. The pins are emulated as in vm_units.
"""
