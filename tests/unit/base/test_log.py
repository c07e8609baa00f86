"""Lines of the log: what strangers send makes them neither long nor many, and hides nothing."""

import errno
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from rpcqm.base import log
from rpcqm.base.addresses import owner_of, owner_of_peer
from rpcqm.base.buckets import TokenBuckets
from rpcqm.base.errors import DecodeError, HResult, MQError, RpcFault
from tests.support.clock import SimulatedClock

A_SECOND = 1000


class Log:
    """What has been logged, as JSON, by a clock of the test's."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self._stream = io.StringIO()
        log.configure(as_json=True, stream=self._stream, clock=self.clock)
        self._log = log.get_logger("test")

    def tell(self, event: str, **values: Any) -> None:
        self._log.info(event, **values)

    def fail(self, text: str) -> None:
        try:
            raise ValueError(text)
        except ValueError:
            self._log.exception("it failed", peer="192.0.2.1:5")

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def told() -> Iterator[Log]:
    before = structlog.get_config()
    yield Log()
    structlog.configure(**before)


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_line_that_cannot_be_written_is_lost_and_nothing_else() -> None:
    before = structlog.get_config()
    log.configure(stream=Full())
    try:
        log.get_logger("test").error("nobody reads this")
    finally:
        structlog.configure(**before)


# Bytes.


@pytest.mark.bound("log.characters")
def test_a_text_of_256_characters_is_told_and_a_longer_one_is_cut(told: Log) -> None:
    told.tell("e", whole="x" * 256, long="x" * 257, longest="é" * 3_800_000)
    (line,) = told.lines
    assert line["whole"] == "x" * 256
    assert line["long"] == "x" * 256 + "… (257 characters)"
    assert line["longest"] == "é" * 256 + "… (3,800,000 characters)"
    assert len(told.text) < 4000


@pytest.mark.parametrize(
    "error",
    [
        MQError(HResult.MQ_ERROR_ACCESS_DENIED, "x" * 300),
        RpcFault(HResult.MQ_ERROR_ACCESS_DENIED, "x" * 300),
        DecodeError("x" * 300, 7),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_text_of_an_error_is_cut_too(error: Exception) -> None:
    assert "x" * 256 + "… (300 characters)" in str(error)
    assert "x" * 257 not in str(error) + repr(error)


@pytest.mark.bound("log.items")
def test_what_is_in_lists_is_cut_as_well(told: Log) -> None:
    told.tell("e", few=["a"] * 64, many=[["y" * 1000]] * 65, named={"z" * 1000: b"w" * 1000})
    (line,) = told.lines
    assert len(line["few"]) == len(line["many"]) == 64
    assert line["many"][0] == ["y" * 256 + "… (1,000 characters)"]
    ((name, value),) = line["named"].items()
    assert name.endswith("… (1,000 characters)")
    assert len(value) < 300


@pytest.mark.bound("log.traceback_lines")
def test_a_traceback_is_cut_in_its_middle_and_set_in(told: Log) -> None:
    told.fail("a\nb")
    told.fail("\n".join(f"line {number}" for number in range(100)))
    told.fail("w" * 100_000 + "\n2026-01-01 [info] ready")
    short, long, wide = (line["exception"].split("\n") for line in told.lines)
    assert "  b" in short
    assert len(long) == 101
    assert long[50].startswith("  … (")
    assert "  line 99" in long
    assert all(line.startswith("  ") and len(line) < 300 for line in wide)


@pytest.mark.parametrize(
    "character", ["\x1b", "\n", "\x7f", "\x85", "\x9b", "\u2028", "\u2029", "\u202e", "\u2066"]
)
@pytest.mark.parametrize("as_json", [True, False])
def test_what_moves_the_cursor_or_hides_is_escaped(
    character: str, as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    before, stream = structlog.get_config(), io.StringIO()
    log.configure(as_json=as_json, stream=stream, clock=SimulatedClock())
    log.get_logger("test").info("e", name=f"ki{character}m")
    structlog.configure(**before)
    line = stream.getvalue().removesuffix("\n")
    assert character not in line
    if as_json:
        assert character not in json.loads(line)["name"]


# Lines.


@pytest.mark.bound("log.lines_at_once", "log.lines_per_second")
def test_the_twenty_first_line_of_a_peer_is_left_out_until_a_second_has_passed(told: Log) -> None:
    for number in range(20):
        told.tell("refused", peer=f"192.0.2.1:{number}", number=number)
    assert len(told.lines) == 20
    for number in range(500):
        told.tell("refused", peer=f"192.0.2.1:{number}")
    told.clock.advance(A_SECOND - 1)
    told.tell("refused", peer="192.0.2.1:7")
    assert len(told.lines) == 20
    told.clock.advance(1)
    told.tell("refused", peer="192.0.2.1:7")
    told.tell("refused", peer="192.0.2.1:7")
    assert len(told.lines) == 21
    assert told.lines[-1]["left_out"] == 501
    assert all("left_out" not in line for line in told.lines[:-1])


def test_a_flood_hides_neither_other_peers_nor_other_kinds(told: Log) -> None:
    for number in range(1000):
        told.tell("refused", peer=f"192.0.2.1:{number}")
    told.tell("refused", peer="192.0.2.2:1")
    told.tell("logged on", peer="192.0.2.1:1")
    told.tell("stopped")
    assert [line.get("peer") for line in told.lines[20:]] == ["192.0.2.2:1", "192.0.2.1:1", None]


@pytest.mark.bound("log.lines_without_peer_at_once", "log.lines_without_peer_per_second")
def test_lines_without_a_peer_have_a_rate_too(told: Log) -> None:
    for _ in range(200):
        told.tell("message refused")
    assert len(told.lines) == 200
    told.tell("message refused")
    assert len(told.lines) == 200
    told.clock.advance(A_SECOND)
    for _ in range(21):
        told.tell("message refused")
    assert len(told.lines) == 220


def test_what_an_administrator_asked_for_is_never_left_out(told: Log) -> None:
    for number in range(250):
        told.tell("access granted", who="kim", number=number, always=True)
    assert [line["number"] for line in told.lines] == list(range(250))
    assert not any("always" in line for line in told.lines)


def test_an_account_causes_as_many_lines_as_a_peer(told: Log) -> None:
    for number in range(500):
        told.tell("access refused", who="kim", sid="S-1-5-21-1-2-3-1000", number=number)
    told.tell("access refused", who="lee", sid="S-1-5-21-1-2-3-1001")
    assert [line["who"] for line in told.lines] == ["kim"] * 20 + ["lee"]
    told.clock.advance(A_SECOND)
    told.tell("access refused", who="kim", sid="S-1-5-21-1-2-3-1000")
    assert told.lines[-1]["left_out"] == 480


@pytest.mark.bound("log.peers")
def test_peers_beyond_those_that_are_known_share_a_rate(told: Log) -> None:
    for number in range(log.PEERS):
        told.tell("refused", peer=f"peer {number}")
    assert len(told.text.splitlines()) == log.PEERS
    for number in range(1000):
        told.tell("refused", peer=f"further peer {number}")
    assert len(told.text.splitlines()) == log.PEERS + log.LINES_AT_ONCE
    told.tell("refused", peer="peer 0")
    assert len(told.text.splitlines()) == log.PEERS + log.LINES_AT_ONCE + 1


def test_a_key_that_was_not_used_for_long_makes_room() -> None:
    buckets = TokenBuckets(burst=2, per_second=1, most=2)
    for key in "aab":
        assert buckets.take(key, 0) == 0
    assert buckets.take("a", 1000) == 0
    assert [buckets.take("c", 1500) for _ in range(3)] == [0, 0, None]
    assert len(buckets) == 2
    assert buckets.take("a", 1500) is None, "it is still known"


@pytest.mark.parametrize(
    ("peer", "owner"),
    [
        ("192.0.2.1:49152", "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6:49152", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::77", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.1:80", "192.0.2.1"),
        ("local alice", "local alice"),
    ],
)
def test_who_stands_behind_an_address(peer: str, owner: str) -> None:
    assert owner_of_peer(peer) == owner
    assert owner_of(owner) == owner or owner.endswith("/64")
