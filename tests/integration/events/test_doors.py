"""What happens to a queue manager is the same by whatever door it is brought about (G530 to G533).

The rows are in events.toml: each event with what must follow from it, and each entry of each door
with the event that it is.
"""

import argparse
import ast
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import rpcqm
from rpcqm import mqac, operations, service
from rpcqm.api.routes import ROUTES
from rpcqm.cli.main import build_parser
from rpcqm.cli.parser_tree import commands_of
from rpcqm.codec.interface import load
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.console.application import LOGOFF, LOGON, ONE_TIME
from rpcqm.console.pages import PAGES
from rpcqm.dcom.com_object import ComObject
from rpcqm.operations.management_orders import called
from rpcqm.operations.trail import EventKind
from rpcqm.qm.message_counts import DEAD_LETTERS, GONE, UNKNOWN
from rpcqm.qm.trail import TrailEventType
from rpcqm.srmp.message_types import MessageType
from tests.support.qm.event_hands import (
    DONE,
    HANDS,
    REFUSED,
)
from tests.support.qm.event_refusals import after_a_deletion, peeking_purges
from tests.support.qm.event_world import (
    AWAY,
    OPEN,
    SHUT,
    Subject,
    World,
    opened_world,
)

ROOT = Path(__file__).parents[3]
TABLE = tomllib.loads(Path(__file__).with_name("events.toml").read_text("utf-8"))
EVENTS: dict[str, dict[str, Any]] = {each["name"]: each for each in TABLE["event"]}
WALKED = [(name, door) for name, row in EVENTS.items() for door in row.get("walked", ())]
NOTHING = {"asks", "begins", "ends"}
WITH_A_MESSAGE = {"delete queue", "purge", "move", "copy", "remove", "receive", "give back"}
TO_ELSEWHERE = {"pause", "resume", "resend"}


def with_a(column: str) -> list[tuple[str, str]]:
    """The events and doors whose rows have a column."""
    return [(event, door) for event, door in WALKED if column in EVENTS[event]]


def expected(event: str, door: str) -> dict[str, Any]:
    """What a row says of a door."""
    row = EVENTS[event]
    return {**row, **row.get("but", {}).get(door, {})}


@pytest.fixture(scope="module")
def opened() -> Iterator[World]:
    with opened_world() as world:
        assert world.browser, "logged on before: that is an event, too"
        yield world


@pytest.fixture
def world(opened: World) -> Iterator[World]:
    opened.who = "boss"
    yield opened
    opened.who = "boss"
    opened.ask("PATCH", "/queue-manager", {"connected": True, "maintenance": False})


def prepared(world: World, event: str, sddl: str = OPEN) -> Subject:
    """What an event is to happen to."""
    if event in TO_ELSEWHERE:
        world.send_away()
    if event == "resume":
        assert HANDS["pause"]["api"](world, Subject("")) == DONE
    elif event == "pause":
        assert HANDS["resume"]["api"](world, Subject("")) == DONE
    if event == "connect":
        world.ask("PATCH", "/queue-manager", {"connected": False})
    if event == "create queue":
        made = world.new_queue()
        return Subject(f"{made.short}-new")
    subject = world.new_queue(sddl, transactional=event == "give back")
    if event not in WITH_A_MESSAGE:
        return subject
    identifier = world.send(subject.short)
    (message,) = world.messages(subject.short)
    return Subject(subject.short, str(message["lookup_id"]), identifier)


def called_in_the_log(row: dict[str, Any], subject: Subject) -> str:
    names = {
        "queue": subject.shown,
        "as written": subject.path,
        "away": AWAY,
        "name": rf"DIRECT=OS:.\private$\{subject.short}",
    }
    called_there = str(row.get("object", ""))
    return names.get(called_there, called_there)


