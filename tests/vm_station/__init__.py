"""The packages of the station and of the sites' gateway in a QEMU guest with Trixie's systemd."""
