"""What a server answers in bulk is worth no more than the client has asked for."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.client.bulk_session import BulkSession
from rpcqm.client.connection import Connections
from rpcqm.codec.types.rpcqm_bulk import LOOKUP_RANGE, MOST_BULK_MESSAGES, R_BulkListResponse


class Server:
    """Answers every list of messages with the same ranges."""

    def __init__(self, *ranges: LOOKUP_RANGE, following: int = 0) -> None:
        self._ranges, self._following = ranges, following

    async def call(self, request: object) -> Any:
        return R_BulkListResponse(
            pcRanges=len(self._ranges),
            ppRanges=list(self._ranges),
            pNext=self._following,
            result=0,
        )


def listed(server: Server) -> Sequence[int]:
    async def read() -> list[int]:
        session = BulkSession(cast("Connections", server), b"handle")
        return [key async for key in session.visible()]

    return asyncio.run(read())


def test_as_many_messages_are_listed_as_an_answer_has_room_for() -> None:
    assert len(listed(Server(LOOKUP_RANGE(First=1, Count=MOST_BULK_MESSAGES)))) == 2048


@pytest.mark.parametrize(
    "server",
    [
        Server(LOOKUP_RANGE(First=1, Count=0xFFFF_FFFF)),
        Server(*[LOOKUP_RANGE(First=1, Count=MOST_BULK_MESSAGES)] * 2),
        Server(following=0xFFFF_FFFF_FFFF_FFFF),
    ],
    ids=["long range", "many ranges", "no end"],
)
def test_an_answer_of_some_octets_is_no_list_without_an_end(server: Server) -> None:
    with pytest.raises(DecodeError):
        listed(server)
