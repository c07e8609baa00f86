"""Whether the questions of scripts/windows-check have here the answers that its table says."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.dcom.com_objects import ADMINISTRATOR, Objects, served_objects
from tests.support.dcom.dcom_client import DcomClient
from tests.support.dcom.windows_objects import OWN, Asked
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(ROOT / "scripts" / "windows-check.d")
    found: dict[str, Any] = import_module("questions").questions()
    return found


@pytest.fixture
def objects() -> Iterator[Objects]:
    """As an administrator, who is asked for by what manages queues."""
    with (
        served_objects() as alice,
        DcomClient(alice.machine.endpoint("epm"), ADMINISTRATOR) as com,
    ):
        yield Objects(alice.machine, com, alice.client)


def test_objects_answer_as_the_table_says(table: dict[str, Any], objects: Objects) -> None:
    answers = dict(Asked(objects, until).answers())
    numbers = {name: numbered(objects, *what) for name, what in _NUMBERED.items()}
    wanted = {
        name: question.here
        for name, question in table.items()
        if name.startswith("A") and "rpcqm" in question.of
    }
    assert answers | numbers == wanted


_NUMBERED = {"A18": ("message", "Label"), "A19": ("info", "PathName")}
_NULL = UUID(int=0)


def numbered(objects: Objects, kind: str, name: str) -> str:
    """The number by which scripts call a member."""
    made = objects.message() if kind == "message" else objects.queue_info(OWN + "new")
    script = objects.com.query_interface(made, "IDispatch")
    (number,) = objects.com.call(script, "GetIDsOfNames", _NULL, [name], 1, 0)
    return f"number {number}"
