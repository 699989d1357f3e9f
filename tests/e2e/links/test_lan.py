"""Packets between the two hosts of a rig are as large as on a real network."""

import os
import socket
import threading

import pytest
from testkit.network.air import Air
from testkit.network.lan import Lan

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
ETH_P_ALL = 0x0003  # <linux/if_ether.h>
MTU_BYTES, ETHERNET_BYTES = 1500, 14
TRANSFER_BYTES = 1 << 20


class Sniffer:
    """Sizes of the packets of one device: sent ones as they leave the kernel, received
    ones after its receive offload."""

    def __init__(self, device: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.bind((device, 0))
        self._socket.setblocking(False)

    def largest(self, outgoing: bool) -> int:
        """Largest packet seen in one direction, in bytes."""
        sizes = [0]
        while True:
            try:
                data, address = self._socket.recvfrom(1 << 16)
            except BlockingIOError:
                self._socket.close()
                return max(sizes)
            if (address[2] == socket.PACKET_OUTGOING) == outgoing:
                sizes.append(len(data))


def transfer(lan: Lan, outgoing: bool) -> None:
    """Moves TRANSFER_BYTES over one TCP connection."""
    with socket.create_server((lan.near, 0)) as listener:
        far = lan.connect(listener.getsockname()[1])
        near = listener.accept()[0]
    sender, receiver = (near, far) if outgoing else (far, near)
    with near, far:
        sending = threading.Thread(target=sender.sendall, args=(bytes(TRANSFER_BYTES),))
        sending.start()
        left = TRANSFER_BYTES
        while left:
            left -= len(receiver.recv(left))
        sending.join()


@pytest.mark.parametrize("outgoing", [True, False], ids=["to far", "from far"])
@pytest.mark.parametrize("kind", [Lan, Air])
def test_lan_bulk_transfer_crosses_in_segments_of_the_mtu(kind: type[Lan], outgoing: bool) -> None:
    with kind() as lan:
        sniffer = Sniffer(lan.near_device)
        transfer(lan, outgoing)
        largest = sniffer.largest(outgoing)
    assert MTU_BYTES // 2 < largest <= MTU_BYTES + ETHERNET_BYTES
