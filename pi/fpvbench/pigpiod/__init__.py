"""Emulator of pigpiod 79: the socket protocol in front of the bench's chip.

server.py, text/command_pipe.py (bytes, sockets, pipes, timers)
    -> daemon.py (dispatch and scheduling)
    -> gpio_commands.py, buses/, waves/wave_commands.py, text/scripts.py, absent.py (checks)
    -> pins.py, waves/transmitter.py, edges/ (alerts, notifications, watchdogs)
    -> lines.py (levels over time) -> fpvbench/soc.py (the registers)

The modules below the first line use neither sockets nor clocks: time is an argument, in
microseconds of CLOCK_MONOTONIC.
"""
