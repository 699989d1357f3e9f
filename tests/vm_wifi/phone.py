"""Runs in the VM, in the phone's network namespace: send the requests of the car's page.

phone.py page           the page that joins networks
phone.py join CODE KEY  joins Home; prints the last state that the car reported
phone.py probe          looks for the Internet as each system does; prints the answers
"""

import http.client
import http.cookiejar
import json
import socket
import struct
import sys
import time
import urllib.error
import urllib.request
from typing import Any

CAR_ADDRESS = "10.42.0.1"
CAR = f"http://{CAR_ADDRESS}:8080"
PROBES = (
    ("connectivitycheck.gstatic.com", "/generate_204"),
    ("captive.apple.com", "/hotspot-detect.html"),
    ("www.msftconnecttest.com", "/connecttest.txt"),
    ("www.msftconnecttest.com", "/redirect"),
    ("detectportal.firefox.com", "/success.txt"),
)
"""Host and path of the probes of Android, iOS, Windows and Firefox."""
ANSWER_S = 5.0
TOLD_S = 120.0
jar = http.cookiejar.CookieJar()
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))


def ask(path: str, post: bool = False, **headers: str) -> str:
    """Request a path and return the car's answer. Raises OSError."""
    words = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(
        CAR + path, headers={"Origin": CAR, **words}, method="POST" if post else "GET"
    )
    with browser.open(request, timeout=ANSWER_S) as answer:
        return str(answer.read().decode())


def state() -> dict[str, Any]:
    """Return the state of the car's network."""
    return dict(json.loads(ask("/api/network")))


def join(code: str, key: str) -> dict[str, Any]:
    """Join Home; return once the car has its own network again with a reason. The phase is
    "gone" while the car does not answer."""
    ask("/api/recordings/unlock", post=True, X_Drive_Code=code)
    assert "Home" in [one["ssid"] for one in state()["networks"]]
    ask("/api/network/join?ssid=Home", post=True, X_Wifi_Key=key)
    until_s = time.monotonic() + TOLD_S
    said: dict[str, Any] = {}
    while time.monotonic() < until_s:
        try:
            said = state()
        except OSError:
            said = {"phase": "gone"}
        if said["phase"] == "own" and said["reason"]:
            break
        time.sleep(2.0)
    return said


def address_of(name: str) -> str:
    """Return the IPv4 address that the car's name server gives (RFC 1035, 4). Raises OSError."""
    labels = b"".join(bytes([len(label)]) + label for label in name.encode().split(b"."))
    question = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + labels + struct.pack(">xHH", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(ANSWER_S)
        asking.sendto(question, (CAR_ADDRESS, 53))
        return socket.inet_ntoa(asking.recv(512)[-4:])


def probe(name: str, path: str) -> str:
    """Return the status and the target of the answer to a probe. Raises OSError."""
    connection = http.client.HTTPConnection(address_of(name), timeout=ANSWER_S)
    connection.request("GET", path, headers={"Host": name})
    answer = connection.getresponse()
    return f"{answer.status} {answer.headers['Location']}"


if __name__ == "__main__":
    if sys.argv[1] == "page":
        print(ask("/network"))
    elif sys.argv[1] == "probe":
        print("\n".join(probe(name, path) for name, path in PROBES))
    else:
        print(json.dumps(join(*sys.argv[2:])))
