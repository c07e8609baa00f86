"""What a class says of its JSON: the values that are told, and the model that describes them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from pydantic import TypeAdapter, ValidationError

from rpcqm.api.derived import list_of, model_of
from rpcqm.base.told import Moment, MomentOrNone, TextOrNone, told

IDENTIFIER = UUID("6b29fc40-ca47-1067-b31d-00dd010662da")


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a journey."""

    at: Moment
    by: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Journey:
    """Every kind of member that there is."""

    identifier: UUID
    number: int
    peer: TextOrNone
    ended: MomentOrNone
    steps: tuple[Step, ...]
    counts: Mapping[str, int]


JOURNEY = Journey(IDENTIFIER, 7, "", 0, (Step(1000, (IDENTIFIER,)), Step(1500)), {"open": 2})
STEP = model_of(Step, "Step", "A part.")
MODEL = model_of(Journey, "Journey", "All of it.")


def test_members_are_told_as_json_has_them() -> None:
    assert told(JOURNEY) == {
        "id": str(IDENTIFIER),
        "number": 7,
        "peer": None,
        "ended": None,
        "steps": [
            {"at": "1970-01-01T00:00:01Z", "by": [str(IDENTIFIER)]},
            {"at": "1970-01-01T00:00:01.500000Z", "by": []},
        ],
        "counts": {"open": 2},
    }


def test_what_is_not_none_is_told() -> None:
    told_of = told(Journey(IDENTIFIER, 7, "near", 2000, (), {}))
    assert (told_of["peer"], told_of["ended"]) == ("near", "1970-01-01T00:00:02Z")


WRONG: dict[str, object] = {"id": None, "number": None, "steps": [{"at": None, "by": []}]}


def test_the_model_takes_what_is_told_and_nothing_else() -> None:
    model: TypeAdapter[Any] = TypeAdapter(MODEL)
    assert model.validate_json(json.dumps(told(JOURNEY)), strict=True).number == JOURNEY.number
    for name, wrong in WRONG.items():
        with pytest.raises(ValidationError):
            model.validate_json(json.dumps(told(JOURNEY) | {name: wrong}), strict=True)


def test_the_model_has_its_name_and_text_and_says_what_may_be_null() -> None:
    schema = TypeAdapter(MODEL).json_schema()
    assert (schema["title"], schema["description"]) == ("Journey", "All of it.")
    null = {"type": "null"}
    nullable = {
        name for name, each in schema["properties"].items() if null in each.get("anyOf", ())
    }
    assert nullable == {"peer", "ended"}
    assert schema["required"] == ["id", "number", "peer", "ended", "steps", "counts"]


def test_a_list_is_a_model_with_one_member() -> None:
    schema = TypeAdapter(list_of(STEP, "Steps", "steps", "All of them.")).json_schema()
    assert schema["properties"]["steps"]["items"] == {"$ref": "#/$defs/Step"}
