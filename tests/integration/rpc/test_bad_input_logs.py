"""What is malformed is answered, told in one line of the log, and counted; others go on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rpcqm.rpc import pdu
from tests.support.accounts import TestAccounts
from tests.support.rpc.probe import ProbeHandlers, ProbeInterface, alter, bind, request
from tests.support.rpc.rpc_server import RunningServer, serving
from tests.support.rpc.rpc_sockets import raw, read_all, read_pdu

FAULT, NAK = pdu.Fault, pdu.BindNak


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningServer]:
    served = (ProbeInterface(), ProbeHandlers())
    with serving(served, accounts=TestAccounts(tmp_path)) as server:
        yield server


def with_octet(octets: bytes, position: int, value: int) -> bytes:
    return octets[:position] + bytes([value]) + octets[position + 1 :]


TRAILER = pdu.SecurityTrailer(10, 6, 0, b"this is no token")
BROKEN = "the protocol was broken", "rpc.protocol_errors"
UNBOUND = "a bind was refused", "rpc.binds_refused"
REFUSED = "a call was refused", "rpc.refusals"

MALFORMED = [
    pytest.param(False, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", *BROKEN, FAULT, id="HTTP"),
    pytest.param(False, bytes(64), *BROKEN, FAULT, id="zeros"),
    pytest.param(False, with_octet(bind(), 0, 4), *BROKEN, NAK, id="a bind of RPC version 4"),
    pytest.param(False, with_octet(bind(), 8, 15), *BROKEN, NAK, id="a bind of 15 octets"),
    pytest.param(False, with_octet(bind(), 24, 9), *BROKEN, NAK, id="a bind cut short"),
    pytest.param(False, bind(p_context_elem=()), *UNBOUND, NAK, id="a bind without contexts"),
    pytest.param(False, bind(assoc_group_id=77), *UNBOUND, NAK, id="an unknown group"),
    pytest.param(False, bind(auth=TRAILER), *UNBOUND, NAK, id="a token that is none"),
    pytest.param(False, request(0), *BROKEN, FAULT, id="a request before the bind"),
    pytest.param(True, bind(), *BROKEN, NAK, id="a second bind"),
    pytest.param(True, with_octet(alter(), 24, 9), *BROKEN, FAULT, id="an alter_context cut short"),
    pytest.param(True, with_octet(request(0), 2, 99), *BROKEN, FAULT, id="PDU type 99"),
    pytest.param(True, with_octet(request(0), 8, 20), *BROKEN, FAULT, id="a request of 20 octets"),
    pytest.param(True, with_octet(request(0), 10, 40), *BROKEN, FAULT, id="a token too long"),
    pytest.param(True, request(0, pfc_flags=0), *BROKEN, FAULT, id="a fragment without its first"),
    pytest.param(True, request(0, auth=TRAILER), *BROKEN, FAULT, id="a trailer of nobody"),
    pytest.param(True, pdu.Auth3(call_id=0).pack(), *BROKEN, FAULT, id="auth3 of nobody"),
    pytest.param(True, request(0, p_cont_id=7), *REFUSED, FAULT, id="an unknown context"),
]


def sent(running: RunningServer, bound: bool, octets: bytes) -> tuple[pdu.Pdu, str]:
    """The answer to malformed octets, and the address that they came from."""
    with raw(running, bound=bound) as plain:
        host, port = plain.getsockname()
        plain.sendall(octets)
        return read_pdu(plain), f"{host}:{port}"


@pytest.mark.parametrize(("bound", "octets", "line", "counter", "answer"), MALFORMED)
def test_what_is_malformed_is_answered_told_and_counted(
    running: RunningServer,
    bound: bool,
    octets: bytes,
    line: str,
    counter: str,
    answer: type[pdu.Pdu],
) -> None:
    other = raw(running)
    with capture_logs() as logs:
        answered, peer = sent(running, bound, octets)
        running.until(lambda: running.server.connections == 1)
    assert type(answered) is answer
    (entry,) = logs
    assert (entry["event"], entry["peer"]) == (line, peer)
    assert len(str(entry["reason"])) > 5
    told = bytes.fromhex(entry["octets"])
    assert octets.startswith(told)
    assert len(told) >= min(16, len(octets))
    counted: dict[str, Any] = running.server.metrics.snapshot()
    assert [counted.get(name, 0) for name in (BROKEN[1], UNBOUND[1], REFUSED[1])] == [
        int(name == counter) for name in (BROKEN[1], UNBOUND[1], REFUSED[1])
    ]
    other.sendall(request(1, b"others"))
    assert isinstance(read_pdu(other), pdu.Response)
    other.close()


def test_a_last_leg_that_fails_is_told_and_counted(running: RunningServer) -> None:
    negotiate = b"NTLMSSP\0\1\0\0\0" + bytes.fromhex("b78208e2") + bytes(24)
    leg = pdu.SecurityTrailer(10, 6, 0, negotiate)
    last = pdu.Auth3(call_id=0, auth=pdu.SecurityTrailer(10, 6, 0, b"NTLMSSP\0\3 secret")).pack()
    with raw(running, bound=False) as plain, capture_logs() as logs:
        plain.sendall(bind(auth=leg))
        assert isinstance(read_pdu(plain), pdu.BindAck)
        plain.sendall(last)
        running.until(lambda: logs != [])
    (entry,) = logs
    assert entry["event"] == "an authentication failed"
    assert last.startswith(bytes.fromhex(entry["octets"]))
    assert b"secret" not in bytes.fromhex(entry["octets"])
    assert running.server.metrics.snapshot()["rpc.authentications_failed"] == 1


def test_what_is_in_order_is_not_worth_a_line(running: RunningServer) -> None:
    with capture_logs() as logs, raw(running) as plain:
        plain.sendall(request(2, b"waits", 7) + pdu.CoCancel(call_id=7).pack())
        plain.sendall(pdu.Orphaned(call_id=7).pack() + request(1, b"x", 8) + alter())
        assert isinstance(read_pdu(plain), pdu.Response)
        plain.shutdown(1)
        read_all(plain)
    assert logs == []
