"""What is acknowledged is what each acknowledgement says, one message after the other."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from rpcqm.binary.sent_messages import COUNTER, SentMessages
from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.fields import DELIVERY_MODE


def packet(recoverable: bool) -> bytes:
    octets = bytearray(100)
    octets[DELIVERY_MODE[0]] = DELIVERY_MODE[1] if recoverable else 0xFF ^ DELIVERY_MODE[1]
    return bytes(octets)


class OneByOne:
    """The same as the specification tells it."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.in_flight: list[tuple[object, int | None]] = []
        self.unpersisted: dict[int, object] = {}

    def add(self, recoverable: list[bool], tokens: list[object]) -> None:
        for is_recoverable, token in zip(recoverable, tokens, strict=True):
            if is_recoverable:
                self.last = (self.last + 1) & COUNTER
                self.unpersisted[self.last] = token
            self.in_flight.append((token, self.last if is_recoverable else None))

    def take_counted(self, count: int) -> list[object]:
        taken, self.in_flight = self.in_flight[:count], self.in_flight[count:]
        return [token for token, number in taken if number is None]

    def take_persisted(self, first: int, flags: int) -> list[object]:
        if not first and not flags:
            return []
        before = (number for number in self.unpersisted if (first - number) & COUNTER < 0x8000)
        flagged = ((first + bit) & COUNTER for bit in range(32) if flags >> bit & 1)
        numbers = dict.fromkeys([*before, *flagged])
        return [self.unpersisted.pop(number) for number in numbers if number in self.unpersisted]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.booleans(), max_size=40)),
        st.tuples(st.just("add"), st.integers(1, 40).map(lambda count: [True] * count)),
        st.tuples(st.just("counted"), st.integers(0, 40)),
        st.tuples(st.just("next"), st.integers(0, 32)),
        st.tuples(st.just("persisted"), st.integers(-3, 40), st.integers(0, 0xFFFFFFFF)),
        st.tuples(st.just("persisted"), st.integers(-3, 40), st.sampled_from([0, 1, 2, 7, 6])),
    ),
    max_size=12,
)
SENT: tuple[Any, ...] = ("add", [True] * 20)


@given(STEPS, st.sampled_from([0, 5, COUNTER - 20, COUNTER]))
@example([SENT, ("persisted", 4, 0)], 0)
@example([SENT, ("next", 20)], COUNTER - 10)
@example([SENT, ("persisted", 0, 6), ("next", 5)], 0)
def test_acknowledgements_release_what_each_message_says(
    steps: list[tuple[Any, ...]], last: int
) -> None:
    together, one_by_one = SentMessages(), OneByOne(last)
    for name, *arguments in steps:
        if name == "add":
            (recoverable,) = arguments
            tokens: list[object] = [object() for _ in recoverable]
            last = together.add([packet(each) for each in recoverable], tokens, last)
            one_by_one.add(recoverable, tokens)
            assert last == one_by_one.last
        elif name == "counted":
            count = min(arguments[0], len(one_by_one.in_flight))
            assert together.take_counted(count) == one_by_one.take_counted(count)
        else:
            first = next(iter(one_by_one.unpersisted), 1)
            flags = (1 << arguments[0]) - 1 if name == "next" else arguments[1]
            first = (first + (0 if name == "next" else arguments[0])) & COUNTER
            header = SessionHeader(
                recoverable_msg_ack_seq_number=first, recoverable_msg_ack_flags=flags
            )
            assert together.take_persisted(header) == one_by_one.take_persisted(first, flags)
        assert list(together.in_flight) == one_by_one.in_flight
        assert list(together.unpersisted.items()) == list(one_by_one.unpersisted.items())
        assert bool(together) == bool(one_by_one.in_flight or one_by_one.unpersisted)
