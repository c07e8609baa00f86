"""What is told of a body is a small multiple of it, whatever it says (G395)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.api.reading import write_json
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.bodies.described import LONGEST_DECODED, described_body, described_octets
from rpcqm.codec.bodies.formatters import DOTNET_BINARY
from rpcqm.codec.bodies.kinds import MAXIMUM_JSON_DEPTH, kind_and_value, read_body
from tests.support.codec import dotnet
from tests.support.codec.costly_bodies import COSTLY

SHORT, SIZES = 64 * 1024, [100, 5_000, 60_000, LONGEST_DECODED]
MOST_MEMBERS = {"value_type", "value", "body_base64"}


def size_of(told: dict[str, object]) -> int:
    return len(write_json(told))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", list(COSTLY))
def test_at_most_eight_octets_are_told_for_each_one(name: str, size: int) -> None:
    body_type, make = COSTLY[name]
    body = make(size)
    budget = DecodeBudget(len(body))
    told = described_body(body, body_type, LONGEST_DECODED, budget)
    for each in (told, described_body(body, body_type), described_octets(body, body_type)):
        assert size_of(each) <= 8 * len(body) + SHORT
        assert len(body) >= SHORT or each.keys() >= MOST_MEMBERS
        assert each["body_base64"]
    assert budget.spent <= len(body) // 4 + SHORT or "undecoded" in told


@pytest.mark.parametrize("name", ["nulls of .NET", "references of .NET", "names of .NET"])
def test_what_would_be_longer_is_told_by_octets_with_the_reason(name: str) -> None:
    body_type, make = COSTLY[name]
    small, large = (described_body(make(size), body_type) for size in (5_000, 100_000))
    assert small["value_type"] == "bytes"
    assert small["value"] == small["body_base64"]
    assert "a body of its size" in str(small["undecoded"])
    assert "a body of its size" in str(large["undecoded"])


@pytest.mark.bound("body.longest_decoded")
def test_a_long_body_is_told_by_its_octets_alone() -> None:
    read = described_body(b"[1]".ljust(LONGEST_DECODED), 0, LONGEST_DECODED)
    assert (read["value_type"], read["value"]) == ("json", [1])
    longer = b"[1]".ljust(LONGEST_DECODED + 1)
    told = described_body(longer, 0, LONGEST_DECODED)
    assert list(told) == ["value_type", "value", "body_base64", "undecoded"]
    assert (told["value_type"], told["value"]) == ("undecoded", None)
    assert told["undecoded"] == "it is longer than 262,144 bytes"
    assert described_body(longer, 0)["value"] == [1]


def test_a_body_that_is_not_of_its_type_tells_why() -> None:
    told = described_body(b"abc", 3)
    assert (told["value_type"], told["value"]) == ("bytes", "YWJj")
    assert told["undecoded"] == "3 bytes are no number of 4"
    assert "undecoded" not in described_body(b"[draft] hello", 0)


@pytest.mark.bound("body.json_depth")
def test_json_has_a_greatest_depth() -> None:
    def nested(depth: int) -> bytes:
        return b'[{"a":' * (depth // 2) + b"1" + b"}]" * (depth // 2) + b" " * 1000

    assert kind_and_value(nested(MAXIMUM_JSON_DEPTH), 0)[0] == "json"
    for depth in (MAXIMUM_JSON_DEPTH + 2, 900, 200_000):
        body = nested(depth)
        assert kind_and_value(body, 0) == ("bytes", body)
        told = described_body(body, 0)
        assert told["undecoded"] == "it is nested too deeply" or "values" in str(told["undecoded"])


def test_brackets_and_commas_in_texts_of_json_are_no_values() -> None:
    body = json.dumps([',[{"\\' * 100_000, 1]).encode()
    budget = DecodeBudget(len(body))
    assert read_body(body, 0, budget).kind == "json"
    assert budget.spent == 3
    wide = json.dumps([",[{}],".join("" for _ in range(300))] * 200).encode()
    assert kind_and_value(wide, 0)[0] == "json"


def test_octets_of_dotnet_are_one_value_however_many_they_are() -> None:
    body = dotnet.body(
        b"\x0f" + dotnet.number(1) + dotnet.number(4_000_000) + b"\2" + bytes(4_000_000)
    )
    budget = DecodeBudget(len(body))
    kind, value, *_ = read_body(body, DOTNET_BINARY, budget)
    assert (kind, value) == ("dotnet", bytes(4_000_000))
    assert budget.spent == 1


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text('a",[]{}\\:', max_size=4),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text('a"\\,[', max_size=3), inner, max_size=4)
        ),
        max_leaves=30,
    )
)
def test_values_of_json_are_counted_exactly_where_that_matters(value: object) -> None:
    def count(value: object) -> int:
        if isinstance(value, dict):
            return 1 + sum(map(count, value.values()))
        return 1 + sum(map(count, value)) if isinstance(value, list) else 1

    body = json.dumps([value, value]).encode()
    budget = DecodeBudget(0)
    budget.values = 0
    assert read_body(body, 0, budget).kind == "bytes"
    empty = body.count(b"[]") + body.count(b"{}")
    assert count([value, value]) <= budget.spent <= count([value, value]) + empty + 1
