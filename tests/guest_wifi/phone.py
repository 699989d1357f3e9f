"""Runs in the guest, in the phone's network namespace: send the requests of the car's page.

phone.py page           the page that joins networks
phone.py join CODE KEY  joins Home; prints the last state that the car reported
"""

import http.cookiejar
import json
import sys
import time
import urllib.error
import urllib.request
from typing import Any

CAR = "http://10.42.0.1:8080"
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


if __name__ == "__main__":
    if sys.argv[1] == "page":
        print(ask("/network"))
    else:
        print(json.dumps(join(*sys.argv[2:])))
