"""The packages of the station and of the sites' gateway in a QEMU VM with Trixie's systemd."""
