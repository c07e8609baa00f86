"""Frames in another order, cut connections and halves of them: each call once, or told why not."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.capture.columnar import consecutive, template
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.file.beginning import LEAST_HELD, MOST_HELD
from rpcqm.capture.file.tcp import TcpReassembler
from rpcqm.codec.interface import TransferSyntax
from tests.support.capture.analysed import calls_of
from tests.support.capture.captures import (
    ACK,
    FIN,
    RST,
    SYN,
    Collected,
    enhanced,
    pcapng,
    pcapng_head,
    segment,
)
from tests.support.capture.traffic import Client
from tests.support.capture.tunnels import WRAPS, nested
from tests.unit.capture.test_columnar import compare

Outcome = tuple[Any, ...]


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consecutive, "SHORTEST_RUN", 2)
    monkeypatch.setattr(template, "LEAST_ROWS", 2)


def connection(seed: int, number: int = 0, calls: int = 12) -> list[bytes]:
    """A whole connection, from its opening to its end, whose calls come one after the other."""
    client = Client(random.Random(seed), number, TransferSyntax.NDR, False)
    client.begin(whole=True)
    client.open()
    client.answer()
    client.speak(calls)
    while client._open:
        client.answer()
    client.leave()
    return client.frames


def outcomes(path: Path) -> tuple[Counter[Outcome], list[str]]:
    """What was called with what outcome, and the problems."""
    found, problems = calls_of(path)
    return Counter(map(outcome, found)), [problem.kind for problem in problems]


def outcome(call: Any) -> Outcome:
    assert isinstance(call, CapturedCall)
    conversation = call.conversation
    parts = conversation.client, conversation.server, call.interface_name, call.name
    return (*parts, call.request, call.response, call.fault, call.note)


def durations(path: Path) -> list[int]:
    return [each.ended - each.time for each in calls_of(path)[0] if isinstance(each, CapturedCall)]


def stored(directory: Path, frames: Sequence[bytes]) -> Path:
    path = directory / "capture"
    path.write_bytes(pcapng(frames))
    return path


def is_from_server(frame: bytes) -> bool:
    return frame[26:30] == bytes((192, 0, 2, 2))


def whole_calls(found: Counter[Outcome]) -> Counter[Outcome]:
    """Requests with their answers; the interface need not be known."""
    told: Counter[Outcome] = Counter()
    for each, number in found.items():
        if not each[7]:
            told[each[4:7]] += number
    return told


REORDERED: Mapping[str, Callable[[list[bytes]], list[bytes]]] = {
    "reversed": lambda frames: frames[::-1],
    "the server, then the client": lambda frames: sorted(frames, key=is_from_server, reverse=True),
    "the client, then the server": lambda frames: sorted(frames, key=is_from_server),
    "the end first": lambda frames: frames[-4:] + frames[:-4],
    "the opening last": lambda frames: frames[3:] + frames[:3],
    "each twice": lambda frames: [each for frame in frames for each in (frame, frame)],
    "all, and all again": lambda frames: frames + frames,
    "pairs exchanged": lambda frames: [
        each for at in range(0, len(frames), 2) for each in frames[at : at + 2][::-1]
    ],
}


@pytest.mark.parametrize("order", REORDERED)
def test_another_order_of_a_connection_has_the_same_calls(order: str, tmp_path: Path) -> None:
    frames = connection(3)
    expected, problems = outcomes(stored(tmp_path, frames))
    assert (len(expected) > 10, problems) == (True, [])
    path = stored(tmp_path, REORDERED[order](frames))
    assert outcomes(path) == (expected, [])
    compare(path)


@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 40), span=st.integers(2, 12), clients=st.integers(1, 4))
def test_disorder_within_a_span_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, seed: int, span: int, clients: int
) -> None:
    """Of several connections, from their openings to their ends, with frames seen twice."""
    path = tmp_path_factory.mktemp("disorder")
    rng = random.Random(seed)
    frames: list[bytes] = []
    waiting = [connection(seed + n, n, rng.randrange(8))[::-1] for n in range(clients)]
    while waiting := [each for each in waiting if each]:
        frames.append(rng.choice(waiting).pop())
    expected, problems = outcomes(stored(path, frames))
    assert problems == []
    moved = sorted(enumerate(frames), key=lambda pair: pair[0] + rng.randrange(span))
    twice = [each for _, frame in moved for each in [frame] * rng.choice((1, 1, 1, 2))]
    found = stored(path, twice)
    assert outcomes(found) == (expected, [])
    compare(found)


@pytest.mark.parametrize("ahead", [-5_000_000, 5_000_000, -(10**18), 10**18])
def test_clocks_of_interfaces_may_differ(ahead: int, tmp_path: Path) -> None:
    """By milliseconds or by years: the calls are the same, with the moments that were told."""
    octets, start = pcapng_head((1, 1)), 1_700_000_000_000_000_000
    frames = connection(4)
    for number, frame in enumerate(frames):
        server = is_from_server(frame)
        octets += enhanced(frame, start + number * 1_000_000 + server * ahead, int(server))
    path = tmp_path / "skewed"
    path.write_bytes(octets)
    plain = stored(tmp_path, frames)
    assert outcomes(path) == outcomes(plain)
    assert durations(path) == [each + ahead for each in durations(plain)]
    compare(path)


@pytest.mark.parametrize("seed", range(6))
def test_a_connection_without_its_beginning_or_end_has_the_calls_that_are_there(
    seed: int, tmp_path: Path
) -> None:
    """Each once, whole or with what it lacks; a cut in the middle of a call is told."""
    frames = connection(seed)
    expected, _ = outcomes(stored(tmp_path, frames))
    for cut in range(0, len(frames), 3):
        for part in (frames[cut:], frames[: len(frames) - cut]):
            found, problems = outcomes(path := stored(tmp_path, part))
            assert problems == []
            assert whole_calls(found) <= whole_calls(expected)
            assert sum(1 for each in found if each[7]) <= 4
            compare(path)


@pytest.mark.parametrize("server", [False, True])
def test_half_of_a_connection_has_each_call_once(server: bool, tmp_path: Path) -> None:
    frames = connection(9)
    expected, _ = outcomes(stored(tmp_path, frames))
    half = [frame for frame in frames if is_from_server(frame) is server]
    found, _ = calls_of(path := stored(tmp_path, half))
    assert len(found) == expected.total()
    notes = {"its request was not captured"} if server else {"never answered"}
    assert {call.note for call in found if isinstance(call, CapturedCall)} == notes
    compare(path)


def test_a_lost_request_makes_no_second_call_of_those_behind_it(tmp_path: Path) -> None:
    """Answers that wait for the requests behind the hole come after them, not before."""
    frames = connection(6)
    expected, _ = outcomes(stored(tmp_path, frames))
    requests = [n for n, each in enumerate(frames) if not is_from_server(each) and len(each) > 60]
    for lost in requests[1:]:
        rest = frames[:lost] + frames[lost + 1 :]
        found, problems = outcomes(path := stored(tmp_path, rest[:4] + rest[4:][::-1]))
        assert found.total() == expected.total()
        assert set(problems) <= {"gap"}
        assert sum(1 for each in found if each[7]) == 1
        compare(path)


def test_what_comes_too_late_to_be_put_in_order_is_told(tmp_path: Path) -> None:
    """The second half of a connection, and then the first."""
    frames = connection(5, calls=30)
    half = len(frames) // 2
    _, problems = outcomes(path := stored(tmp_path, [*frames[half:-2], *frames[3:half]]))
    assert set(problems) == {"order"}
    compare(path)


def test_the_first_segments_are_held_until_it_is_clear_where_they_begin() -> None:
    """Some are enough if two of them are in order; without such a pair their number is bounded."""
    for least, step in ((LEAST_HELD, 1), (MOST_HELD, 10)):
        frames = [segment(100 + step * n, b"x") for n in range(least)]
        found = Collected().feed(*frames[:-1])
        assert found.forward == b""
        assert found.feed(frames[-1]).forward[:1] == b"x"


def test_octets_behind_an_end_that_came_early_are_taken() -> None:
    """Both ends, or a reset, overtook what was sent before them."""
    opening = segment(10, flags=SYN), segment(20, flags=SYN | ACK, backward=True)
    ends = (segment(14, flags=FIN | ACK), segment(21, flags=FIN | ACK, backward=True))
    for early in (ends, (segment(14, flags=RST),)):
        found = Collected().feed(*opening, *early)
        assert found.finished == 0
        found.feed(segment(11, b"abc"))
        assert (bytes(found.forward), found.finished, len(found.gaps)) == (b"abc", 1, 0)


def test_an_end_that_came_early_is_passed_when_all_before_it_is_there() -> None:
    """What acknowledges it does not wait for more."""
    opening = segment(10, flags=SYN), segment(20, flags=SYN | ACK, backward=True)
    answer = bytearray(segment(21, b"answer", backward=True))
    answer[42:46] = (15).to_bytes(4, "big")
    found = Collected().feed(*opening, segment(14, flags=FIN | ACK), segment(11, b"abc"))
    assert found.feed(bytes(answer)).backward == b"answer"


def test_an_end_whose_octets_never_come_waits_for_a_few_connections_only() -> None:
    """Then what is missing counts as lost."""
    found = Collected().feed(segment(10, flags=SYN), segment(14, b"d"), segment(15, flags=RST))
    assert found.finished == 0
    for number in range(5):
        opening = bytearray(segment(50, flags=SYN))
        opening[34:36] = (40000 + number).to_bytes(2, "big")
        found.feed(bytes(opening))
    assert (found.finished, found.gaps) == (1, [3])


def test_ports_that_are_used_again_without_an_opening_are_another_connection() -> None:
    """What is sent again of the old one is not."""
    found = Collected().feed(
        segment(10, flags=SYN),
        segment(20, flags=SYN | ACK, backward=True),
        segment(11, b"a"),
        segment(12, flags=RST),
        segment(11, b"a"),
        segment(1 << 30, b"xy"),
        segment((1 << 30) + 2, b"z"),
    )
    assert len(found.flows) == 2
    assert found.finish().forward == b"axyz"


def test_many_connections_with_missing_ends_are_bounded() -> None:
    """A thousand of them, each with a hole before its end."""
    found = Collected()
    for number in range(1000):
        frames = (segment(10, flags=SYN), segment(14, b"d"), segment(15, flags=RST))
        for frame in map(bytearray, frames):
            frame[34:36] = (2000 + number).to_bytes(2, "big")
            found.feed(bytes(frame))
    assert isinstance(found.tcp, TcpReassembler)
    assert len(found.tcp._ending) <= 5
    assert found.finished > 990


NESTED = sorted(set(WRAPS) - {"IP without Ethernet", "40 tags"})


@settings(max_examples=25)
@given(seed=st.integers(0, 1 << 40), span=st.integers(1, 8), loss=st.sampled_from((0.0, 0.0, 0.1)))
def test_random_nesting_order_and_loss_give_the_calls_that_are_there(
    tmp_path_factory: pytest.TempPathFactory, seed: int, span: int, loss: float
) -> None:
    """Each side of a connection in tunnels of its own, in another order, some frames twice."""
    path, rng = tmp_path_factory.mktemp("nested"), random.Random(seed)
    frames = connection(seed, 0, 8)
    expected, _ = outcomes(stored(path, frames))
    ways = [rng.choices(NESTED, k=rng.randrange(3)) for _ in range(2)]
    made = [nested(frame[14:], ways[is_from_server(frame)]) for frame in frames]
    moved = sorted(enumerate(made), key=lambda pair: pair[0] + rng.randrange(span))
    kept = [frame for _, frame in moved if rng.random() >= loss]
    twice = [each for frame in kept for each in [frame] * rng.choice((1, 1, 2))]
    found, problems = outcomes(got := stored(path, twice))
    assert whole_calls(found) <= whole_calls(expected)
    assert (found, problems) == (expected, []) or len(kept) < len(made)
    compare(got)
