"""Client, gateway and internet in three network namespaces. Needs root.

The internet has two sites on one address, a third on another, and a DNS server that resolves all;
its web servers answer with the Host that they were asked for.
"""

import contextlib
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

MAC, STRANGER = "02:00:00:00:53:01", "02:00:00:00:53:09"
SHARED, OTHER, DNS = "45.0.0.2", "45.0.0.3", "45.0.0.9"
INSIDE = "192.168.53.2"
"""Address in a private network between the gateway and the internet."""
GATEWAY = "10.53.0.1"
PEOPLE = 65534
"""User and group of the gateway's programs: not root."""
WEB = """
import http.server, threading, socket
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = self.headers["Host"].encode()
        self.send_response(200); self.send_header("Content-Length", len(body)); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Six(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
for port in (80, 443, 853):
    server = http.server.ThreadingHTTPServer(("0.0.0.0", port), Answer)
    threading.Thread(target=server.serve_forever).start()
Six(("fd45::2", 80), Answer).serve_forever()
"""
GET = """
import http.client, sys
link = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=float(sys.argv[4]))
link.request("GET", "/", headers={"Host": sys.argv[3]})
print(link.getresponse().read().decode())
"""
ASK = """
import socket, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.settimeout(float(sys.argv[2]))
link.bind(("", int(sys.argv[5])))
link.sendto(bytes.fromhex(sys.argv[3]), (sys.argv[1], int(sys.argv[4])))
print(link.recv(2000).hex())
"""
LINES = f"""
client: link add wifi address {MAC} type veth peer name lan netns {{gateway}}
internet: link add line type veth peer name wan netns {{gateway}}
client: addr add 10.53.0.2/24 dev wifi
client: addr add fd53::2/64 dev wifi nodad
gateway: addr add {GATEWAY}/24 dev lan
gateway: addr add fd53::1/64 dev lan nodad
gateway: addr add 45.0.0.1/24 dev wan
gateway: addr add fd45::1/64 dev wan nodad
internet: addr add {SHARED}/24 dev line
internet: addr add {OTHER}/24 dev line
internet: addr add {DNS}/24 dev line
internet: addr add fd45::2/64 dev line nodad
internet: addr add {INSIDE}/24 dev line
gateway: addr add 192.168.53.1/24 dev wan
client: link set wifi up
gateway: link set lo up
gateway: link set lan up
gateway: link set wan up
internet: link set line up
client: route add default via {GATEWAY}
client: -6 route add default via fd53::1
internet: route add default via 45.0.0.1
internet: -6 route add default via fd45::1
"""
"""Set-up of the network: HOST: words of `ip`."""
REFUSED, NO_SUCH_NAME = 5, 3
HTTPS = 65
"""Type of a record that names a server's protocols and addresses."""


def free(path: Path) -> Path:
    """Let the gateway's user own the path."""
    os.chown(path, PEOPLE, PEOPLE)
    return path


