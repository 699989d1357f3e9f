"""The kernel's register of GPIO owners, for a bench without a gpiochip.

gpiochip/sitecustomize.py sends the requests. A line whose owner is gone becomes an input at once,
as with dtparam=strict_gpiod.
"""

import json
import socket
import threading
from contextlib import suppress
from pathlib import Path

from fpvbench import soc as chip


class GpioKernel:
    """Register that listens at RUNTIME/gpiochip once constructed."""

    def __init__(self, runtime: Path) -> None:
        self.holders: dict[int, str] = {}
        self._runtime, self._lock = runtime, threading.Lock()
        runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        says = runtime / "root/sys/module/pinctrl_bcm2835/parameters"
        says.mkdir(parents=True)
        (says / "persist_gpio_outputs").write_text("N\n")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(runtime / "gpiochip"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop answering requests."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line:
            request = line.recv(1000)
            if not request:  # its process was killed after it had connected
                return
            gpios, consumer = json.loads(request)
            soc = chip.attach(self._runtime / "soc")
            with self._lock:
                held = [self.holders[one] for one in gpios if one in self.holders]
                if not held:
                    self.holders.update(dict.fromkeys(gpios, consumer))
                    for one in gpios:
                        soc.pin[one].pwm = soc.pin[one].out = 0
                        soc.pin[one].mode = chip.MODE_OUTPUT
            with suppress(BrokenPipeError):  # its process was killed while it waited
                line.send((held[0] if held else "yours").encode())
            if held:
                return
            line.recv(1)  # wait until the socket is closed
            with self._lock:
                for one in gpios:
                    soc.pin[one].pull = chip.PULL_DOWN
                    soc.pin[one].mode = chip.MODE_INPUT
                    del self.holders[one]
