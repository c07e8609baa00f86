"""A server that says of every room that it is too small is not asked for ever (R30)."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rpcqm.base.errors import DecodeError, HResult
from rpcqm.client.dependent import DependentQueue
from rpcqm.codec.names.format_name import FormatName
from tests.support.rpc.scripted import Scripted

NAME = FormatName.parse(r"DIRECT=OS:mail\private$\orders")
LARGE = 0x7FFF_FFFF


class Insatiable(Scripted):
    """Says of every room that it is too small, and asks for `factor` times as much."""

    def __init__(self, factor: int) -> None:
        super().__init__()
        self._factor, self._asked = factor, 5000

    async def call(self, request: Any, *_: Any, **__: Any) -> Any:
        self.calls.append((request.operation.name, request))
        self._asked = min(self._asked * self._factor, LARGE)
        lengths = {f"pul{name}FormatNameLenProp": 0 for name in ("Response", "Admin", "Dest")}
        names = SimpleNamespace(value=SimpleNamespace(**lengths))
        old = SimpleNamespace(
            pBodySize=self._asked, pMsgExtensionSize=0, pulTitleBufferSizeInWCHARs=0, u=names
        )
        too_small = HResult.MQ_ERROR_BUFFER_OVERFLOW
        if request.operation.name == "rpc_ACHandleToFormatName":
            too_small = HResult.MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL
        return SimpleNamespace(
            result=too_small, pdwLength=self._asked, ptb=SimpleNamespace(old=old)
        )


@pytest.mark.parametrize(("factor", "calls"), [(1, 2), (2, 8), (100, 2), (1 << 20, 1)])
def test_a_read_ends_after_a_few_attempts_and_never_makes_room_for_what_cannot_be(
    factor: int, calls: int
) -> None:
    server = Insatiable(factor)
    queue = DependentQueue(server, NAME, lambda _: server)
    with pytest.raises(DecodeError):
        asyncio.run(queue.peek(0))
    assert len(server.calls) == calls


@pytest.mark.parametrize(("factor", "calls"), [(1, 2), (2, 8), (100, 2), (1 << 20, 1)])
def test_so_does_the_question_for_a_name(factor: int, calls: int) -> None:
    server = Insatiable(factor)
    queue = DependentQueue(server, NAME, lambda _: server)
    with pytest.raises(DecodeError):
        asyncio.run(queue.format_name())
    assert len(server.calls) == calls
    assert all(len(request.lpwcsFormatName) <= 0x0100_0000 for _, request in server.calls)
