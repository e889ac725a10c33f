"""Names of a cluster's services for its pods, in place of CoreDNS: `python -m tests.servers.cluster_dns ADDRESS KUBECONFIG`.

It answers A for `<service>.<namespace>.svc.cluster.local`, nothing for other types, and NXDOMAIN for other names.
"""

import socket
import struct
import sys
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import requests
import yaml

_FRESH_S: Final = 1.0
_ADDRESS: Final = 1  # type A
_NO_NAME: Final = 3
_HEADER: Final = struct.Struct("!6H")


class Services:
    """The cluster addresses by name, read again when they are a second old."""

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        self._url = f"{cluster['server']}/api/v1/services"
        self._session = requests.Session()
        self._session.trust_env = False  # its authorities would come before these
        self._session.verify = cluster["certificate-authority"]
        self._session.headers["Authorization"] = f"Bearer {content['users'][0]['user']['token']}"
        self._read_at = float("-inf")
        self._known: dict[str, str] = {}

    def find(self, name: str) -> str | None:
        if time.monotonic() - self._read_at > _FRESH_S:
            items = self._session.get(self._url, timeout=5).json()["items"]
            self._known = {
                f"{each['metadata']['name']}.{each['metadata']['namespace']}.svc.cluster.local": each["spec"][
                    "clusterIP"
                ]
                for each in items
                if each["spec"].get("clusterIP") not in {None, "None"}
            }
            self._read_at = time.monotonic()
        return self._known.get(name.lower())


def answer(question: bytes, services: Services) -> bytes:
    identifier, flags, *_ = _HEADER.unpack_from(question)
    labels, at = [], _HEADER.size
    while (length := question[at]) != 0:
        labels.append(question[at + 1 : at + 1 + length].decode("ascii"))
        at += 1 + length
    (kind,) = struct.unpack_from("!H", question, at + 1)
    asked = question[_HEADER.size : at + 5]
    address = services.find(".".join(labels))
    found = address is not None and kind == _ADDRESS
    code = 0 if address is not None else _NO_NAME
    head = _HEADER.pack(identifier, 0x8580 | (flags & 0x0100) | code, 1, int(found), 0, 0)
    if not found:
        return head + asked
    # a pointer to the name in the question, and five seconds of life
    return head + asked + struct.pack("!HHHIH", 0xC00C, _ADDRESS, 1, 5, 4) + ip_address(str(address)).packed


def main(address: str, kubeconfig: str) -> None:
    services = Services(Path(kubeconfig))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        while True:
            question, sender = server.recvfrom(4096)
            try:
                server.sendto(answer(question, services), sender)
            except (requests.RequestException, KeyError, ValueError, struct.error, IndexError) as error:
                print(error, file=sys.stderr, flush=True)  # noqa: T201 the log of the test


if __name__ == "__main__":
    main(*sys.argv[1:])
