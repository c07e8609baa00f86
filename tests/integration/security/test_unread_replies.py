"""What a caller gets that asks for much and reads nothing."""

from pathlib import Path

from rpcqm.client import mq
from rpcqm.testing import PrivateQueueManager
from tests.integration.security.conftest import Connect
from tests.support.rpc.remote_reader import INFINITE, PEEK_ACCESS, PEEK_CURRENT, Reader
from tests.support.waiting import until

PEEKS, OCTETS = 400, 600_000
MOST = 150 << 20
"""What the server's memory may grow by: its limit for one connection twice, and then some."""


def most_memory(running: PrivateQueueManager) -> int:
    """Octets that a server has had in memory at most."""
    status = Path(f"/proc/{running.ready.pid}/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def test_hundreds_of_peeks_at_once_that_nobody_reads_take_no_memory(
    connect: Connect, queue_manager: PrivateQueueManager, queue: str
) -> None:
    with mq.open(queue, queue_manager) as opened:
        opened.purge()
        opened.send(bytes(OCTETS))
    bob = connect("remoteread", user="bob")
    handle = Reader(bob.caller).open(f"DIRECT=OS:.\\private$\\{queue}", PEEK_ACCESS)
    fields = {"phContext": handle, "LookupId": 0, "hCursor": 0, "ulAction": PEEK_CURRENT}
    sizes = {"dwMaxBodySize": INFINITE, "dwMaxCompoundMessageSize": INFINITE}
    peeks = [
        bob.made("R_StartReceive", **fields, **sizes, ulTimeout=0, dwRequestId=number)[1]
        for number in range(1, PEEKS)
    ]
    before = most_memory(queue_manager)
    bob.plain.sendall(b"".join(peeks))
    until(lambda: "a client does not read its replies" in queue_manager.log)
    assert most_memory(queue_manager) - before < MOST
