"""What the requests that come most often do, in as few steps as that takes.

`send_message`, `receive_messages` and `complete_lease` stay the definition of what they do, and do
whatever is unusual.
"""

from functools import partial

from rpcqm.api import messages, models
from rpcqm.api.asked import Asked, settled
from rpcqm.api.routes import Route
from rpcqm.base.identity import Identity
from rpcqm.fast.doors.api_requests import OWN, Known, Quick
from rpcqm.fast.formats.received_json import ReceivedTexts, told_carefully
from rpcqm.operations.messages import MessageOperations, RepeatedReceive, RepeatedSend


def known_of(asked: Asked, route: Route, texts: ReceivedTexts) -> Known:
    """What is known of requests like one that has come."""
    quick, status = _quick_of(asked, route, texts)
    headers = {name: value for name, value in asked.headers.items() if name not in OWN}
    return Known(route, asked.path, asked.parameters, headers, quick, status)


def _quick_of(asked: Asked, route: Route, texts: ReceivedTexts) -> tuple[Quick | None, int]:
    operations = asked.operations.messages
    if route.function is messages.send_message:
        again = messages.repeated_send(asked)
        return (None, 201) if again is None else (partial(_send, operations, again), 201)
    if route.function is messages.complete_lease:
        return partial(_complete, operations), 204
    if route.function is messages.receive_messages:
        wanted: models.Receive = asked.parameters
        received = RepeatedReceive.of(asked.queue, wanted.lease * 1000)
        if received is not None and wanted.max == 1 and wanted.correlation_id is None:
            return partial(_receive, operations, texts, received), 200
    return None, 200


async def _send(
    operations: MessageOperations, again: RepeatedSend, identity: Identity, body: bytes, _: str
) -> bytes:
    (identifier,) = await settled(operations.send_again(identity, again, body))
    return messages.told_identifier(identifier)


async def _receive(
    operations: MessageOperations,
    texts: ReceivedTexts,
    again: RepeatedReceive,
    identity: Identity,
    _: bytes,
    __: str,
) -> bytes | None:
    taken = operations.receive_again(identity, again)
    if taken is None:
        return None
    told = texts.answer(taken, operations.answered)
    operations.compare_answer(partial(told_carefully, taken), told)
    return told


async def _complete(
    operations: MessageOperations, identity: Identity, _: bytes, lease: str
) -> bytes:
    await settled(operations.complete_one(identity, lease))
    return b""
