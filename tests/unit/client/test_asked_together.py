"""Lists of thousands of queues do not wait for one answer after the other (S7)."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.management import ManagementClient
from rpcqm.client.outgoing_queues import PROPERTIES
from rpcqm.client.together import IN_FLIGHT
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.properties import NULL_VARIANT, ManagementQueueProperty, PropVariant, VarType
from rpcqm.codec.property_values import ManagementQueueLocation
from rpcqm.codec.propvariant import propvariant_of
from tests.support.rpc.scripted import Scripted

QUEUES = 500
NAMES = [FormatName.parse(rf"DIRECT=OS:host{number}\private$\orders") for number in range(QUEUES)]
GONE = {3, 77}


class Slow(Scripted):
    """Answers when nobody has asked more for a while; `most` is how many have waited at once."""

    def __init__(self, location: str, fails_at: int | None = None) -> None:
        super().__init__()
        self.asked = self.waiting = self.most = 0
        self._location, self._fails_at = location, fails_at

    async def call(self, request: Any, *rest: Any, **more: Any) -> Any:
        number, self.asked = self.asked, self.asked + 1
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            for _ in range(3 + number % 5):
                await asyncio.sleep(0)
        finally:
            self.waiting -= 1
        if number == self._fails_at:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED)
        if number in GONE:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND)
        return SimpleNamespace(apVar=[self._value(each, number) for each in request.aProp])

    def _value(self, wanted: int, number: int) -> Any:
        properties = ManagementQueueProperty
        texts = {
            properties.PROPID_MGMT_QUEUE_FORMATNAME: str(NAMES[number]),
            properties.PROPID_MGMT_QUEUE_LOCATION: self._location,
        }
        if wanted not in texts:
            return propvariant_of(NULL_VARIANT)
        return propvariant_of(PropVariant(VarType.VT_LPWSTR, texts[properties(wanted)]))


def left() -> list[str]:
    return [str(name) for number, name in enumerate(NAMES) if number not in GONE]


def test_outgoing_queues_are_asked_for_together_and_told_in_order() -> None:
    server = Slow(ManagementQueueLocation.MGMT_QUEUE_REMOTE_LOCATION)
    assert PROPERTIES["location"] == ManagementQueueProperty.PROPID_MGMT_QUEUE_LOCATION
    found = asyncio.run(ManagementClient(server).outgoing_queues(NAMES))
    assert [queue.format_name for queue in found] == left()
    assert (server.asked, server.most) == (QUEUES, IN_FLIGHT)


def test_so_are_queues_here() -> None:
    server = Slow(ManagementQueueLocation.MGMT_QUEUE_LOCAL_LOCATION)
    found = asyncio.run(ManagementClient(server).queues_information(NAMES))
    assert [queue.format_name for queue in found] == left()
    assert (server.asked, server.most) == (QUEUES, IN_FLIGHT)


def test_nothing_is_on_its_way_any_more_after_a_refusal() -> None:
    server = Slow(ManagementQueueLocation.MGMT_QUEUE_REMOTE_LOCATION, fails_at=100)

    async def ask() -> int:
        with pytest.raises(MQError, match="ACCESS_DENIED"):
            await ManagementClient(server).outgoing_queues(NAMES)
        return server.waiting

    assert asyncio.run(ask()) == 0
    assert server.asked < 100 + 2 * IN_FLIGHT
