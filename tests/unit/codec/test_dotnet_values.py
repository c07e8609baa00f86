"""Values in bodies of BinaryMessageFormatter, as that of System.Messaging has written them."""

import datetime
import json
import uuid
from decimal import Decimal
from pathlib import Path

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.client.bodies import decode_body
from rpcqm.codec.bodies.budget import BudgetError
from rpcqm.codec.bodies.described import described_body
from rpcqm.codec.bodies.formatters import DOTNET_BINARY
from tests.support.codec import dotnet
from tests.support.codec.dotnet import number, text

VECTORS = Path(__file__).parents[2] / "vectors" / "dotnet" / "binary.txt"
BODIES = dict(
    line.split(": ") for line in VECTORS.read_text().splitlines() if not line.startswith("#")
)
GUID = uuid.UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28")
UTC = datetime.UTC
MOMENT = datetime.datetime(2026, 5, 28, 21, 20)
TWO_HOURS = datetime.timezone(datetime.timedelta(hours=2))


def body_of(name: str) -> bytes:
    return bytes.fromhex(BODIES[name])


def told(body: bytes) -> object:
    return json.loads(json.dumps(described_body(body, DOTNET_BINARY)))["value"]


@pytest.mark.parametrize(
    ("name", "value", "in_json"),
    [
        ("a UTC date", MOMENT.replace(tzinfo=UTC), "2026-05-28T21:20:00+00:00"),
        ("a local date", MOMENT, "2026-05-28T21:20:00"),
        ("a date of no kind", MOMENT, "2026-05-28T21:20:00"),
        ("a decimal", Decimal("12.50"), "12.50"),
        (
            "the least decimal",
            Decimal("-79228162514264337593543950335"),
            "-79228162514264337593543950335",
        ),
        ("a duration before now", datetime.timedelta(seconds=-1), "-PT1S"),
        ("a GUID", GUID, str(GUID)),
        ("a date with an offset", MOMENT.replace(tzinfo=TWO_HOURS), "2026-05-28T21:20:00+02:00"),
        ("a list of numbers", [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
        ("a list of anything", ["a", None], ["a", None]),
        (
            "an array of values",
            [MOMENT.replace(tzinfo=UTC), GUID, Decimal("0.0000001"), datetime.timedelta(2)],
            ["2026-05-28T21:20:00+00:00", str(GUID), "0.0000001", "P2D"],
        ),
        ("an enumeration", {"$class": "Color", "value__": 7}, {"$class": "Color", "value__": 7}),
    ],
)
def test_an_object_that_stands_for_a_value_is_that_value(
    name: str, value: object, in_json: object
) -> None:
    found = decode_body(body_of(name), DOTNET_BINARY)
    assert repr(found) == repr(value)
    assert told(body_of(name)) == in_json


def test_an_object_that_holds_itself_has_a_number_that_is_referred_to() -> None:
    child = {"$class": "Node", "Name": "b", "Parent": {"$ref": 1}, "Children": None}
    family = {"$class": "Node", "$id": 1, "Name": "a", "Parent": None, "Children": [child]}
    found = decode_body(body_of("a family"), DOTNET_BINARY)
    assert found == told(body_of("a family")) == family
    assert isinstance(found, dict)
    assert list(found) == ["$class", "$id", "Name", "Parent", "Children"]


def test_an_array_that_holds_itself_is_told_by_its_octets_with_the_reason() -> None:
    body = dotnet.body(dotnet.array(1, 1, dotnet.reference(1)))
    with pytest.raises(DecodeError, match="an array holds itself"):
        decode_body(body, DOTNET_BINARY)
    found = described_body(body, DOTNET_BINARY)
    assert (found["value_type"], found["undecoded"]) == ("bytes", "an array holds itself")


def test_references_back_count_as_what_is_written_out() -> None:
    """An object with an array of references to it, of five octets each."""

    def circles(count: int) -> bytes:
        first = b"\x04" + number(1) + text("C") + number(1) + text("All") + b"\2"
        return dotnet.body(first + dotnet.array(2, count, dotnet.reference(1) * count))

    found = decode_body(circles(30_000), DOTNET_BINARY)
    assert found == {"$class": "C", "$id": 1, "All": [{"$ref": 1}] * 30_000}
    with pytest.raises(BudgetError):
        decode_body(circles(60_000), DOTNET_BINARY)


def system_class(name: str, **members: int) -> bytes:
    """A boxed object of a class with members of 32 bits."""
    names = b"".join(map(text, members))
    kinds = bytes(len(members)) + b"\x08" * len(members)
    values = b"".join(map(number, members.values()))
    return dotnet.body(
        b"\x04" + number(1) + text(name) + number(len(members)) + names + kinds + values
    )


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("System.DateTime", {"other": 1}),
        ("System.Decimal", {"flags": 29 << 16, "hi": 0, "lo": 1, "mid": 0}),
        ("System.Guid", {"_a": 1}),
        ("System.TimeSpan", {"ticks": 1}),
        ("System.DateTimeOffset", {"DateTime": 1, "OffsetMinutes": 0}),
        ("System.Collections.ArrayList", {"_items": 1, "_size": 1}),
        ("System.Collections.Generic.List`1[[System.Int32]]", {"_size": 1}),
        ("Shop.DateTime", {"ticks": 1}),
    ],
)
def test_an_object_of_other_members_is_its_members(name: str, members: dict[str, int]) -> None:
    assert decode_body(system_class(name, **members), DOTNET_BINARY) == {"$class": name, **members}


def test_a_date_beyond_the_last_one_is_no_value() -> None:
    last = b"\x08\x0d" + (3_155_378_975_999_999_999).to_bytes(8, "little")
    beyond = b"\x08\x0d" + ((1 << 62) - 1).to_bytes(8, "little")
    found = decode_body(dotnet.body(dotnet.array(1, 1, last)), DOTNET_BINARY)
    assert found == [datetime.datetime.max]
    with pytest.raises(DecodeError):
        decode_body(dotnet.body(dotnet.array(1, 1, beyond)), DOTNET_BINARY)
