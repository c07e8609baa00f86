"""What everybody can see of the two queue managers, and that it is the same."""

from collections.abc import Callable
from typing import Any

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import MQError
from rpcqm.codec.packet.types import MessageIdentifier
from tests.model.choices import Dice, acknowledged, expected_in, told
from tests.model.elements import MQueue, Outcome, Refused
from tests.model.naive import NaiveQueueManager
from tests.support.queue_manager import RunningQueueManager


class Comparing:
    """Both queue managers, with what is known of the messages that were sent."""

    qm: RunningQueueManager
    naive: NaiveQueueManager
    calls: list[tuple[Completion[Any], Outcome]]
    messages: dict[bytes, Message]
    bodies: dict[MessageIdentifier, bytes]

    # Doing the same to both

    def both(self, real: Callable[[], Any], naive: Callable[[], Any]) -> tuple[Any, Any] | None:
        """Results of both, or None when both refuse for the same reason."""
        refused = expected = None
        result = wanted = None
        try:
            result = real()
            if isinstance(result, Completion) and result.error is not None:
                result.result()
        except MQError as error:
            refused = error.status.name
        try:
            wanted = naive()
        except Refused as refusal:
            expected = str(refusal)
        assert refused == expected
        return None if refused else (result, wanted)

    def call(self, real: Callable[[], Completion[Any]], naive: Callable[[], Outcome]) -> None:
        """A call that may be answered later."""
        answers = self.both(real, naive)
        if answers is not None:
            self.calls.append(answers)

    def _body_in(self, queue: MQueue | None, dice: Dice) -> bytes | None:
        """A message of the queue, mostly; else any whose identifier is known."""
        known = sorted(b for b in self.naive.known if self.messages[b].lookup_identifier)
        here = [] if queue is None else [m.body for m in queue.ordered() if m.body in known]
        options = known if dice.one_in(5) or not here else here
        return dice.of(options) if options else None

    # Looking at both

    def real_queue(self, naive: MQueue) -> Queue | None:
        """The real one of a naive queue; None for a subqueue that was dropped."""
        if naive.is_system:
            return self.qm.engine.registry.find_by_path(rf".\{naive.name}")
        return self.qm.engine.registry.find_by_path(rf".\private$\{naive.name}")

    def every_call_is_answered_alike(self) -> None:
        for completion, outcome in self.calls:
            assert told(completion) == outcome.value
        self.calls = [call for call in self.calls if not call[0].done]

    def every_queue_holds_the_same(self) -> None:
        for naive in self.naive.all_queues():
            real = self.real_queue(naive)
            if real is None:
                assert naive.parent is not None
                assert not naive.messages
            else:
                contents, expected = self._contents(real, naive), expected_in(naive)
                if naive.is_system:  # what one commit adds is in no order with another
                    contents.sort()
                    expected.sort()
                assert contents == expected

    def every_acknowledgement_is_there(self) -> None:
        queue = self.qm.find(r"private$\acks")
        index = self.qm.store.index(queue.queue_id)
        found = [
            acknowledged(self.qm.engine.positions.message_at(queue, key), self.bodies)
            for key in list(index.keys())
        ]
        assert sorted(found) == sorted(ack[:2] for ack in self.naive.acknowledgements)

    def _contents(self, queue: Queue, naive: MQueue) -> list[tuple[bytes, str, int, int, int]]:
        index = self.qm.store.index(queue.queue_id)
        found = []
        for key in list(index.keys()):
            message = self.qm.engine.positions.message_at(queue, key)
            if not naive.is_journal:
                self.messages[message.attributes.body].lookup_identifier = key
            state = index.state(key).name.replace("_", " ").lower()
            moves = message.move_count, message.last_move_time
            found.append((message.attributes.body, state, message.abort_count, *moves))
        return found

    def quotas_count_the_same(self) -> None:
        for naive in self.naive.queues.values():
            real = self.real_queue(naive)
            assert real is not None
            assert self.qm.store.index(real.queue_id).account.bytes == naive.charged
