"""Runs in the VM: write the access units of a file to stdout, 15 a second, endlessly."""

import sys
import time
from pathlib import Path

AUD = b"\0\0\0\1\x09"
units = [AUD + one for one in Path(sys.argv[1]).read_bytes().split(AUD)[1:]]
while True:
    for unit in units:
        sys.stdout.buffer.write(unit)
        sys.stdout.buffer.flush()
        time.sleep(1 / 15)
