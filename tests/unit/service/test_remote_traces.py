"""Whom a queue manager asks about messages, and how often."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.client.target import RemoteServer
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.rpcqm_trace import WAY_EVENT, R_GetWayResponse
from rpcqm.service.remote_traces import ASKED_AGAIN, LONGEST_TEXT, RemoteTraces, known_of
from tests.support.clock import SimulatedClock


class Queues:
    """Counts what is asked, and answers nothing."""

    def __init__(self) -> None:
        self.asked: list[Coroutine[Any, Any, Any]] = []

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Completion[Any]:
        self.asked.append(coroutine)
        return Completion()

    def close(self) -> None:
        for each in self.asked:
            each.close()


def message(number: int) -> MessageIdentifier:
    return MessageIdentifier(UUID(int=1), number)


def made(queues: Queues, clock: SimulatedClock) -> RemoteTraces:
    return RemoteTraces(queues, clock, {"shop"}.__contains__, RemoteServer)  # type: ignore[arg-type]


@pytest.mark.bound("traces.answers")
def test_an_answer_counts_for_a_while_and_so_many_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rpcqm.service.remote_traces.MOST_ANSWERS", 2)
    queues, clock = Queues(), SimulatedClock()
    traces = made(queues, clock)
    first = traces.known("shop", message(1))
    assert traces.known("SHOP", message(1)) is first
    clock.advance(ASKED_AGAIN - 1)
    assert traces.known("shop", message(1)) is first
    clock.advance(1)
    again = traces.known("shop", message(1))
    assert again is not first
    for number in (2, 3):
        traces.known("shop", message(number))
    assert traces.known("shop", message(1)) is not again
    assert len(queues.asked) == 5
    queues.close()


def test_nobody_is_asked_whom_the_settings_do_not_name() -> None:
    queues = Queues()
    made(queues, SimulatedClock()).known("elsewhere", message(1))
    with pytest.raises(MQError) as refused:
        asyncio.run(queues.asked[0])
    assert refused.value.status is HResult.MQ_ERROR_MACHINE_NOT_FOUND


def test_an_answer_that_means_nothing_is_refused() -> None:
    event = WAY_EVENT(Happening=99)
    answer = R_GetWayResponse(
        pQueueManager=UUID(int=2), pcEvents=1, ppEvents=[event], pcPlaces=0, result=0
    )
    with pytest.raises(DecodeError, match="99"):
        known_of(answer)


@pytest.mark.bound("traces.longest_text")
def test_a_text_of_an_answer_has_so_many_characters_and_no_more() -> None:
    for length in (LONGEST_TEXT, LONGEST_TEXT + 1):
        event = WAY_EVENT(Time=1, LookupId=1, Happening=1, pwszQueue="x" * length)
        answer = R_GetWayResponse(
            pQueueManager=UUID(int=2), pcEvents=1, ppEvents=[event], pcPlaces=0, result=0
        )
        if length > LONGEST_TEXT:
            with pytest.raises(DecodeError, match="pwszQueue"):
                known_of(answer)
        else:
            assert len(known_of(answer).events[0].queue) == length
