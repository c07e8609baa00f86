"""Queues of other queue managers that clients of COM read through this one (G86)."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rpcqm.base.errors import MQError
from rpcqm.base.identity import Identity, authenticated
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import QueueAccessType, QueueShareMode
from rpcqm.dcom.com_object import ComCall
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.opening import _open_elsewhere
from tests.support.rpc.callers import ALICE

NAME = FormatName.parse(r"DIRECT=OS:other\private$\orders")
PEEK, RECEIVE = QueueAccessType.PEEK_ACCESS, QueueAccessType.RECEIVE_ACCESS
NONE, DENY = QueueShareMode.DENY_NONE, QueueShareMode.DENY_RECEIVE
LOOKER = authenticated("eve", "S-1-5-21-1-2-3-1002", "S-1-5-32-544", read_only=True)


def opened(who: Identity, access: int, share_mode: int) -> list[tuple[bool, bool]]:
    """What the other queue manager is asked for: to receive, and exclusively."""
    asked: list[tuple[bool, bool]] = []

    async def open_there(
        computer: str, name: FormatName, receiving: bool, exclusive: bool, asker: str
    ) -> Any:
        asked.append((receiving, exclusive))

    machine = SimpleNamespace(
        directory=SimpleNamespace(get_queue_path=lambda _: (r"other\private$\orders", "other")),
        opening=SimpleNamespace(descriptors={}),
        openers={},
        open_elsewhere=open_there,
    )
    call = SimpleNamespace(identity=who)
    asyncio.run(
        _open_elsewhere(
            cast("Machine", machine), cast("ComCall", call), NAME, int(access), int(share_mode)
        )
    )
    return asked


@pytest.mark.parametrize(("access", "share_mode"), [(RECEIVE, NONE), (PEEK, DENY)])
def test_who_may_only_look_borrows_no_right_of_ours_elsewhere(access: int, share_mode: int) -> None:
    """The other queue manager knows the account of this one, which may receive (G725)."""
    with pytest.raises(MQError, match="MQ_ERROR_ACCESS_DENIED"):
        opened(LOOKER, access, share_mode)
    assert opened(ALICE, access, share_mode) == [(access == RECEIVE, share_mode == DENY)]
    assert opened(LOOKER, PEEK, NONE) == [(False, False)]
