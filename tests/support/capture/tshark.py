"""How many calls a capture has, by client, interface and opnum: counted by us, and by tshark."""

import subprocess
from collections import Counter
from pathlib import Path

from rpcqm.capture.conversation.call import CapturedCall
from tests.support.capture.analysed import calls_of

NOT_BY_TSHARK = frozenset(
    {
        "40 tags",
        "ERSPAN III with IP",
        "IP without Ethernet",
        "MPLS with other addresses",
        "MPLS without Ethernet",
    }
)
"""Kinds of frames that tshark 4.0 does not read without being told more."""
_OPTIONS = ("-d", "udp.port==8472,vxlan", "-o", "tcp.reassemble_out_of_order:TRUE")

Calls = Counter[tuple[str, str, int]]
"""By the port of the client, the interface and the opnum."""


def by_us(path: Path) -> Calls:
    found: Calls = Counter()
    for call in calls_of(path)[0]:
        assert isinstance(call, CapturedCall)
        port = call.conversation.client.rpartition(":")[2]
        found[port, str(call.context.uuid), call.opnum] += 1
    return found


def by_tshark(path: Path) -> Calls:
    fields = ("tcp.srcport", "dcerpc.pkt_type", "dcerpc.cn_bind_to_uuid", "dcerpc.opnum")
    command = ["tshark", "-n", "-r", str(path), "-Y", "dcerpc.pkt_type in {0, 11}", "-T", "fields"]
    command += [*_OPTIONS, *(part for field in fields for part in ("-e", field))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Calls = Counter()
    interfaces: dict[str, str] = {}
    for line in done.stdout.splitlines():
        port, kind, interface, opnum = line.split("\t")
        if kind == "11":
            interfaces[port] = interface
        else:
            found[port, interfaces.get(port, ""), int(opnum)] += 1
    return found
