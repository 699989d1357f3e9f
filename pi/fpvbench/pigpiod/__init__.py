"""Emulator of pigpiod 79: the socket protocol in front of the bench's chip.

server.py, command_pipe.py (bytes, sockets, pipes, timers)
    -> daemon.py (dispatch and scheduling)
    -> *_commands.py, bitbang_*.py, bsc.py, absent.py (checks)
    -> pins.py, scripts.py, transmitter.py, alerts.py, notify.py
    -> lines.py (levels over time) -> fpvbench/soc.py (the registers)

The modules below the first line use neither sockets nor clocks: time is an argument, in
microseconds of CLOCK_MONOTONIC.
"""
