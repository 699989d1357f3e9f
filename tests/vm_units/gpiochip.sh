#!/bin/sh
# Run in the VM: a Pi 5 without a pin daemon. Its chip is the kernel's gpio-sim, and
# there again after each boot.
set -eu
cp /share/pictures.h264 /share/tests/vm_units/camera.py \
    /share/tests/vm_sensors/gpio_sim.py /share/gpio-sim.ko /opt
cat >/etc/systemd/system/chip.service <<'UNIT'
[Unit]
Before=fpvcar-wheels.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/modprobe configfs
ExecStart=/bin/sh -c 'mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config'
ExecStart=/sbin/insmod /opt/gpio-sim.ko
ExecStart=/usr/bin/python3 /opt/gpio_sim.py
[Install]
WantedBy=multi-user.target
UNIT
chmod -R a+rX /opt
systemctl daemon-reload
systemctl enable --now chip.service
