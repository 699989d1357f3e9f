"""rdcp and rdpipe to a host, with a firewall on either side that blocks all data ports."""

import os
import subprocess

import pytest
from testkit.network.lan import Lan
from testkit.network.pipes import Tools

from tests.rdma.near import Near

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
SIZE = 5_000_000
"""More than can be on its way through SSH at once."""
THROUGH = b"goes through the SSH session"


@pytest.fixture
def apart(near: Near, lan: Lan) -> Tools:
    """Runner with `far:` as the far host. Its sshd is simulated, and needs no port."""
    return near(f'set -- "$1" "exec {" ".join(lan.enter)} sh -c \'$2\'"\n')


def close(lan: Lan, far: str = "", near: str = "", how: str = "reject") -> None:
    """Block connections to these ports of the far host, and of this one."""
    rules = "table inet wall {"
    for hook, ports in (("input", far), ("output", near)):
        rules += f"chain {hook} {{ type filter hook {hook} priority 0;"
        if ports:
            way = "iif" if hook == "input" else "oif"
            rules += f"{way} != lo tcp flags syn / syn,ack tcp dport {ports} {how}\n"
        rules += "}\n"
    words = [*lan.enter, "nft", "-f", "-"]
    try:
        subprocess.run(words, input=f"{rules}}}".encode(), check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no nftables")


ALL, BUT_NINE = "1-65535", "{ 1-7470, 7480-65535 }"


@pytest.mark.parametrize(
    ("inward", "outward", "options", "says"),
    [
        (ALL, "", [], THROUGH),
        (ALL, ALL, [], THROUGH),
        ("", "", ["--via-ssh"], THROUGH),
        (BUT_NINE, BUT_NINE, ["--port", "7471-7479"], None),
        (ALL, ALL, ["--port", "7471-7479"], THROUGH),
    ],
)
def test_copy_there_and_back_names_the_route(
    apart: Tools,
    lan: Lan,
    inward: str,
    outward: str,
    options: list[str],
    says: bytes | None,
    soaking: bool,
) -> None:
    """A line names the route unless the data goes straight."""
    (apart.place / "a").write_bytes(data := os.urandom(SIZE))
    close(lan, inward, outward, "drop" if soaking else "reject")
    for source, target in (("a", f"far:{apart.place}/b"), (f"far:{apart.place}/b", "c")):
        ended = apart.run("rdcp", *options, source, target, within_s=60)
        assert ended.returncode == 0, ended.stderr
        straight = says is None or (inward != outward and source != "a")
        assert ended.stderr.count(says or b"\n") == (not straight), ended.stderr
    assert (apart.place / "c").read_bytes() == data


def test_pipe_through_ssh_keeps_output_and_status(apart: Tools, lan: Lan) -> None:
    """Output and exit status of a command arrive as over a port of its own."""
    close(lan, ALL, ALL)
    ended = apart.run("rdpipe", "far:cat; echo end", stdin=b"x" * SIZE)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == b"x" * SIZE + b"end\n"
    ended = apart.run("rdpipe", "far:cat; exit 7", stdin=b"x" * SIZE)
    assert ended.returncode == 7, ended.stderr
    ended = apart.run("rdpipe", "far:yes", "head -c 3000000")
    assert len(ended.stdout) == 3_000_000, ended.stderr


def test_invalid_port_range_is_refused_with_example(apart: Tools) -> None:
    for ports in ("0", "70000", "9-8", "a", "1-2-3", "-5"):
        ended = apart.run("rdcp", "--port", ports, "a", "far:b")
        assert ended.returncode == 2, ended.stderr
        assert b"7471-7479" in ended.stderr
