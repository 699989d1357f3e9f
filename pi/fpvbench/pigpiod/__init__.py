"""An emulator of pigpiod 79: the socket protocol in front of the bench's chip.

server.py, command_pipe.py (bytes, sockets, pipes, timers)
    -> daemon.py (who does what, when)
    -> *_commands.py, bitbang_*.py, bsc.py, absent.py (checks)
    -> pins.py, scripts.py, transmitter.py, alerts.py, notify.py
    -> lines.py (levels over time) -> fpvbench/soc.py (the registers)

What stands below the first line knows neither sockets nor clocks: time is an argument,
in microseconds of CLOCK_MONOTONIC.
"""