class Network:
    """Three hosts in a row; `folder` is the configuration, `state` the state of the gateway."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.root.chmod(0o755)
        self.folder, self.state = self.root / "etc", self.root / "state"
        (self.folder / "groups").mkdir(parents=True)
        self.state.mkdir()
        free(self.state)
        self._processes: list[subprocess.Popen[bytes]] = []
        sleep = ["setpriv", "--pdeathsig=KILL", "unshare", "--net", "sleep", "infinity"]
        self._hosts = {name: subprocess.Popen(sleep) for name in ("client", "gateway", "internet")}
        self._processes += self._hosts.values()

    def __enter__(self) -> Self:
        try:
            self._wire()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        shutil.rmtree(self.root, ignore_errors=True)  # a dying child may write yet

    def on(self, host: str, *words: str | Path) -> list[str]:
        """Return the command line of a program on a host."""
        return ["nsenter", f"--net=/proc/{self._hosts[host].pid}/ns/net", *map(str, words)]

    def run(self, host: str, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a program on a host."""
        return subprocess.run(
            self.on(host, *words), capture_output=True, text=True, env={**os.environ, **more}
        )

    def start(self, host: str, *words: str | Path) -> subprocess.Popen[bytes]:
        """Start a program on a host; it ends with the network."""
        process = subprocess.Popen(["setpriv", "--pdeathsig=KILL", *self.on(host, *words)])
        self._processes.append(process)
        return process

    def start_gate(self) -> subprocess.Popen[bytes]:
        """Start `fpvsites run` with the rights of its unit."""
        rights = ["--ambient-caps=+net_admin", "--inh-caps=+net_admin"]
        user = [f"--reuid={PEOPLE}", f"--regid={PEOPLE}", "--clear-groups", *rights]
        program = [sys.executable, "-m", "fpvsites", "run", "--state", str(self.state)]
        process = self.start("gateway", "setpriv", *user, *program)
        return process

    def fpvsites(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb on the gateway, as root."""
        program = [sys.executable, "-m", "fpvsites", *words, "--state", str(self.state)]
        return self.run("gateway", *program)

    def group(self, name: str, text: str) -> None:
        (self.folder / "groups" / f"{name}.toml").write_text(text)

    def _ip(self, host: str, words: str) -> None:
        done = self.run(host, "ip", *words.split())
        assert done.returncode == 0, f"{words}: {done.stderr}"

    def _wire(self) -> None:
        deadline = time.monotonic() + 5.0
        own = os.readlink("/proc/self/ns/net")
        for process in self._hosts.values():
            while os.readlink(f"/proc/{process.pid}/ns/net") == own:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        gateway = self._hosts["gateway"].pid
        for line in LINES.format(gateway=gateway).strip().splitlines():
            host, _, words = line.partition(": ")
            self._ip(host, words)
        for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            assert self.run("gateway", "sysctl", "-q", f"{key}=1").returncode == 0
        self.start("internet", sys.executable, "-c", WEB)
        names = {"allowed.org": SHARED, "second.org": SHARED, "third.org": OTHER}
        names |= {"dns.google.com": OTHER, "google.com": OTHER}
        names["inside.allowed.org"] = INSIDE
        records = [f"--host-record={name},{address},fd45::2" for name, address in names.items()]
        hint = bytes.fromhex("0001 00 0004 0004") + socket.inet_aton(OTHER)  # ipv4hint
        records += [f"--dns-rr=allowed.org,{HTTPS},{hint.hex()}"]
        dnsmasq = shutil.which("dnsmasq", path="/usr/sbin:/sbin:/usr/bin")
        listen = ["--bind-interfaces", f"--listen-address={DNS}", "--local-ttl=300"]
        options = ["--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"]
        server = dnsmasq or "dnsmasq"
        self.start("internet", server, *options, "--pid-file=", *listen, *records)
        self.wait_for(lambda: self.ask("allowed.org", server=DNS)[1] != [])
        self.wait_for(lambda: self.get("fd45::2", "x") == "x")
        self.wait_for(lambda: self.get(SHARED, "x") == "x")

    @staticmethod
    def wait_for(condition: object, seconds: float = 20.0) -> None:
        """Wait until a condition holds."""
        assert callable(condition)
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "the condition does not hold in time"
            time.sleep(0.05)

    def get(self, address: str, host: str, port: int = 80, timeout_s: float = 0.7) -> str:
        """Return the body of a page that the client fetches; "" if it cannot."""
        words = [sys.executable, "-S", "-c", GET, address, str(port), host, str(timeout_s)]
        return self.run("client", *words).stdout.strip()

    def ask(
        self, name: str, kind: int = 1, server: str = GATEWAY, port: int = 53, own_port: int = 0
    ) -> tuple[int, list[str]]:
        """Return the code and the IPv4 addresses of a DNS answer to the client; -1 for none."""
        labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
        query = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + labels + b"\0"
        query += struct.pack(">2H", kind, 1)
        ports = [str(port), str(own_port)]
        words = [sys.executable, "-S", "-c", ASK, server, "2.0", query.hex(), *ports]
        answer = bytes.fromhex(self.run("client", *words).stdout.strip())
        if not answer:
            return -1, []
        count, found = struct.unpack(">H", answer[6:8])[0], []
        rest = answer[len(query) :]
        for _ in range(count):
            size = struct.unpack(">H", rest[10:12])[0]
            with contextlib.suppress(ValueError):
                found.append(socket.inet_ntoa(rest[12:16]) if size == 4 else "")
            rest = rest[12 + size :]
        return answer[3] & 15, found

    def visit(self, name: str) -> str:
        """Resolve a name and fetch its page, as a browser does."""
        _, addresses = self.ask(name)
        return self.get(addresses[0], name) if addresses else ""
