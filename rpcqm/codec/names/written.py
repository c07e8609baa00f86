r"""The names of queues as people may write them.

`orders` is the private queue of that name at the queue manager that is asked, `orders;late` its
subqueue, `.\private$\orders` and `HOST\private$\orders` are path names, and a text that begins like
`DIRECT=` is a format name, with or without the `FormatName:` of System.Messaging. `Journal$`,
`DeadLetter$` and `XactDeadLetter$` are system queues, as on Windows.
"""

import contextlib
import functools
import re
from collections.abc import Callable
from typing import TypeVar

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import PREFIX, FormatName
from rpcqm.codec.names.meant import (
    DoubtedName,
    doubt_computer,
    doubt_url,
    doubted,
    hint_for,
    is_address,
    meant,
)
from rpcqm.codec.names.path_name import COMPUTER_NAME, PathName

T = TypeVar("T")

_FORMAT_NAME = re.compile(rf"{PREFIX}|\w+=", re.IGNORECASE | re.ASCII)
_URL = re.compile("https?://", re.IGNORECASE)
_WITHOUT_COMPUTER = re.compile(r"(?:private\$\\|system\$;).+", re.IGNORECASE | re.ASCII)
_QUEUE_JOURNAL = re.compile(r"(.+)\\journal\$", re.IGNORECASE)
_COMPUTER = re.compile(COMPUTER_NAME)
_SYSTEM_QUEUES = {
    "journal$": "system$;JOURNAL",
    "deadletter$": "system$;DEADLETTER",
    "xactdeadletter$": "system$;DEADXACT",
}
DEAD_LETTER_QUEUES = ("DeadLetter$", "XactDeadLetter$")
"""The system's dead-letter queues: of ordinary messages, and of transactional ones."""
SYSTEM_QUEUES = (*DEAD_LETTER_QUEUES, "Journal$")
_AS_WRITTEN = {
    "system$;journal": "Journal$",
    "system$;deadletter": "DeadLetter$",
    "system$;deadxact": "XactDeadLetter$",
}
HERE = "."
DIRECT = "DIRECT="
REMEMBERED, LONGEST_REMEMBERED = 1024, 300
"""How many texts are cached, and their greatest length: programs repeat them."""


def path_name(text: str, host: str = HERE) -> PathName:
    """The path name for a text; `.` and a missing computer mean `host`.

    Raises MQError(MQ_ERROR_ILLEGAL_QUEUE_PATHNAME) if the text names no queue, and
    MQError(MQ_ERROR_ILLEGAL_FORMATNAME) for a format name that is not direct.
    """
    path = _told_what_was_meant(text, lambda: _path_name(text, host))
    doubt_computer(text, path.computer)
    if path.computer == HERE:
        return PathName(host, path.queue, path.kind, path.suffix)
    return path


def _path_name(text: str, host: str) -> PathName:
    if is_format_name(text):
        return FormatName.parse(text).path_name
    return PathName.parse(_with_computer(text, host))


def _told_what_was_meant(text: str, read: Callable[[], T]) -> T:
    """The result of `read`; DoubtedName if it fails and another name was probably meant."""
    try:
        return read()
    except MQError as error:
        guess = meant(text)
        if isinstance(error, DoubtedName) or not guess or guess == text or not _is_name(guess):
            raise
        raise doubted(text, error.status) from None


def _is_name(text: str) -> bool:
    with contextlib.suppress(MQError):
        name = FormatName.parse(text) if is_format_name(text) else None
        return name is not None or bool(_path_name(text, HERE))
    return False


def no_such_queue(name: FormatName) -> MQError:
    """MQ_ERROR_QUEUE_NOT_FOUND, with the probably meant name if the name is odd."""
    return MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, f"{name}{hint_of(name)}")


def hint_of(name: FormatName) -> str:
    """The end of a sentence about a missing queue: the probably meant one, or ""."""
    is_address = isinstance(name.value, str) and not name.is_http
    return hint_for(name.direct_name.queue) if is_address else ""


def _with_computer(text: str, host: str) -> str:
    computer, backslash, rest = text.rpartition("\\")
    if rest.casefold() in _SYSTEM_QUEUES and (not backslash or _COMPUTER.fullmatch(computer)):
        return f"{computer or host}\\{_SYSTEM_QUEUES[rest.casefold()]}"
    if journal := _QUEUE_JOURNAL.fullmatch(text):
        return _with_computer(journal[1], host) + ";JOURNAL"
    if _WITHOUT_COMPUTER.fullmatch(text):
        return f"{host}\\{text}"
    return text if backslash else f"{host}\\private$\\{text}"


def shown_name(text: str) -> str:
    """The common name of a system queue, like `DeadLetter$`; others unchanged."""
    computer, _, rest = text.rpartition("\\")
    return text if is_format_name(computer) else _AS_WRITTEN.get(rest.lower(), text)


def short_name(path: str) -> str:
    """The short name of a local queue: a private one without computer and `private$`."""
    _, private, name = path.rpartition("private$\\")
    return name if private else shown_name(path)


def is_direct(text: str) -> bool:
    """Whether a text begins as direct format names do."""
    return text[: len(DIRECT)].upper() == DIRECT


def is_format_name(text: str) -> bool:
    """Whether a text begins as format names do."""
    return _FORMAT_NAME.match(text) is not None


def is_url(text: str) -> bool:
    """Whether a text is a URL, which names a queue behind `DIRECT=` only."""
    return _URL.match(text) is not None


def format_names(text: str, host: str = HERE) -> tuple[FormatName, ...]:
    """The format names for one text or several with commas between them.

    Raises MQError as `format_name` does.
    """
    short = len(text) <= LONGEST_REMEMBERED
    return (_remembered_several if short else _read_several)(text, host)


def format_name(text: str, host: str = HERE) -> FormatName:
    """The format name for a text.

    If the computer is an IP address, the format name begins with DIRECT=TCP, else DIRECT=OS.
    Raises MQError(MQ_ERROR_ILLEGAL_FORMATNAME) or MQError(MQ_ERROR_ILLEGAL_QUEUE_PATHNAME).
    """
    short = len(text) <= LONGEST_REMEMBERED
    return (_remembered if short else _read)(text, host)


def _read(text: str, host: str) -> FormatName:
    doubt_url(text)
    if is_format_name(text):
        name = _told_what_was_meant(text, lambda: FormatName.parse(text))
        if is_direct(str(name)) and name.direct_name.protocol in ("OS", "TCP"):
            doubt_computer(text, name.direct_name.host)
        return name
    path = path_name(text, host)
    protocol = "TCP" if is_address(path.computer) else "OS"
    return FormatName.direct(f"{protocol}:{path}")


_remembered = functools.lru_cache(REMEMBERED)(_read)


def _read_several(text: str, host: str) -> tuple[FormatName, ...]:
    # The name of a distribution list may hold commas itself.
    texts = [text] if text[:3].upper() == "DL=" else text.split(",")
    return tuple(format_name(each, host) for each in texts)


_remembered_several = functools.lru_cache(REMEMBERED)(_read_several)


def subqueue_name(queue: FormatName, name: str) -> FormatName:
    """The subqueue of a queue, or of a subqueue's queue; the queue itself if `name` is empty.

    Raises MQError(MQ_ERROR_ILLEGAL_FORMATNAME) if `queue` is not a direct name.
    """
    protocol = queue.direct_name.protocol
    path = queue.path_name.parent
    suffix = f";{name}" if name else ""
    return FormatName.direct(f"{protocol}:{path}{suffix}")
