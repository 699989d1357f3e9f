"""Camera program for tests: writes access units from a file, or misbehaves.

    fake_camera.py FILE MODE [--fps N] [--after N] [--say TEXT]

FILE holds wire records. MODE: framed, plain, dribble (plain, in pieces); after --after units it
does the action of --then: exit, hang, close, garbage, ignore-term, unless --software is
given. Standard library only, for a fast start.
"""

import argparse
import os
import select
import signal
import struct
import sys
import time


def units(path: str) -> list[tuple[bytes, bytes]]:
    with open(path, "rb") as file:
        data = file.read()
    found, at = [], 0
    while at < len(data):
        length, kind, flags, _, _ = struct.unpack_from("<IBBHQ", data, at)
        stamp = struct.pack("<IBBHQ", length, kind, flags, 0, 0)[:8]
        found.append((stamp, data[at + 16 : at + 16 + length]))
        at += 16 + length
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("mode", choices=["framed", "plain", "dribble"])
    parser.add_argument("--fps", type=float, default=30.0)
    parser.add_argument("--after", type=int, default=1 << 30)
    parser.add_argument("--then", default="exit")
    parser.add_argument("--say", default="")
    parser.add_argument("--software", action="store_true")
    args = parser.parse_args()
    if args.then == "ignore-term":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    film = units(args.file)
    if args.after == 0 and not args.software:
        misbehave(args)
    count, at = 0, 0
    while True:
        if args.mode == "framed" and select.select([0], [], [], 0)[0]:
            heard = os.read(0, 4096)
            if not heard:
                sys.exit(0)
            print(f"heard {heard!r}", file=sys.stderr, flush=True)
            if b"key" in heard:
                at = 0
        stamp, unit = film[at]
        write(args.mode, stamp, unit)
        count, at = count + 1, (at + 1) % len(film)
        if count >= args.after and not args.software:
            misbehave(args)
        time.sleep(1.0 / args.fps)


def write(mode: str, stamp: bytes, unit: bytes) -> None:
    if mode == "framed":
        capture_us = time.monotonic_ns() // 1000
        os.write(1, stamp + struct.pack("<Q", capture_us) + unit)
    elif mode == "plain":
        os.write(1, unit)
    else:
        for begin in range(0, len(unit), 1000):
            os.write(1, unit[begin : begin + 1000])


def misbehave(args: argparse.Namespace) -> None:
    if args.say:
        print(args.say, file=sys.stderr, flush=True)
    if args.then == "exit":
        sys.exit(3)
    if args.then == "close":
        os.close(1)
    if args.then == "garbage":
        while True:
            os.write(1, os.urandom(1000).replace(b"\0", b"x"))
            time.sleep(0.01)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
