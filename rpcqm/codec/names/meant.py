r"""Guesses the name that was meant by a text without a queue, or by an impossible computer (G475).

[MS-MQMQ] 2.1.1 allows nearly every character in the names of computers and queues, so that
`OS:b\private$\orders` is a queue of the computer `OS:b`. The grammar reads it so; texts that people
type are doubted here first.
"""

import ipaddress
import re

from rpcqm.base.errors import HResult, MQError, NtStatus

_QUOTES = " \t\r\n\"'`\u201c\u201d\u201e\u00ab\u00bb"
_PREFIX = re.compile(r"(?:msmq\.)?formatname\s*[:=]\s*", re.IGNORECASE | re.ASCII)
_AT_FORMAT_NAME = re.compile(
    r"[^\\@]+@((?:(?:msmq\.)?formatname\s*[:=]|direct\s*[:=]).+)", re.IGNORECASE | re.ASCII
)
_DIRECT = re.compile(r"direct\s*[:=]\s*(.+)", re.IGNORECASE | re.ASCII)
_PROTOCOL = re.compile(r"(?:os|tcp)\s*[:=]\s*(.+)", re.IGNORECASE | re.ASCII)
_URL = re.compile(r"([a-z][a-z0-9+.-]*):[/\\]{2}([^/\\]*)[/\\]?(.*)", re.IGNORECASE | re.ASCII)
_HTTP_WITHOUT_SLASHES = re.compile(r"(https?):([^/\\].*)", re.IGNORECASE | re.ASCII)
_PLACE = re.compile(r"(?:(\[[^\]]*\]|[^/\\]*?)(?::[0-9]{1,5})?)[/\\]+(.+)")
_PRIVATE = re.compile(r"private\$?[/\\]+(.+)", re.IGNORECASE | re.ASCII)
_AT = re.compile(r"([^\\/@]+)@([A-Za-z0-9._-]+)", re.ASCII)
_FOUR_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+){3}", re.ASCII)
_SYSTEM = re.compile(r"(?:(.*?)[/\\]+)?(?:system\$?[;:/\\]+)?([^/\\;]+)", re.IGNORECASE | re.ASCII)
_SYSTEM_NAMES = {
    "deadletter": "DeadLetter$",
    "deadletters": "DeadLetter$",
    "deadletterqueue": "DeadLetter$",
    "dlq": "DeadLetter$",
    "deadxact": "XactDeadLetter$",
    "xactdeadletter": "XactDeadLetter$",
    "xactdeadletters": "XactDeadLetter$",
    "deadletterxact": "XactDeadLetter$",
    "transactionaldeadletter": "XactDeadLetter$",
    "transactionaldeadletters": "XactDeadLetter$",
    "journal": "Journal$",
    "journalqueue": "Journal$",
    "systemjournal": "Journal$",
}
"""Wrong spellings of the system's queues, in small letters, without other characters."""
_HERE = ("", ".", "localhost")
_WEB = ("http", "https")
_PRIVATE_BY_SCHEME = ("msmq", "queue", "jms", "activemq", "rabbitmq")
"""Schemes whose path is a private queue; `net.msmq` says so by `private/`."""
_IMPOSSIBLE = set(":=/")
_ODD = set("@/: =\"'")
LONGEST = 1_000
_DEEPEST = 4


def meant(text: str) -> str:
    """The name that was probably meant, or "" without a guess.

    It may be the text itself; the caller checks whether it names a queue.
    """
    return _meant(text, _DEEPEST) if len(text) <= LONGEST else ""


def _meant(text: str, depth: int) -> str:
    text = text.strip(_QUOTES)
    if not depth or not text:
        return ""
    for again in (_PREFIX.match(text), _AT_FORMAT_NAME.fullmatch(text)):
        if again is not None:
            rest = again[1] if again.re is _AT_FORMAT_NAME else text[again.end() :]
            return _meant(rest, depth - 1)
    if system := _system_queue(text):
        return system
    if direct := _DIRECT.fullmatch(text):
        return _addressed(direct[1], depth)
    if _PROTOCOL.fullmatch(text) or _URL.fullmatch(text):
        return _addressed(text, depth)
    if at := _AT.fullmatch(text):
        return _placed(at[2], rf"private$\{at[1]}")
    if private := _PRIVATE.fullmatch(text):
        return _placed(".", rf"private$\{_plain(private[1])}")
    if "/" in text or "\\" in text:
        return _by_path(text.lstrip("/\\"))
    return text