@pytest.mark.parametrize(("event", "door"), WALKED)
def test_an_event_has_the_same_effects_by_each_door(world: World, event: str, door: str) -> None:
    row, subject = expected(event, door), prepared(world, event)
    position, told = len(world.machine.log), world.last_told()
    counters = world.counters()
    assert HANDS[event][door](world, subject) == DONE
    lines = world.lines(position, "an operator acts")
    acts = [(line["action"], line["object"]) for line in lines]
    wanted = [(row["audit"], called_in_the_log(row, subject))] if row["audit"] else []
    assert acts == wanted
    raised = {name for name, count in world.counters().items() if count > counters[name]}
    assert raised == ({row["counted"]} if "counted" in row else set())
    heard = world.told(told)
    acted = "operator-acts" in row["told"]
    assert set(row["told"]) <= set(heard)
    assert ("operator-acts" in heard) is acted
    if "trail" in row:
        assert world.trail(subject.identifier or _only_one(world, subject)) == row["trail"]
    if "aborts" in row:
        assert [each["abort_count"] for each in world.messages(subject.short)] == [row["aborts"]]


def _only_one(world: World, subject: Subject) -> str:
    """The identifier of the message that has come."""
    (message,) = world.messages(subject.short)
    return str(message["id"])


def refused_by(row: dict[str, Any], what: str, door: str) -> str:
    """What a door tells of a refusal: commands tell people in sentences."""
    told = str(row[what])
    return REFUSED if door == "command" and told != DONE else told


@pytest.mark.parametrize(("event", "door"), with_a("missing"))
def test_a_queue_that_is_not_there_is_missed_at_each_door(
    world: World, event: str, door: str
) -> None:
    subject = Subject("never-made", "1")
    position = len(world.machine.log)
    told = refused_by(expected(event, door), "missing", door)
    assert HANDS[event][door](world, subject) == told
    assert world.lines(position, "an operator acts") == []


@pytest.mark.parametrize(("event", "door"), with_a("exists"))
def test_a_queue_that_is_there_is_not_made_again_at_any_door(
    world: World, event: str, door: str
) -> None:
    subject, position = world.new_queue(), len(world.machine.log)
    told = refused_by(expected(event, door), "exists", door)
    assert HANDS[event][door](world, subject) == told
    assert world.lines(position, "an operator acts") == []


@pytest.mark.parametrize(("event", "door"), with_a("denied"))
def test_who_has_no_right_is_refused_and_told_of_at_each_door(
    world: World, event: str, door: str
) -> None:
    row, subject = expected(event, door), prepared(world, event, SHUT)
    who = world.become_a_stranger()
    if door == "console":
        assert world.browser, "logged on before"
    position, counters = len(world.machine.log), world.counters()
    assert HANDS[event][door](world, subject) == refused_by(row, "denied", door)
    world.who = "boss"
    assert world.lines(position, "an operator acts") == []
    lines = [
        line
        for event in ("an operator was refused", "access refused")
        for line in world.lines(position, event)
    ]
    assert bool(lines) is not row.get("quiet", False)
    unnamed = door in ("binary", "http")  # these strangers have not logged on
    assert unnamed or {line["who"] for line in lines} <= {who}
    if subject.identifier:
        assert world.counters() == counters
        assert _only_one(world, subject) == subject.identifier


@pytest.mark.parametrize(
    ("event", "door"),
    [each for each in WALKED if each[0] != "give back" and each[1] not in ("binary", "http")],
)
def test_who_may_only_look_changes_nothing_at_any_door(world: World, event: str, door: str) -> None:
    """Also where everybody else may (G654); who has received nothing has nothing to give back."""
    subject = prepared(world, event)
    world.become_an_observer()
    if door == "console":
        assert world.browser, "logged on before"
    position, counters = len(world.machine.log), world.counters()
    row = expected(event, door)
    told = HANDS[event][door](world, subject)
    assert told == refused_by({"denied": "MQ_ERROR_ACCESS_DENIED", **row}, "denied", door)
    world.who = "boss"
    assert world.lines(position, "an operator acts") == []
    assert world.counters() == counters
    if subject.identifier:
        assert _only_one(world, subject) == subject.identifier


