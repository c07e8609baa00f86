"""A seed's story: who sends what to whom, who reads, and what goes wrong meanwhile."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import MQError
from rpcqm.codec.types.mqvalues import INFINITE, QueueAccessType, QueueShareMode
from tests.support.binary.binary_network import Faults, Node
from tests.support.network.network_ledger import DEATH, MACHINE, Ledger, Letter, Reading, Trouble
from tests.support.network.network_world import (
    MACHINES,
    REPORTS,
    Destination,
    World,
    queue_of,
)

FAULTS = Faults(
    cut=0.01,
    corrupt=0.005,
    refuse=0.1,
    linger=0.003,
    stall=0.003,
    replay=0.05,
    late=60_000,
    delay=20,
)
FORGETFUL = 0.3
ENDS = ("alice", "bob", "carl")
PAUSES = (0, 0, 1, 5, 100, 700)
TIMES = (*[None] * 12, 1, 20, 120)
SCOPES = {
    "alice": (MACHINE, "admin", "reports", "system$;journal", "system$;deadxact"),
    "ra": (MACHINE, "system$;deadletter"),
    "rb": (MACHINE, "system$;deadletter"),
    "bob": (MACHINE, "tight", "narrow", "tight;journal", "system$;deadletter"),
    "carl": (MACHINE, "ledger", "box", "box;journal"),
}
"""What can be full where."""
_ALL_ACKNOWLEDGEMENTS = 0x0F
_HOURS = 72


class Story:
    """Plays one seed and keeps the ledger of it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.world = World(directory, seed, FAULTS, FORGETFUL)
        self.ledger = Ledger()
        self.happened: Counter[str] = Counter()
        self._dice = self.world.random
        for node in self.world.nodes.values():
            node.started_hooks.append(partial(self._squeeze_again, node))

    @property
    def now(self) -> int:
        return self.world.clock.now()

    def play(self, messages: int) -> None:
        """Send that many, while everything happens that can."""
        acts: tuple[tuple[float, Callable[[], None]], ...] = (
            (0.04, self._strike),
            (0.03, self._squeeze),
            (0.02, self._lose_an_address),
            (0.01, self.wall),
            (0.5, self.read),
        )
        while sum(not each.refused for each in self.ledger.letters.values()) < messages:
            self.send()
            for likely, act in acts:
                if self._dice.random() < likely:
                    act()
            self.world.advance(self._dice.choice(PAUSES))

    def end(self) -> None:
        """Mend everything, let everybody read, and wait until nothing is on its way."""
        self.world.faults = Faults()
        self.world.forgetful = 0.0
        self.world.advance(200_000)
        for _ in range(_HOURS * 60):
            while self._read_once(certain=True):
                pass
            if not self.world.unsent():
                break
            self.world.advance(60_000)
        self.world.advance(60_000)
        self.happened["lost order acknowledgements"] = self.world.forgotten

    # Sending

    def send(self) -> None:
        """Somebody sends the next message, unless it is dead."""
        number = len(self.ledger.letters)
        source = self.world.nodes[self._dice.choices(ENDS, (8, 1, 1))[0]]
        if not source.alive:
            return
        letter = self._letter(number, source.name)
        self.ledger.letters[number] = letter
        lives = source.lives
        try:
            letter.identifier = source.send(
                ",".join(self._name(source, path) for path in letter.targets),
                letter.body,
                letter.transactional,
                **self._properties(letter),
            )
        except MQError:
            letter.refused = True
        letter.doubtful = letter.refused or not source.alive or source.lives != lives

    def _letter(self, number: int, source: str) -> Letter:
        dice = self._dice
        transactional = dice.random() < 0.5
        possible = [
            path
            for path, each in self.world.destinations.items()
            if each.transactional == transactional and self._can_send(source, each)
        ]
        count = min(dice.choice((1, 1, 2, 3)), len(possible))
        return Letter(
            number,
            source,
            tuple(sorted(dice.sample(possible, count))),
            self.now,
            transactional=transactional,
            express=not transactional and dice.random() < 0.3,
            acknowledged=dice.random() < 0.7,
            dead_letter=dice.random() < 0.5,
            journal=dice.random() < 0.3,
            traced=dice.random() < 0.2,
            reach=dice.choice(TIMES),
            received=dice.choice(TIMES),
        )

    def _can_send(self, source: str, destination: Destination) -> bool:
        """Queues of one's own are only for who is here, and the others for those elsewhere."""
        if destination.queue == "home":
            return source == "alice"
        return source != destination.machine

    def _name(self, source: Node, path: str) -> str:
        return self.world.destinations[path].format_name

    def _properties(self, letter: Letter) -> dict[str, Any]:
        found: dict[str, Any] = {
            "delivery_guarantee": int(not letter.express),
            "negative_journaling_requested": letter.dead_letter,
            "positive_journaling_requested": letter.journal,
        }
        if letter.reach is not None:
            found["time_to_reach_queue"] = letter.reach
        if letter.received is not None:
            found["time_to_be_received"] = letter.received
        if letter.acknowledged:
            found["acknowledgements_requested"] = _ALL_ACKNOWLEDGEMENTS
            found["administration_queue_format_name"] = self.world.admin_names[letter.number % 2]
        if letter.traced:
            found |= {"tracing_requested": True, "tracing_queue_identifier": REPORTS}
        return found

    # Reading

    def read(self) -> None:
        """Applications receive some messages."""
        for _ in range(self._dice.randint(1, 8)):
            self._read_once()

    def _read_once(self, certain: bool = False) -> bool:
        """Receive a message somewhere, in a transaction or not; an aborted one has not been.

        With `certain` it is of a transactional queue, and read; False when there is none.
        """
        found = [each for each in self.world.destinations.values() if self._can_read(each)]
        if certain:
            found = [each for each in found if each.transactional]
        if not found:
            return False
        chosen = self._dice.choice(found)
        node = self.world.nodes[chosen.machine]
        how = "plain" if certain else self._dice.choice(("plain", "commit", "abort"))
        if how == "plain" or not chosen.transactional:
            self._receive(node, chosen)
        else:
            self._receive_within(node, chosen, commit=how == "commit")
        return True

    def _can_read(self, destination: Destination) -> bool:
        node = self.world.nodes[destination.machine]
        if not node.alive:
            return False
        return queue_of(node, destination.queue).message_position_list.available > 0

    def _receive(self, node: Node, place: Destination) -> None:
        queue = queue_of(node, place.queue)
        descriptor = self._opened(node, queue)
        number, lives = _first(node, queue), node.lives
        received = node.engine.messages.dequeue_message(descriptor, 0)
        node.settle()
        certain = node.lives == lives
        self._note(place, number, certain=certain)
        if certain:
            assert received.result().attributes.body == b"%d" % number
            node.engine.opening.close_queue(descriptor)

    def _receive_within(self, node: Node, place: Destination, commit: bool) -> None:
        queue, transactions = queue_of(node, place.queue), node.engine.transactions
        descriptor = self._opened(node, queue)
        number, lives = _first(node, queue), node.lives
        unit = transactions.create_transaction(node.new_uow())
        node.engine.messages.dequeue_message(descriptor, 0, transaction=unit)
        end = transactions.transaction_commit if commit else transactions.transaction_abort
        end(unit.identifier)
        node.settle()
        if commit:
            self._note(place, number, certain=node.lives == lives)

    def _opened(self, node: Node, queue: Queue) -> OpenQueueDescriptor:
        name = node.engine.queues.format_name_of(queue)
        access, share = QueueAccessType.RECEIVE_ACCESS, QueueShareMode.DENY_NONE
        return node.engine.opening.open_queue(name, access, share)

    def _note(self, place: Destination, number: int, *, certain: bool) -> None:
        self.ledger.readings.append(Reading(place.path, number, self.now, certain))

    # What goes wrong

    def _strike(self) -> None:
        """Somebody dies at some moment or between some two steps, and comes back."""
        dice = self._dice
        fuse = dice.randrange(20) if dice.random() < 0.5 else None
        name = dice.choice(tuple(MACHINES))
        self.strike(name, fuse, dice.randint(0, 1_500), dice.randint(2_000, 20_000))

    def strike(self, name: str, fuse: int | None, delay: int, back: int) -> None:
        """It dies after so many callbacks, or else milliseconds; back is when it starts again."""
        node = self.world.nodes[name]
        if not node.alive:
            return
        self.happened["kills"] += 1
        self.ledger.begin(name, DEATH, self.now)
        if fuse is not None:
            node.fuse = fuse
        else:
            self.world.later(delay, partial(self._kill, node))
        self.world.later(back, partial(self._revive, node))

    def _kill(self, node: Node) -> None:
        if node.alive:
            node.kill()

    def _revive(self, node: Node) -> None:
        node.fuse = None
        if not node.alive:
            node.start()
        for trouble in self.ledger.going_on(node.name):
            if trouble.scope == DEATH:
                trouble.end = self.now

    def _squeeze(self) -> None:
        name = self._dice.choice(tuple(SCOPES))
        self.squeeze(name, self._dice.choice(SCOPES[name]), self._dice.randint(100, 30_000))

    def squeeze(self, name: str, scope: str, milliseconds: int) -> None:
        """There is no room for anything for a while."""
        if any(trouble.scope == scope for trouble in self.ledger.going_on(name)):
            return
        self.happened["full quotas"] += 1
        trouble = self.ledger.begin(name, scope, self.now)
        self._give_room(self.world.nodes[name], scope, 0)
        self.world.later(milliseconds, partial(self._ease, trouble))

    def _ease(self, trouble: Trouble) -> None:
        trouble.end = self.now
        self._give_room(self.world.nodes[trouble.machine], trouble.scope, None)

    def _squeeze_again(self, node: Node) -> None:
        """What an operator has set lasts longer than a life."""
        for trouble in self.ledger.going_on(node.name):
            if trouble.scope != DEATH:
                self._give_room(node, trouble.scope, 0)

    def _give_room(self, node: Node, scope: str, room: int | None) -> None:
        machine = node.engine.queue_manager
        if scope == MACHINE:
            machine.queue_manager_quota = 0x0010_0000 if room is None else room
        elif scope == "system$;journal":
            machine.journal_quota = INFINITE if room is None else room
        else:
            name, _, journal = scope.partition(";")
            queue = queue_of(node, scope if name == "system$" else name)
            is_journal = journal == "journal" and name != "system$"
            attribute = "journal_quota" if is_journal else "quota"
            setattr(queue, attribute, INFINITE if room is None else room)

    def _lose_an_address(self) -> None:
        node = self.world.nodes[self._dice.choice(tuple(MACHINES))]
        self.lose_address(self._dice.choice(node.addresses), self._dice.randint(1_000, 30_000))

    def lose_address(self, address: str, milliseconds: int) -> None:
        """A machine can be reached by its other address only."""
        if address not in self.world.unreachable:
            self.happened["lost addresses"] += 1
            self.world.unreachable.add(address)
            self.world.later(milliseconds, partial(self.world.unreachable.discard, address))

    def wall(self) -> None:
        """Only the routers connect to the other site for a while."""
        if not self.world.wall:
            self.happened["walls"] += 1
            self.world.build_wall()
            self.world.later(self._dice.randint(10_000, 60_000), self.world.tear_down_wall)


def _first(node: Node, queue: Queue) -> int:
    """The number of the first message that can be read."""
    key = queue.message_position_list.first_available()
    assert key is not None
    return int(node.engine.positions.message_at(queue, key).attributes.body)
