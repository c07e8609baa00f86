"""What .NET's own formatters write is read here, and the other way (Debian's Mono)."""

import base64
import datetime
import json
import math
import re
import struct
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from rpcqm.client import bodies, mq
from rpcqm.codec.bodies.described import described_body
from rpcqm.codec.bodies.value_texts import duration_text
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.cli.documents import ROOT
from tests.support.codec.dotnet_values import (
    LOCAL,
    UNSPECIFIED,
    UTC,
    Chance,
    Single,
    Value,
    as_read_again,
    colour,
    generated,
    text,
    xml_type,
)

PROGRAM = Path(__file__).parent / "dotnet" / "Formatters.cs"
LIBRARIES = Path("/usr/lib/mono/4.5")
SEED, COUNT = 20_261_127, 300
BINARY = 768
NOON = datetime.datetime(2026, 5, 26, 20, tzinfo=datetime.UTC)
TWO_HOURS = datetime.timezone(datetime.timedelta(hours=2))
Read = tuple[object, dict[str, Any]]
Ask = Callable[[Sequence[str]], list[str]]


@pytest.fixture(scope="module")
def ask(require: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Answers of .NET's formatters to orders, which one process gives."""
    require("mcs", "mono")
    for library in ("System.Messaging.dll", "Mono.Messaging.RabbitMQ.dll"):
        if not (LIBRARIES / library).exists():
            pytest.skip(f"{library} is not installed (scripts/install-peers has its package)")
    program = tmp_path_factory.mktemp("dotnet") / "formatters.exe"
    references = "-r:System.Messaging,System.Xml"
    subprocess.run(["mcs", "-nologo", references, f"-out:{program}", PROGRAM], check=True)

    def ask(orders: Sequence[str]) -> list[str]:
        done = subprocess.run(
            ["mono", program],
            input="".join(f"{order}\n" for order in orders),
            env={"TZ": "UTC", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=True,
        )
        answers = done.stdout.splitlines()
        assert len(answers) == len(orders), done.stderr
        return answers

    return ask


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager() as served:
        yield served


def written(ask: Ask, formatter: str, values: Sequence[Value]) -> list[bytes]:
    answers = ask([f"write {formatter} {value.words}" for value in values])
    octets = []
    for value, answer in zip(values, answers, strict=True):
        body_type, _, body = answer.partition(" ")
        assert body_type == str(BINARY if formatter == "binary" else 0), (value, answer)
        octets.append(bytes.fromhex(body))
    return octets


def through_a_queue(
    served: PrivateQueueManager, name: str, octets: Sequence[bytes], body_type: int
) -> list[Read]:
    """The value in the client library and the members of JSON for each body."""
    served.run("queue", "create", name)
    with mq.open(name, served) as queue:
        for body in octets:
            queue.send(body, body_type=body_type, recoverable=False)
        lines = served.run("peek", name, "--all", "--json").stdout.splitlines()
        read = []
        for message in queue.receive(timeout=0):
            read.append(message.value if body_type else bodies.value_of_xml(message.xml))
    return list(zip(read, map(json.loads, lines), strict=True))


def in_json(value: object) -> object:
    """What JSON tells of a value."""
    match value:
        case list():
            return [in_json(each) for each in value]
        case dict():
            return {name: in_json(each) for name, each in value.items()}
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return f"{value:f}"
        case float() if not math.isfinite(value):
            return str(float(value))
        case datetime.datetime():
            return value.isoformat()
        case datetime.timedelta():
            return duration_text(value)
        case uuid.UUID():
            return str(value)
    return value


def same(found: Any, wanted: Any) -> bool:
    """Whether values are equal and of one type, also NaN, -0.0, and the zeros of a Decimal."""
    if isinstance(wanted, list):
        return type(found) is list and len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, dict):
        return list(found) == list(wanted) and all(same(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, Single):
        return type(found) is float and struct.pack("<f", found) == struct.pack("<f", wanted)
    return type(found) is type(wanted) and repr(found) == repr(wanted)


def check(found: Sequence[Read], values: Sequence[Value], kind: str) -> None:
    for (read, told), value in zip(found, values, strict=True):
        wanted = value.in_binary if kind == "dotnet" else value.value
        assert same(read, wanted), (value, read)
        assert told["value_type"] == kind
        assert same(told["value"], in_json(wanted)), (value, told["value"])
        assert not {"undecoded", "value_note"} & told.keys()


def test_what_dotnet_writes_as_xml_is_read_here(
    ask: Ask, queue_manager: PrivateQueueManager
) -> None:
    values = generated(SEED, COUNT)
    octets = written(ask, "xml", values)
    check(through_a_queue(queue_manager, "xml", octets, 0), values, "xml")


def test_what_dotnet_writes_by_its_binary_formatter_is_read_here(
    ask: Ask, queue_manager: PrivateQueueManager
) -> None:
    chance = Chance(SEED)
    values = generated(SEED, COUNT - 60)
    values += [chance.duration() for _ in range(20)] + [chance.offset() for _ in range(10)]
    values += [chance.order() for _ in range(20)] + [colour("Blue", 7)] * 10
    octets = written(ask, "binary", values)
    check(through_a_queue(queue_manager, "binary", octets, BINARY), values, "dotnet")


def test_what_is_written_here_is_read_by_dotnet(ask: Ask) -> None:
    """By Mono's formatter, and by the reader as .NET Framework's formatter uses it."""
    values = generated(SEED, COUNT)
    documents = [bodies.encode_xml(each.value, xml_type(each.type)).hex() for each in values]
    for formatter in ("windows", "xml"):
        orders = [
            f"read {formatter} {value.type} {document}"
            for value, document in zip(values, documents, strict=True)
        ]
        refused = 0
        for value, document, answer in zip(values, documents, ask(orders), strict=True):
            if formatter == "xml" and _STRANGE.search(bytes.fromhex(document)):
                refused += answer.startswith("error")
            else:
                assert answer.lower() == as_read_again(value), value
        assert refused < COUNT // 10


_STRANGE = re.compile(rb"&#x(?!D;)")
"""A character that XML does not have: Mono's own formatter refuses it, Windows' does not."""


def test_a_number_of_the_type_that_is_asked_for_is_read_by_dotnet(
    ask: Ask, queue_manager: PrivateQueueManager
) -> None:
    """Through the command line and a queue, as a person sends it."""
    queue_manager.run("queue", "create", "typed")
    kinds = {"xml:int": "int:42", "xml:unsignedByte": "byte:42", "xml:float": "float:00002842"}
    for kind in kinds:
        queue_manager.run("send", "typed", "--body", "42", "--type", kind)
    with mq.open("typed", queue_manager) as queue:
        documents = [message.body.hex() for message in queue.receive(timeout=0)]
    orders = [
        f"read windows {words.partition(':')[0]} {document}"
        for words, document in zip(kinds.values(), documents, strict=True)
    ]
    assert ask(orders) == list(kinds.values())


def test_objects_that_refer_back_are_read_with_references(
    ask: Ask, queue_manager: PrivateQueueManager
) -> None:
    child = f"{{Node Name {text('b').words} }}"
    family = f"{{Node Name {text('a').words} Children [List<Node> {child} {child} ] }}"
    octets = written(ask, "binary", [Value("Node", family, None)])
    ((read, told),) = through_a_queue(queue_manager, "family", octets, BINARY)
    parent = {"$ref": 1}
    children = [{"$class": "Node", "Name": "b", "Parent": parent, "Children": None}] * 2
    node = {"$class": "Node", "$id": 1, "Name": "a", "Parent": None, "Children": children}
    assert read == told["value"] == node
    assert list(told["value"])[:2] == ["$class", "$id"]


# What cannot be

PAGE = ROOT / "docs" / "dotnet.md"
LAST_DIGIT = 639_156_000_000_000_009
CANNOT: dict[tuple[str, str], list[str]] = {
    ("the last digit of ticks", "all"): [
        f"write xml DateTime:{LAST_DIGIT},Unspecified",
        f"write binary TimeSpan:-{LAST_DIGIT}",
    ],
    ("a local `DateTime`", "XML"): [
        f"write xml DateTime:{LAST_DIGIT},Local",
        "read windows DateTime " + bodies.encode_xml(NOON.astimezone(TWO_HOURS)).hex(),
        "read windows DateTime " + bodies.encode_xml(NOON).hex(),
    ],
    ("a local `DateTime`", "binary"): [
        f"write binary DateTime:{LAST_DIGIT},{kind}" for kind in (LOCAL, UNSPECIFIED, UTC)
    ],
    ("`TimeSpan`, `DateTimeOffset`", "XML"): [
        "write xml TimeSpan:1",
        f"write xml DateTimeOffset:{LAST_DIGIT},60",
        "read windows TimeSpan " + b"<TimeSpan>P1D</TimeSpan>".hex(),
    ],
    ("half of a surrogate pair", "all"): [
        *("write xml units:d800", "write binary units:d800", "write xml char:d800"),
        "write binary char:d800",
    ],
    ("text of white space alone", "XML"): [
        "write xml string:00200020",
        "read windows string " + b"<string>  </string>".hex(),
        "read windows string " + bodies.encode_xml("  ").hex(),
    ],
    ("characters such as U+001D", "XML"): [
        "write xml string:001d",
        "read windows string " + bodies.encode_xml("\x1d").hex(),
        "read xml string " + bodies.encode_xml("\x1d").hex(),
    ],
    ("enumerations, classes, structures", "XML"): [
        *("write xml Color:Blue", "write xml {Point X int:1 }", "write xml {Order Number int:1 }"),
    ],
    ("enumerations, classes, structures", "binary"): ["write binary Color:Blue"],
    ("an object that holds itself", "binary"): [],
    ("an array that holds itself", "binary"): ["write binary circle:"],
    ("`Dictionary`, `Hashtable`", "XML"): ["write xml {Dictionary a int:1 }"],
    ("`Dictionary`, `Hashtable`", "binary"): ["write binary {Dictionary a int:1 }"],
    ("arrays of several dimensions", "binary"): ["write binary grid:", "write xml grid:"],
    ("numbers in a list of anything", "XML"): [],
    ("`null` as the whole body", "XML, binary"): [
        *("write xml null", "write binary null"),
        "read windows string " + bodies.encode_xml(None, "string").hex(),
    ],
    ("everything", "ActiveX"): ["write activex int:1"],
}
"""The rows of docs/dotnet.md, and what .NET is asked about them; two have tests of their own."""


def test_the_page_says_what_cannot_be() -> None:
    table = PAGE.read_text("utf-8").partition("### What cannot be")[2].partition("\n###")[0]
    rows = re.findall(r"^\| ([^|]*) \| ([^|]*) \| [^|]+ \|$", table, re.M)
    assert rows[0] == ("What", "By")
    assert rows[1:] == list(CANNOT)


def test_what_cannot_be_is_as_the_page_says(ask: Ask) -> None:
    orders = [order for each in CANNOT.values() for order in each]
    answers = iter(ask(orders))
    found = {row: [next(answers) for _ in each] for row, each in CANNOT.items()}
    for row, values in _WANTED.items():
        assert list(map(_of_answer, found.pop(row))) == values, row
    del found["`Dictionary`, `Hashtable`", "binary"]  # has a test of its own
    assert found == {row: [] for row in found}


def _of_answer(answer: str) -> object:
    """The value in a body, or why there is none; other answers as they are."""
    kind, _, rest = answer.partition(" ")
    if kind not in ("0", str(BINARY)):
        return kind if kind == "error" else answer
    told = described_body(bytes.fromhex(rest), int(kind))
    value = told.get("undecoded", told["value"])
    return value.partition("\n")[2].partition(" xmlns")[0] if _is_document(value) else value


def _is_document(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value.startswith("<?xml")


_WANTED: dict[tuple[str, str], list[object]] = {
    ("the last digit of ticks", "all"): ["2026-05-28T21:20:00", "-P739763DT21H20M"],
    ("a local `DateTime`", "XML"): [
        "2026-05-28T21:20:00+00:00",
        "DateTime:639154224000000000,Local",
        "DateTime:639154224000000000,Utc",
    ],
    ("a local `DateTime`", "binary"): [
        *("2026-05-28T21:20:00", "2026-05-28T21:20:00", "2026-05-28T21:20:00+00:00"),
    ],
    ("`TimeSpan`, `DateTimeOffset`", "XML"): ["<TimeSpan", "<DateTimeOffset", "TimeSpan:0"],
    ("half of a surrogate pair", "all"): ["error", "\ufffd", "<char>55296</char>", "error"],
    ("text of white space alone", "XML"): ["  ", "string:", "string:00200020"],
    ("characters such as U+001D", "XML"): ["\x1d", "string:001D", "error"],
    ("enumerations, classes, structures", "XML"): ["<Color>Blue</Color>", "<Point", "<Order"],
    ("enumerations, classes, structures", "binary"): [{"$class": "Color", "value__": 7}],
    ("an array that holds itself", "binary"): ["an array holds itself"],
    ("`Dictionary`, `Hashtable`", "XML"): ["error"],
    ("arrays of several dimensions", "binary"): [[1, 2, 3, 4], "error"],
    ("`null` as the whole body", "XML, binary"): ["error", "error", "null"],
    ("everything", "ActiveX"): ["error"],
}


def test_pairs_of_a_dictionary_are_told(ask: Ask) -> None:
    (answer,) = ask(CANNOT["`Dictionary`, `Hashtable`", "binary"])
    value = bodies.decode_body(bytes.fromhex(answer.partition(" ")[2]), BINARY)
    assert isinstance(value, dict)
    pairs = value["KeyValuePairs"]
    assert isinstance(pairs, list)
    (pair,) = pairs
    assert isinstance(pair, dict)
    assert (pair["key"], pair["value"]) == ("a", 1)