def test_who_may_only_peek_purges_nothing_and_is_told_of_at_each_door(world: World) -> None:
    subject = world.new_queue()
    world.send(subject.short)
    position = len(world.machine.log)
    told = peeking_purges(world, subject)
    denied = dict.fromkeys(told, "MQ_ERROR_ACCESS_DENIED")
    assert told == denied | {"remoteread": "STATUS_ACCESS_DENIED"}
    lines = world.lines(position, "an operator was refused")
    assert [line["action"] for line in lines] == ["purge"] * len(told)
    assert len(world.messages(subject.short)) == 1


def test_who_has_a_queue_open_is_told_that_it_was_deleted_at_each_door(world: World) -> None:
    subject, position = world.new_queue(), len(world.machine.log)
    told = after_a_deletion(world, subject, lambda: _deleted(world, subject))
    assert set(told) == {name for name, row in EVENTS.items() if "deleted" in row}
    for event, statuses in told.items():
        assert statuses == {door: expected(event, door)["deleted"] for door in statuses}
    acts = [line["action"] for line in world.lines(position, "an operator acts")]
    assert acts == ["delete queue"]


def _deleted(world: World, subject: Subject) -> None:
    assert HANDS["delete queue"]["api"](world, subject) == DONE


@pytest.mark.parametrize("door", ["com", "api"])
def test_only_administrators_publish_queues(world: World, door: str) -> None:
    """No directory is asked: who may not publish learns nothing of it (G531)."""
    world.become_a_stranger()
    if door == "com":
        info = world.objects.queue_info(r".\published")
        with pytest.raises(Exception, match="Create: 0xc00e0025"):
            world.objects.com.call(info, "Create", None, None)
        return
    answer = world.program.ask("POST", "/queues", {"name": r".\published"})
    assert (answer.status, answer.code) == (403, "MQ_ERROR_ACCESS_DENIED")


# The table has everything


