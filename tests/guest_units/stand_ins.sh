#!/bin/sh
# Run in the guest: what a Pi has and the guest has not. /share has the parts.
set -eu
# The pin daemon: the bench's emulator, over a chip that is a file.
cat >/usr/bin/pigpiod <<'DAEMON'
#!/bin/sh
exec python3 -m fpvcar.bench.pigpiod --soc /dev/shm/soc --host 127.0.0.1 --port 8888 \
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
# The chip is there after each boot; whoever may write the registers may write the file.
cat >/etc/tmpfiles.d/chip.conf <<'CHIP'
d /run/pigpio 0755 root root -
C /dev/shm/soc 0660 root gpio - /opt/soc
CHIP
# Who lets go of the pins does so on that chip, instead of on registers.
ln -sf /opt/pins_off.py /usr/lib/fpvcar/pins-off
cat >/opt/pins_off.py <<'PROGRAM'
import sys
from pathlib import Path

sys.path.append("/usr/lib/python3/dist-packages")
from fpvcar.bench import soc
from fpvcar.devices.linux import pins_off


def let_go(pins):
    chip = soc.attach(Path("/dev/shm/soc"))
    for gpio in pins:
        chip.pin[gpio].pull, chip.pin[gpio].mode = soc.PULL_DOWN, soc.MODE_INPUT


pins_off.let_go = let_go
sys.exit(pins_off.main())
PROGRAM
# The camera: pictures that were made before.
cp /share/pictures.h264 /share/camera.py /opt
python3 -c 'from pathlib import Path; from fpvcar.bench import soc; soc.create(Path("/opt/soc"))'
chmod -R a+rX /opt
systemd-tmpfiles --create chip.conf
systemctl daemon-reload