def _addressed(text: str, depth: int) -> str:
    """The name behind `DIRECT=`: a URL, or protocol, computer and queue."""
    text = text.strip(_QUOTES)
    while inner := _PROTOCOL.fullmatch(text):
        text = inner[1].strip(_QUOTES)
    if _PREFIX.match(text) or _DIRECT.fullmatch(text):
        return _meant(text, depth - 1)
    if url := _URL.fullmatch(text):
        return _of_url(url[1].lower(), url[2], url[3])
    if web := _HTTP_WITHOUT_SLASHES.fullmatch(text):
        return _addressed(f"{web[1]}://{web[2]}", depth)
    if text.count("/") + text.count("\\"):
        return _by_path(text.lstrip("/\\"))
    return ""


def _of_url(scheme: str, host: str, path: str) -> str:
    path = path.replace("\\", "/").strip("/")
    if scheme in _WEB:
        below = path if path.lower().startswith("msmq/") else f"msmq/{path}"
        return f"DIRECT={scheme}://{host}/{below}" if path else ""
    user, _, host = host.rpartition("@")
    host = host.partition(":")[0]
    if not path:  # queue://orders, msmq://orders@b
        return _placed(host, rf"private$\{user}") if user else host
    if private := _PRIVATE.fullmatch(path):
        return _placed(host, rf"private$\{_plain(private[1])}")
    kind = "private$\\" if scheme in _PRIVATE_BY_SCHEME else ""
    return _placed(host, kind + _plain(path))


def _by_path(text: str) -> str:
    r"""A computer, perhaps with a port, and a queue, with the slash or the backslash."""
    place = _PLACE.fullmatch(text)
    if place is None:
        return ""
    rest = _PRIVATE.fullmatch(place[2])
    return _placed(place[1], rf"private$\{_plain(rest[1])}" if rest else _plain(place[2]))


def _placed(host: str, queue: str) -> str:
    """The name of a queue at a computer."""
    host = host.strip()
    if host.lower() in _HERE:
        return queue.removeprefix("private$\\") if queue.startswith("private$") else rf".\{queue}"
    bare = host.removeprefix("[").removesuffix("]")
    protocol = "TCP" if is_address(bare) else "OS"
    return rf"DIRECT={protocol}:{bare if protocol == 'TCP' else host}\{queue}"


def _plain(path: str) -> str:
    """A queue's own name: slashes may stand in it, separators around it may not."""
    return path.strip("/\\ ")


def _system_queue(text: str) -> str:
    parts = _SYSTEM.fullmatch(text)
    if parts is None or any(mark in text for mark in ":=@"):
        return ""
    found = _SYSTEM_NAMES.get(re.sub("[^a-z]", "", parts[2].lower()), "")
    host = parts[1] or ""
    if not found or "private" in host.lower():
        return ""
    return found if host.lower() in _HERE else rf"{host}\{found}"


def is_address(host: str) -> bool:
    """Whether a text is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class DoubtedName(MQError):
    """A text that cannot name a queue; `reason` is the end of a sentence."""

    def __init__(self, text: str, reason: str, status: HResult | NtStatus) -> None:
        super().__init__(status, f"`{text}` names no queue{reason}")
        self.reason = reason


def doubt_url(text: str) -> None:
    """Refuse a URL in the place of a queue's name. Raises DoubtedName."""
    if _URL.fullmatch(text):
        raise doubted(text)


def doubt_computer(text: str, computer: str) -> None:
    """Refuse an impossible name of a computer. Raises DoubtedName."""
    if _FOUR_NUMBERS.fullmatch(computer) and not is_address(computer):
        reason = f": `{computer}` is no address, in which each number is at most 255"
        raise DoubtedName(text, reason, HResult.MQ_ERROR_ILLEGAL_FORMATNAME)
    if _IMPOSSIBLE & set(computer) and not is_address(computer):
        raise doubted(text)


def doubted(
    text: str, status: HResult | NtStatus = HResult.MQ_ERROR_ILLEGAL_FORMATNAME
) -> DoubtedName:
    """The refusal of a text, with the name that was probably meant."""
    return DoubtedName(text, did_you_mean(text), status)


def did_you_mean(text: str) -> str:
    """The end of a sentence about a text that names no queue; "" without a guess."""
    guess = meant(text)
    return f"; did you mean `{guess}`?" if guess and guess != text else ""


def hint_for(queue: str) -> str:
    """The same about a missing private queue; only odd names get a hint."""
    is_odd = bool(_ODD & set(queue)) or _system_queue(queue) != ""
    return did_you_mean(queue) if is_odd else ""