def registered() -> dict[str, set[str]]:
    """The methods of each interface that the service registers."""
    found = set()
    for path in Path(service.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "register":
                first = node.args[0]
                if isinstance(first, ast.Call) and isinstance(first.args[0], ast.Constant):
                    found.add(str(first.args[0].value))
    return {
        name: {each.name for each in load(name).operations if each is not None} for name in found
    }


def object_methods() -> set[str]:
    """The methods of the coclasses and of what they give out; properties change an object only."""
    for path in Path(mqac.__file__).parent.glob("*.py"):
        import_module(f"rpcqm.mqac.{path.stem}")
    found = set()
    waiting: list[type] = [ComObject]
    while waiting:
        each = waiting.pop()
        waiting += each.__subclasses__()
        if each.__module__.startswith("rpcqm.mqac."):
            methods = (name for name, value in vars(each).items() if callable(value))
            found |= {f"{each.__name__}.{name}" for name in methods if name[0].isupper()}
    return found


def command_words(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The words of every command that does something."""
    inner = list(commands_of(parser))
    for each in inner:
        yield from command_words(each)
    if not inner:
        yield parser.prog.partition(" ")[2]


def entries() -> dict[str, set[str]]:
    """All entries of all doors, as the product has them."""
    forms = {page.path for page in PAGES if page.act is not None}
    return registered() | {
        "objects": object_methods(),
        "routes": {route.name for route in ROUTES},
        "forms": forms | {LOGON, LOGOFF, ONE_TIME},
        "commands": set(command_words(build_parser())),
        "packets": {each.name for each in PacketKind},
        "envelopes": {each.name for each in MessageType},
    }


def events_of(value: str | list[str]) -> set[str]:
    return {value} if isinstance(value, str) else set(value)


def test_each_entry_of_each_door_is_an_event_or_changes_nothing() -> None:
    ways = TABLE["ways"]
    assert {name: set(ways.get(name, ())) for name in entries()} == entries()
    assert set(ways) == set(TABLE["doors"]) == set(entries())
    named = {
        each for table in ways.values() for value in table.values() for each in events_of(value)
    }
    assert named - NOTHING <= set(EVENTS)


def test_each_listener_leads_to_doors(opened: World) -> None:
    listeners = TABLE["listeners"]
    assert {*opened.machine.ready.endpoints, "local"} <= set(listeners)
    behind = {door for doors in listeners.values() for door in doors}
    assert behind == set(TABLE["doors"].values()) | {"command"}


def test_each_event_is_walked_by_each_door_or_says_why_not() -> None:
    doors = set(TABLE["doors"].values())
    for name, row in EVENTS.items():
        if "elsewhere" in row:
            assert (ROOT / row["elsewhere"]).is_file(), name
            continue
        walked, without = set(row["walked"]), set(row.get("without", ()))
        assert walked == set(HANDS[name]), name
        assert not walked & without, name
        assert walked | without | set(TABLE["without"]) >= doors, name
        assert set(row.get("but", ())) <= walked, name
        assert all("why" in each for each in row.get("but", {}).values()), name


def test_a_door_with_an_entry_for_an_event_is_walked_or_says_why_not() -> None:
    for table, ways in TABLE["ways"].items():
        door = TABLE["doors"][table]
        for entry, value in ways.items():
            for event in events_of(value) - NOTHING:
                row = EVENTS[event]
                reasons = set(row.get("without", ())) | set(TABLE["without"])
                assert "elsewhere" in row or door in {*row["walked"], *reasons}, entry


def actions() -> set[str]:
    """What the audit log calls orders, as the product writes it."""
    found = set()
    root = Path(rpcqm.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(getattr(node, "func", None), "id", "")
            if name in ("note", "note_work", "note_look", "ordered", "refusals"):
                assert isinstance(node, ast.Call)
                if len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                    found.add(str(node.args[1].value))
    return found


def told_by(name: str) -> set[str]:
    """Everything that rows have under a name."""
    found: set[str] = set()
    for row in EVENTS.values():
        for each in (row, *row.get("but", {}).values()):
            found |= events_of(each.get(name, []))
    return found


def test_each_action_of_the_audit_log_has_a_row() -> None:
    machine = import_module("rpcqm.operations.management_orders")
    texts = (machine.CONNECT, machine.DISCONNECT, machine.TIDY, machine.PAUSE, machine.RESUME)
    ordered = {called(each) for each in (*texts, machine.EOD_RESEND)}
    literal = actions()
    assert "delete queue" in literal
    assert literal | ordered <= told_by("audit")


def test_each_kind_of_what_is_counted_kept_and_told_has_a_row() -> None:
    counted = told_by("counted")
    names = {name.partition(".")[2].replace("left", "transferred") for name in GONE}
    assert names | {"arrived", "moved"} == counted
    assert (DEAD_LETTERS, UNKNOWN) == ("dead_letters.", "unknown"), "reasons of `expire` and `fail`"
    kinds = told_by("trail") | told_by("kinds")
    assert {each.name.lower() for each in TrailEventType} == kinds
    assert {str(each) for each in EventKind} == told_by("told")


def test_orders_are_told_of_by_the_room_that_all_doors_share() -> None:
    """A door that writes lines of its own has orders that no other door has."""
    own = {
        "rpcqm.interfaces.qmcomm": "a purge elsewhere",
        "rpcqm.interfaces.remote_read": "a move, which programs make, too (G311)",
        "rpcqm.interfaces.admin": "who may publish is asked before properties are read",
        "rpcqm.mqac.administration": "an order to a queue manager elsewhere",
        "rpcqm.mqac.certificates": "only objects register certificates",
        "rpcqm.mqac.queue_info": "a queue elsewhere, in the directory",
        "rpcqm.mqac.reading": "a purge elsewhere",
    }
    found, root = set(), Path(rpcqm.__file__).parent
    here = Path(operations.__file__).parent
    for path in root.rglob("*.py"):
        names = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module == "rpcqm.operations.audit"
            for alias in node.names
        }
        if here not in path.parents and names & {"note", "note_work", "ordered", "refusals"}:
            found.add("rpcqm." + ".".join(path.relative_to(root).with_suffix("").parts))
    assert found == set(own)
