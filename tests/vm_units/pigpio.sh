#!/bin/sh
# Run in the VM: what a Pi has and the VM has not. /share has the parts.
set -eu
cp /share/pictures.h264 /share/tests/vm_units/camera.py \
    /share/tests/vm_units/registers.py /opt
# The pin daemon: the bench's emulator, over a chip that is a file.
cat >/opt/pigpiod.py <<'PROGRAM'
import runpy

import registers  # first

runpy.run_module("fpvbench.pigpiod", run_name="__main__", alter_sys=True)
PROGRAM
cat >/usr/bin/pigpiod <<'DAEMON'
#!/bin/sh
exec python3 /opt/pigpiod.py --soc /dev/shm/soc --host 127.0.0.1 --port 8888 \
    --pipe-dir /run/pigpio
DAEMON
chmod 755 /usr/bin/pigpiod
cat >/etc/systemd/system/pigpiod.service <<'UNIT'
[Unit]
Description=Daemon required to control GPIO pins via pigpio
[Service]
ExecStart=/usr/bin/pigpiod -l
ExecStop=/bin/systemctl kill pigpiod
Type=forking
[Install]
WantedBy=multi-user.target
UNIT
# Chip, registers and the model are there after each boot; who may write the real
# registers may write these.
printf 'raspberrypi,3-model-b\0brcm,bcm2837\0' >/opt/compatible
truncate --size=4096 /opt/gpiomem
cat >/etc/tmpfiles.d/chip.conf <<'CHIP'
d /run/pigpio 0755 root root -
C /dev/shm/soc 0660 root gpio - /opt/soc
C /dev/gpiomem 0660 root gpio - /opt/gpiomem
CHIP
cat >/etc/systemd/system/sys-firmware.mount <<'MOUNT'
[Mount]
What=tmpfs
Where=/sys/firmware
Type=tmpfs
MOUNT
cat >/etc/systemd/system/model.service <<'MODEL'
[Unit]
RequiresMountsFor=/sys/firmware
Before=pigpiod.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'mkdir -p /sys/firmware/devicetree/base; cp /opt/compatible /sys/firmware/devicetree/base'
[Install]
WantedBy=multi-user.target
MODEL
python3 -c 'from pathlib import Path; from fpvbench import soc; soc.create(Path("/opt/soc"))'
chmod -R a+rX /opt
systemd-tmpfiles --create chip.conf
systemctl daemon-reload
systemctl enable --now model.service
