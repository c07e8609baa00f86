"""Reading what Get-MsmqQueue and Get-MsmqQueueACL print as JSON on Windows."""

import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rpcqm.cli.errors import CommandError
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.codec.security.permissions import QUEUE
from rpcqm.codec.types.mqvalues import INFINITE

LARGEST_FILE = 64 << 20
"""Size of a file that `rpcqm migrate windows` reads.

10,000 queues with all their properties take half of that.

Bound `file.windows_export_octets` [octets]: the file is refused in one sentence.
"""
PAGE = "docs/coming-from-windows.md has the commands for Windows"
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PRIVACY = {"none": 0, "optional": 1, "body": 2}
_M = MQQUEUEACCESSMASK
RIGHTS = {
    "deletemessage": int(_M.MQSEC_DELETE_MESSAGE),
    "peekmessage": int(_M.MQSEC_PEEK_MESSAGE),
    "receivemessage": int(_M.MQSEC_RECEIVE_MESSAGE),
    "writemessage": int(_M.MQSEC_WRITE_MESSAGE),
    "deletejournalmessage": int(_M.MQSEC_DELETE_JOURNAL_MESSAGE),
    "receivejournalmessage": int(_M.MQSEC_RECEIVE_JOURNAL_MESSAGE),
    "setqueueproperties": int(_M.MQSEC_SET_QUEUE_PROPERTIES),
    "getqueueproperties": int(_M.MQSEC_GET_QUEUE_PROPERTIES),
    "deletequeue": int(_M.MQSEC_DELETE_QUEUE),
    "getqueuepermissions": int(_M.MQSEC_GET_QUEUE_PERMISSIONS),
    "changequeuepermissions": int(_M.MQSEC_CHANGE_QUEUE_PERMISSIONS),
    "takequeueownership": int(_M.MQSEC_TAKE_QUEUE_OWNERSHIP),
    "genericread": int(_M.MQSEC_QUEUE_GENERIC_READ),
    "genericwrite": int(_M.MQSEC_QUEUE_GENERIC_WRITE),
    "fullcontrol": int(_M.MQSEC_QUEUE_GENERIC_ALL),
}
"""Names of .NET's MessageQueueAccessRights, in small letters."""


@dataclass(frozen=True, slots=True)
class WindowsQueue:
    """A queue of the other computer, `name` without that computer's: `private$\\orders`."""

    name: str
    settings: QueueSettings
    multicast: str


@dataclass(frozen=True, slots=True)
class WindowsEntry:
    """What one entry of a queue's list allows or denies to an account."""

    queue: str
    account: str
    denied: bool
    mask: int


class WindowsExport:
    """The queues and permissions of one or several files; raises CommandError for bad ones."""

    def __init__(self) -> None:
        self.queues: dict[str, WindowsQueue] = {}
        self.entries: dict[str, list[WindowsEntry]] = {}

    def read(self, path: Path) -> None:
        """Add what a file holds."""
        places = [
            _Place(f"{path}, object {number}", members)
            for number, members in enumerate(_objects(path), 1)
        ]
        words = _access_words(places)
        for place in places:
            if "accountname" in place.members:
                entry = _entry(place, words)
                self.entries.setdefault(entry.queue.casefold(), []).append(entry)
            else:
                queue = _queue(place)
                if self.queues.setdefault(queue.name.casefold(), queue) != queue:
                    raise place.wrong("QueueName", f"`{queue.name}` is there twice, differently")


class _Place:
    """The members of one object by their names in small letters, and how to call it."""

    def __init__(self, text: str, members: Mapping[str, object]) -> None:
        self.text = text
        self.members = {name.casefold(): _plain(value) for name, value in members.items()}

    def wrong(self, member: str, text: str) -> CommandError:
        return CommandError(f"{self.text}, {member}: {text}.")

    def text_of(self, member: str) -> str:
        value = self.members.get(member.casefold())
        if value is not None and not isinstance(value, str):
            raise self.wrong(member, "a text is expected")
        return value or ""

    def flag(self, member: str) -> bool | None:
        value = self.members.get(member.casefold())
        if isinstance(value, str) and value.casefold() in ("true", "false"):
            return value.casefold() == "true"
        if value is not None and not isinstance(value, bool):
            raise self.wrong(member, "true or false is expected")
        return value

    def number(self, member: str, least: int, most: int) -> int | None:
        value = self.members.get(member.casefold())
        if isinstance(value, str) and value.lstrip("-").isascii() and value.lstrip("-").isdigit():
            value = int(value) if len(value) < 20 else None
        if value is None and self.members.get(member.casefold()) is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(member, f"a number from {least} to {most} is expected")
        return value


