"""An emulator of pigpiod 79: the socket protocol in front of the bench's chip.

server.py (bytes, sockets, timers) -> daemon.py (who does what, when)
    -> commands.py, i2c_commands.py, absent.py (checks) -> pins.py, scripts.py,
       notify.py -> lines.py (levels over time) -> bench/soc.py (the registers)

Everything below server.py is free of sockets and clocks: time is an argument, in
microseconds of CLOCK_MONOTONIC.
"""
