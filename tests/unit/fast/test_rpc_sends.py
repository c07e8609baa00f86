"""What templates carry out has the outcome of the careful path (docs/request-templates.md)."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.types.qmcomm import CACTransferBufferV1_Send
from tests.support.fast.template_twins import Half, Twins, twins
from tests.support.queue_manager import MEMORY

RESPONSES = (
    None,
    r"DIRECT=OS:.\private$\answers",
    r"DIRECT=TCP:192.0.2.9\private$\answers",
)
ADMINISTRATIONS = (
    r"DIRECT=OS:.\private$\administration",
    r"DIRECT=OS:.\private$\orders",
    r"DIRECT=OS:.\private$\nowhere",
    r"DIRECT=TCP:192.0.2.9\private$\administration",
    r"DIRECT=HTTP://192.0.2.9/msmq/private$/administration",
)
LABELS = st.sampled_from(
    ["", "a", "order", "\0", "x\0y", "é" * 40, "l" * 249, "l" * 250, "l" * 400]
)


@st.composite
def messages(draw: Any) -> dict[str, Any]:
    """The fields of a buffer that is sent, now and then of an unusual one."""
    fields: dict[str, Any] = {"pDelivery": draw(st.sampled_from([1, 1, 1, 0]))}
    if draw(st.booleans()):
        fields["pPriority"] = draw(st.sampled_from([0, 3, 7, 8]))
    if draw(st.booleans()):
        title = draw(LABELS) + "\0"
        fields |= {"ppTitle": title, "ulTitleBufferSizeInWCHARs": len(title)}
    if draw(st.booleans()):
        fields["ppCorrelationID"] = draw(st.binary(min_size=20, max_size=20))
    if draw(st.booleans()):
        fields["pApplicationTag"] = draw(st.integers(0, 0xFFFF_FFFF))
    fields["ulRelativeTimeToLive"] = draw(st.sampled_from([0xFFFF_FFFF, 60, 1, 0]))
    fields["ulAbsoluteTimeToQueue"] = draw(st.sampled_from([0, 60, 0xFFFF_FFFF, 2_000_000_000]))
    if draw(st.integers(0, 9)) == 0:
        fields["pAuditing"] = draw(st.integers(0, 3))
    response = draw(st.sampled_from(RESPONSES))
    administration = draw(st.sampled_from([None, *ADMINISTRATIONS]))
    if draw(st.booleans()):
        fields["pAcknowledge"] = draw(st.sampled_from([1, 2, 4, 5, 8, 15]))
    if response is not None or administration is not None:
        fields["send"] = named(response, administration)
    return fields


def named(response: str | None, administration: str | None) -> CACTransferBufferV1_Send:
    """What is sent to a queue, with the names of others."""
    answers, told = (
        None if name is None else queue_format_of(FormatName.parse(name))
        for name in (response, administration)
    )
    return CACTransferBufferV1_Send(pResponseQueueFormat=answers, pAdminQueueFormat=told)


def asking(administration: str, acknowledge: int = 1, **fields: Any) -> dict[str, Any]:
    """What asks for acknowledgements."""
    return {"send": named(None, administration), "pAcknowledge": acknowledge, **fields}


OVER = {"ulRelativeTimeToLive": 0, "ulAbsoluteTimeToQueue": 0}
"""Times of a message that expires as it comes."""
BODIES = st.binary(max_size=40) | st.sampled_from([bytes(1023), bytes(5000)])
SENDS = st.tuples(st.just("send"), st.integers(0, 1), BODIES, messages())
OTHERS = st.sampled_from(
    [
        ("read", 0),
        ("read", 1),
        ("end", 1),
        ("end", 2),
        ("purge",),
        ("reopen", 0),
        ("reopen", 1),
        ("quota", 2),
        ("quota", 0xFFFF_FFFF),
        ("trail",),
        ("wait", 70_000),
    ]
)
TURNS = st.lists(
    st.lists(st.one_of(SENDS, SENDS, SENDS, OTHERS), min_size=1, max_size=8), min_size=1, max_size=8
)


class Story:
    """What one half is asked for; reads are numbered alike in both."""

    def __init__(self, half: Half) -> None:
        self.half = half
        self.reads: list[int] = []
        self.requests = 1000
        self.sender = 0

    def turn(self, actions: list[Any]) -> list[object]:
        calls = []
        for name, *arguments in actions:
            call = getattr(self, name)(*arguments)
            if call is not None:
                calls.append(call)
        return self.half.outcomes(calls)

    def send(self, sender: int, body: bytes, fields: dict[str, Any]) -> Any:
        if sender != self.sender:  # those of several handles may come in another order (G316)
            self.end_turn()
        self.sender = sender
        return self.half.senders[sender].start_send(self.half.handles[sender], body, **fields)

    def read(self, again: int) -> Any:
        self.requests += 1
        self.reads.append(self.requests)
        return self.half.reader.start(self.half.reading, request_id=self.requests)

    def end(self, acknowledgement: int) -> Any:
        if not self.reads:
            return None
        return self.half.reader.caller.send(
            "R_EndReceive",
            phContext=self.half.reading,
            dwAck=acknowledgement,
            dwRequestId=self.reads.pop(0),
        )

    def end_turn(self) -> None:
        """What changes within a turn, sends of one handle may see differently (G315)."""
        self.half.qm.settle()

    def purge(self) -> Any:
        return self.half.reader.caller.send("R_PurgeQueue", phContext=self.half.reading)

    def reopen(self, sender: int) -> None:
        self.end_turn()
        client = self.half.senders[sender]
        client.caller.send("rpc_ACCloseHandle", phQueue=self.half.handles[sender])
        self.half.handles[sender] = client.open(self.half.qm.find(), 2)[0]

    def quota(self, kilobytes: int) -> None:
        self.end_turn()
        self.half.qm.find().quota = kilobytes

    def trail(self) -> None:
        self.end_turn()
        queue = self.half.qm.find()
        self.half.qm.engine.trail.switch(queue, not queue.trail)

    def wait(self, milliseconds: int) -> None:
        self.end_turn()
        self.half.qm.advance(milliseconds)


def tell(both: Twins, turns: list[list[Any]]) -> None:
    stories = {half: Story(half) for half in both.halves}
    for actions in turns:
        both.do(partial(_turn_of, stories, actions))
        both.check()


def _turn_of(stories: dict[Half, Story], actions: list[Any], half: Half) -> list[object]:
    return stories[half].turn(actions)


@pytest.mark.parametrize("syntax", list(TransferSyntax), ids=lambda each: each.name)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns=TURNS, usual=messages())
@example([[("send", 1, b"early", {}), ("wait", 70_000)], [("read", 0)]], {})
@example([[*[("send", 1, bytes(5000), {})] * 2, ("quota", 2), ("send", 1, b"", {})]], {})
@example([[*[("send", 1, b"", {})] * 3, ("trail",), *[("send", 1, b"", {})] * 3]], {})
@example([[*[("send", 1, b"", {})] * 3, ("reopen", 1), *[("send", 1, b"", {})] * 3]], {})
@example([[("send", 0, b"", {"ulRelativeTimeToLive": 60})] * 3] * 3, {})
@example([[("send", 0, b"", asking(ADMINISTRATIONS[0]))] * 3] * 3, {})
@example([[("send", 0, b"", asking(ADMINISTRATIONS[1], pAuditing=2))] * 3] * 3, {})
@example([[("send", 0, b"", asking(ADMINISTRATIONS[0], 8, **OVER))] * 3] * 3, {})
@example([[("send", 0, b"", asking(ADMINISTRATIONS[3], 15))] * 3] * 3, {})
@example([[("send", 0, b"", asking(ADMINISTRATIONS[4]))] * 3] * 3, {})
@example(
    [
        *[[("send", 1, bytes(600), asking(ADMINISTRATIONS[1]))]] * 3,
        [("quota", 8), *[("send", 1, bytes(600), asking(ADMINISTRATIONS[1]))] * 4],
    ],
    {},
)
def test_both_ways_have_one_outcome(
    syntax: TransferSyntax, turns: list[list[Any]], usual: dict[str, Any]
) -> None:
    learning = [[("send", 0, b"body", usual)]] * 3
    with TemporaryDirectory(dir=MEMORY) as directory, twins(Path(directory), syntax) as both:
        tell(both, [*learning, *turns, *learning])
