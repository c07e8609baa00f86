"""Questions and answers: the correlation finds the message that belongs to one's own question."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rpcqm.client import correlation, mq
from rpcqm.client.connection import Connections
from rpcqm.testing import PrivateQueueManager, private_queue_manager


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration="[storage]\nreserve = 1\n") as queue_manager:
        for name in ("questions", "answers", "mixed", "deep"):
            queue_manager.run("queue", "create", name)
        yield queue_manager


def test_the_message_with_the_correlation_is_received_and_the_others_stay(
    queue_manager: PrivateQueueManager,
) -> None:
    with mq.open("mixed", queue_manager) as queue:
        question = queue.send("question")
        queue.send("other")
        queue.send("answer", correlation_identifier=question)
        for wanted in (question, str(question)):
            found = queue.receive_one(timeout=0, correlation=wanted)
            assert found is not None
            assert found.value == "answer"
            found.release()
        assert [m.value for m in queue.receive(timeout=0, correlation=question)] == ["answer"]
        assert queue.receive_one(timeout=0, correlation=question) is None
        assert [message.value for message in queue.browse()] == ["question", "other"]


def test_a_deep_queue_is_looked_through_by_its_queue_manager(
    queue_manager: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the answer is there or not, few messages are looked at with a call for each."""
    asked: list[str] = []
    call = Connections.call

    def counted(self: Connections, request: Any, *more: Any) -> Any:
        asked.append(request.operation.name)
        return call(self, request, *more)

    monkeypatch.setattr(Connections, "call", counted)
    with mq.open("deep", queue_manager) as queue:
        question = queue.send("question", recoverable=False)
        for number in range(2 * correlation.WALKED):
            queue.send(f"{number}", recoverable=False)
        queue.send("answer", correlation_identifier=question, recoverable=False)
        asked.clear()
        found = queue.receive_one(timeout=0, correlation=question)
        assert found is not None
        assert found.value == "answer"
        found.acknowledge()
        assert queue.receive_one(timeout=0, correlation=question) is None
    assert asked.count("R_SearchMessages") == 2
    assert asked.count("R_StartReceive") == 2 * correlation.WALKED + 2


def test_an_answer_of_a_higher_priority_is_found_when_it_arrives(
    queue_manager: PrivateQueueManager,
) -> None:
    with mq.open("mixed", queue_manager) as queue, mq.open("mixed", queue_manager) as other:
        queue.send("in the way", priority=3)
        question = queue.send("question", priority=0)
        sending = threading.Timer(
            0.2, other.send, ["answer"], {"correlation_identifier": question, "priority": 7}
        )
        sending.start()
        found = queue.receive_one(timeout=20, correlation=question)
        sending.join()
        assert found is not None
        assert found.value == "answer"


def test_a_request_gets_its_answer_or_is_told_that_none_came(
    queue_manager: PrivateQueueManager,
) -> None:
    def answer() -> None:
        with mq.open("questions", queue_manager) as questions:
            for question in questions.receive(timeout=20, limit=1):
                with mq.open(question.response_queue, queue_manager) as answers:
                    answers.send("not yours")
                    answers.send(question.value.upper(), correlation_identifier=question.identifier)

    with mq.open("answers", queue_manager) as answers:
        answers.send("of yesterday")
    program = threading.Thread(target=answer)
    program.start()
    reply = mq.request("questions", "how many", "answers", timeout=20, server=queue_manager)
    program.join()
    assert reply.value == "HOW MANY"
    with pytest.raises(TimeoutError, match="no answer to"):
        mq.request("questions", "again", "answers", timeout=0.1, server=queue_manager)