def _plain(value: object) -> object:
    """A value itself; PowerShell 7 writes what came by remoting with its number and its name."""
    if not isinstance(value, dict):
        return value
    inner = [each for name, each in value.items() if name.casefold() == "value"]
    return next((each for each in inner if isinstance(each, str)), *inner[:1] or [value])


def _objects(path: Path) -> Iterator[Mapping[str, object]]:
    """The objects of a file, which PowerShell writes alone, as a list, or as a counted list."""
    value = _parsed(path)
    if isinstance(value, dict) and isinstance(value.get("value"), list) and "Count" in value:
        value = value["value"]
    for number, each in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(each, dict):
            raise CommandError(f"{path}, object {number}: a queue or a permission is expected.")
        yield each


def _parsed(path: Path) -> Any:
    text = _text(path)
    if not text.strip():
        raise CommandError(f"{path} is empty: the command has found nothing, or has failed.")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise CommandError(f"{path} is no JSON ({place}: {error.msg}); {PAGE}.") from error
    except (RecursionError, ValueError) as error:
        raise CommandError(f"{path} is no JSON that a queue manager prints.") from error


def _text(path: Path) -> str:
    with path.open("rb") as file:
        octets = file.read(LARGEST_FILE + 1)
    if len(octets) > LARGEST_FILE:
        raise CommandError(f"{path} is larger than {LARGEST_FILE >> 20} MiB.")
    encoding = next((name for mark, name in MARKS if octets.startswith(mark)), "utf-8")
    try:
        return octets.decode(encoding)
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is no text of {encoding} (byte {error.start}).") from error


def _queue(place: _Place) -> WindowsQueue:
    name = _name(place)
    settings = QueueSettings(
        transactional=place.flag("Transactional"),
        journal=place.flag("UseJournalQueue"),
        authenticate=place.flag("Authenticate"),
        quota=_quota(place, "MaximumQueueSize"),
        journal_quota=_quota(place, "MaximumJournalSize"),
        label=place.text_of("Label"),
        privacy=_privacy(place),
        base_priority=place.number("BasePriority", -32768, 32767),
    )
    return WindowsQueue(name, settings, place.text_of("MulticastAddress"))


def _name(place: _Place) -> str:
    """`private$\\orders`, from the name, or from the path without its computer."""
    name = place.text_of("QueueName")
    if not name:
        name = place.text_of("Path").partition("\\")[2]
    if not name:
        raise place.wrong("QueueName", f"the name of a queue is expected ({PAGE})")
    return name


def _quota(place: _Place, member: str) -> int | None:
    number = place.number(member, -1, INFINITE)
    return INFINITE if number == -1 else number


def _privacy(place: _Place) -> int | None:
    value = place.members.get("encryptionrequired")
    if isinstance(value, str) and value.casefold() in _PRIVACY:
        return _PRIVACY[value.casefold()]
    return place.number("EncryptionRequired", 0, 2)


def _access_words(places: Sequence[_Place]) -> Mapping[object, str]:
    """What numbers of `Access` mean in a file, none where that is not certain (G366).

    Two enumerations of .NET have the number 1: beside 0 it means deny, beside 3 allow.
    """
    accesses = (place.members.get("access") for place in places)
    numbers = {each for each in accesses if type(each) is int}
    if 0 in numbers and 3 not in numbers:
        return {0: "allow", 1: "deny"}
    if 3 in numbers and 0 not in numbers:
        return {1: "allow", 3: "deny"}
    return {}


def _entry(place: _Place, words: Mapping[object, str]) -> WindowsEntry:
    access = place.members.get("access")
    is_number = isinstance(access, int) and not isinstance(access, bool)
    access = words.get(access) if is_number else access
    if not isinstance(access, str) or access.casefold() not in ("allow", "deny"):
        raise place.wrong("Access", f"`Allow` or `Deny` is expected, as a word ({PAGE})")
    account = place.text_of("AccountName")
    if not account:
        raise place.wrong("AccountName", "an account is expected")
    return WindowsEntry(_name(place), account, access.casefold() == "deny", _mask(place))


def _mask(place: _Place) -> int:
    """Rights by their names, with commas between them, or as a number."""
    value = place.members.get("right")
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= QUEUE.full:
        return value
    words = value.split(",") if isinstance(value, str) else [""]
    mask = 0
    for word in words:
        right = RIGHTS.get(word.strip().casefold())
        if right is None:
            raise place.wrong("Right", f"`{word.strip()}` is no right of a queue")
        mask |= right
    return mask
