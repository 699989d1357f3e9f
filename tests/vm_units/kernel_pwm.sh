#!/bin/sh
# Run in the VM: as gpiochip.sh, with a PWM of the kernel beside it, a PCA9685 on the
# kernel's i2c-stub, and registers that connect pins to it. All are there again after each boot.
set -eu
sh /share/tests/vm_units/gpiochip.sh
cp /share/pwm-pca9685.ko /opt
cat >/opt/pwm.sh <<'PWM'
modprobe regmap-i2c
modprobe i2c-dev
modprobe i2c-piix4 # the VM's own bus, first: the stub has the next number at each boot
modprobe i2c-stub chip_addr=0x41
insmod /opt/pwm-pca9685.ko
python3 - <<'RESET'
from pathlib import Path
from smbus2 import SMBus

(name,) = (p for p in Path("/sys/bus/i2c/devices").glob("i2c-*/name") if "stub" in p.read_text())
with SMBus(int(name.parent.name.removeprefix("i2c-"))) as bus:
    # Of a real chip after power-on: prescaler, and both outputs off.
    for register, value in ((0xFE, 0x1E), (0x09, 0x10), (0x0D, 0x10)):
        bus.write_byte_data(0x41, register, value)
RESET
adapter=$(grep -l stub /sys/bus/i2c/devices/i2c-*/name)
echo pca9685 0x41 >"${adapter%name}new_device"
ls -d /sys/bus/i2c/devices/*-0041/pwm/pwmchip*
# chip.service covers /sys/module.
mkdir /run/sysfs
mount -t sysfs sysfs /run/sysfs
# Of a Pi 4: the function of GPIO 12 and 13 is their PWM (alternate function 0 is 4).
mount -t tmpfs tmpfs /sys/firmware
mkdir -p /sys/firmware/devicetree/base
printf 'raspberrypi,4-model-b\0brcm,bcm2711\0' >/sys/firmware/devicetree/base/compatible
printf '\0\0\0\0\0\011\0\0' >/dev/gpiomem
truncate --size=4096 /dev/gpiomem
chgrp gpio /dev/gpiomem
chmod 660 /dev/gpiomem
# The kernel's record of each write, for pins.py, by the clock of the tests.
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
mkdir /sys/kernel/tracing/instances/pwm
cd /sys/kernel/tracing/instances/pwm
echo mono >trace_clock
echo 1 >events/pwm/pwm_apply/enable
PWM
cat >/etc/systemd/system/pwm.service <<'UNIT'
[Unit]
Before=chip.service fpvcar-wheels.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -eu /opt/pwm.sh
[Install]
WantedBy=multi-user.target
UNIT
chmod -R a+rX /opt
systemctl daemon-reload
systemctl enable --now pwm.service
