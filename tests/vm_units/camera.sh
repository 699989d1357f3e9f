#!/bin/sh
# Run in the VM, after the setup: the camera of the car; then all of it starts.
set -eu
command='command = ["/usr/bin/python3", "/opt/camera.py", "/opt/pictures.h264"]'
sed -i "s|^source = \"picamera2\".*|$command\nfps = 15|" /etc/fpvcar/car.toml
systemctl restart fpvcar-wheels fpvcar
