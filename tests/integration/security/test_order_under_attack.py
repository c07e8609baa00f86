"""Requests of one sealed association in an order that no decent client has."""

from collections.abc import Iterator
from typing import Any

import pytest

from rpcqm.base.errors import FaultStatus
from rpcqm.codec.interface import TransferSyntax
from rpcqm.rpc import pdu
from rpcqm.rpc.constants import PduType
from rpcqm.rpc.fragment import fragments
from rpcqm.rpc.pdu import REQUEST_BODY, SyntaxId
from rpcqm.testing import PrivateQueueManager
from tests.integration.security.conftest import Connect, bodies, fill
from tests.support.rpc.callers import Fault, PendingCall
from tests.support.rpc.network_caller import NetworkCaller
from tests.support.rpc.remote_reader import INFINITE, Reader, body_of

SHORT = 80
"""Octets of a fragment: a header, a trailer, and a part of what most requests have."""


@pytest.fixture
def alice(connect: Connect) -> NetworkCaller:
    """Alice, who has logged on and sealed one call."""
    caller = connect("remoteread", user="alice")
    caller.call("R_GetServerPort")
    return caller


@pytest.fixture
def reader(alice: NetworkCaller) -> Reader:
    return Reader(alice.caller)


@pytest.fixture
def handle(reader: Reader, queue: str) -> bytes:
    """The queue with one message, opened for receiving."""
    return reader.open(f"DIRECT=OS:.\\private$\\{queue}")


def pieces(caller: NetworkCaller, call_id: int, operation: str, **fields: Any) -> Iterator[bytes]:
    """A request in many fragments, each of them sealed when it is taken."""
    interface, found = caller.find(operation)
    context = caller.client.context_of(SyntaxId(interface.uuid, *interface.version))
    assert context is not None
    identifier = context[0]
    stub = found.encode_request(TransferSyntax.NDR, found.request_class(**fields))
    yield from fragments(
        caller.security,
        PduType.request,
        call_id,
        stub,
        lambda rest: REQUEST_BODY.pack(rest, identifier, found.opnum),
        SHORT,
    )


def await_answer(caller: NetworkCaller, call: PendingCall) -> Any:
    """Wait for the answer of one call, while others wait on."""
    while call.call_id in caller.pending:
        caller._receive()
    return call.result()


def opening(queue: str) -> dict[str, Any]:
    return Reader._opening(f"DIRECT=OS:.\\private$\\{queue}", 1, 0, 1)


def test_a_request_in_pieces_is_carried_out(
    alice: NetworkCaller, handle: bytes, queue_manager: PrivateQueueManager, queue: str
) -> None:
    """Without this the refusal below would prove nothing."""
    whole = list(pieces(alice, 1000, "R_OpenQueue", **opening(queue)))
    assert len(whole) > 2
    assert isinstance(alice.answer_to(b"".join(whole)), pdu.Response)
    octets = b"".join(pieces(alice, 1001, "R_PurgeQueue", phContext=handle))
    assert isinstance(alice.answer_to(octets), pdu.Response)
    assert bodies(queue_manager, queue) == []


def test_a_request_within_another_one_is_not_carried_out(
    alice: NetworkCaller, handle: bytes, queue_manager: PrivateQueueManager, queue: str
) -> None:
    outer = pieces(alice, 1000, "R_OpenQueue", **opening(queue))
    inner = pieces(alice, 1001, "R_PurgeQueue", phContext=handle)
    answer = alice.answer_to(next(outer) + b"".join(inner) + b"".join(outer))
    assert isinstance(answer, pdu.Fault)
    assert answer.status == FaultStatus.nca_s_proto_error
    assert alice.ended
    assert bodies(queue_manager, queue) == [b"secret"]


def test_a_handle_is_over_for_what_follows_its_closing_in_one_segment(
    alice: NetworkCaller, handle: bytes, queue_manager: PrivateQueueManager, queue: str
) -> None:
    closing, first = alice.made("R_CloseQueue", pphContext=handle)
    purging, second = alice.made("R_PurgeQueue", phContext=handle)
    again, third = alice.made("R_CloseQueue", pphContext=handle)
    alice.plain.sendall(first + second + third)
    alice.settle()
    assert closing.result().result == 0
    for call in (purging, again):
        with pytest.raises(Fault) as caught:
            call.result()
        assert caught.value.status == FaultStatus.nca_s_fault_context_mismatch
    assert bodies(queue_manager, queue) == [b"secret"]


def test_a_read_that_was_given_up_takes_no_message(
    alice: NetworkCaller,
    reader: Reader,
    handle: bytes,
    queue_manager: PrivateQueueManager,
    queue: str,
) -> None:
    assert reader.receive(handle) == b"secret"
    waiting = reader.start(handle, timeout=INFINITE)
    alice.client.orphan(waiting.call_id)
    alice.pending.pop(waiting.call_id)
    alice.plain.sendall(alice.client.data_to_send())
    alice.call("R_GetServerPort")
    fill(queue_manager, queue)
    assert reader.receive(handle) == b"secret"
    assert bodies(queue_manager, queue) == []


@pytest.mark.parametrize("kind", [pdu.Orphaned, pdu.CoCancel])
def test_who_cannot_seal_gives_no_read_up(
    alice: NetworkCaller,
    reader: Reader,
    handle: bytes,
    queue_manager: PrivateQueueManager,
    queue: str,
    kind: type[pdu.Pdu],
) -> None:
    """Somebody in the middle knows the numbers of calls."""
    assert reader.receive(handle) == b"secret"
    waiting = reader.start(handle, timeout=INFINITE, request_id=9)
    alice.plain.sendall(kind(call_id=waiting.call_id).pack())
    await_answer(alice, alice.send("R_GetServerPort"))
    fill(queue_manager, queue)
    assert body_of(await_answer(alice, waiting)) == b"secret"
    assert reader.end(handle, 9) == "MQ_OK"


def test_giving_up_what_has_not_begun_or_is_over_ends_nothing(
    alice: NetworkCaller, reader: Reader, handle: bytes
) -> None:
    """Sealed by alice herself, in every order."""
    for call_id in (0, 1, 500, 0x7FFFFFFF, 0xFFFFFFFF):
        for kind in (PduType.orphaned, PduType.co_cancel):
            alice.plain.sendall(alice.security.protect(kind, 3, call_id, b"", b""))
    assert reader.receive(handle) == b"secret"
