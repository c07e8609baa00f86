"""The accounts of a domain in its directory: whether they are valid, their names, their groups."""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from rpcqm.base.errors import DecodeError
from rpcqm.base.text import folded
from rpcqm.codec.security.identifier import Sid
from rpcqm.directory.values import Entry, read_integer

DISABLED = 0x2
"""ADS_UF_ACCOUNTDISABLE in userAccountControl ([MS-ADTS] 2.2.16)."""
ASKED_TOGETHER = 100
"""SIDs in one filter; controllers take filters of some thousands."""

_SID, _CONTROL, _NAME, _GROUPS = (
    *("objectSid", "userAccountControl"),
    *("sAMAccountName", "tokenGroupsGlobalAndUniversal"),
)


class Directory(Protocol):
    """Answers searches of a domain; it raises DirectoryUnavailableError."""

    @property
    def domain_base(self) -> str:
        """The distinguished name of the domain."""
        ...

    @property
    def configuration_base(self) -> str:
        """The distinguished name of the forest's configuration."""
        ...

    def search(
        self, base: str, attributes: Sequence[str], what: str, scope: str
    ) -> AsyncIterator[list[Entry]]:
        """Objects that a filter finds, some at a time."""
        ...


class DirectoryPeople:
    """Asks a directory for accounts, with few searches for many of them."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._short_name = ""

    async def standing(self, sids: Collection[str]) -> Mapping[str, bool]:
        """Whether each account exists and is enabled.

        An account counts as enabled where the directory does not show its state.
        """
        found = dict.fromkeys(sids, False)
        async for sid, entry in self._found(sids, (_SID, _CONTROL)):
            control = entry.first(_CONTROL)
            found[sid] = control is None or not read_integer(control) & DISABLED
        return found

    async def names(self, sids: Collection[str]) -> Mapping[str, str]:
        """Names of existing accounts and groups that can be shown."""
        found: dict[str, str] = {}
        if sids:
            domain = await self._domain()
            async for sid, entry in self._found(sids, (_SID, _NAME)):
                name = _text(entry, _NAME)
                if name.isprintable() and name:
                    found[sid] = f"{domain}\\{name}"
        return found

    async def _domain(self) -> str:
        """The short name of the domain, which is read once ([MS-ADTS] 6.1.1.2.1.1.4)."""
        if not self._short_name:
            directory = self._directory
            what = f"(&(nCName={filter_value(directory.domain_base)})({_SHORT_NAME}=*))"
            places = f"CN=Partitions,{directory.configuration_base}"
            for entry in await self._all(places, (_SHORT_NAME,), what, "one"):
                self._short_name = _text(entry, _SHORT_NAME)
        if not self._short_name.isprintable() or not self._short_name:
            raise DecodeError("the directory does not say the short name of its domain")
        return self._short_name

    async def identifiers(self, names: Collection[str]) -> Mapping[str, str]:
        """SIDs of accounts and groups by their names with that of the domain."""
        found: dict[str, str] = {}
        own = await self._domain() if names else ""
        for name in names:
            domain, _, account = name.partition("\\")
            if folded(domain) != folded(own):
                continue
            what = f"({_NAME}={filter_value(account)})"
            base = self._directory.domain_base
            for entry in await self._all(base, (_SID, _NAME), what, "all"):
                shown = _text(entry, _NAME)
                if shown.isprintable() and folded(shown) == folded(account):
                    found[f"{own}\\{shown}"] = _sid_of(entry)
        return {name: sid for name, sid in found.items() if sid}

    async def groups(self, sid: str) -> frozenset[str]:
        """The global and universal groups, as in a ticket."""
        base = f"<SID={Sid.parse(sid)}>"
        entries = await self._all(base, (_GROUPS,), _ANYTHING, "base")
        values = (value for entry in entries for value in entry.all(_GROUPS))
        return frozenset(str(Sid.decode(value)) for value in values)

    async def _all(
        self, base: str, attributes: Sequence[str], what: str, scope: str
    ) -> list[Entry]:
        """The result of a search; an error in it does not end the search or its caller."""
        found: list[Entry] = []
        async for entries in self._directory.search(base, attributes, what, scope):
            found += entries
        return found

    async def _found(
        self, sids: Collection[str], attributes: Sequence[str]
    ) -> AsyncIterator[tuple[str, Entry]]:
        """The objects of the requested SIDs, without others that come."""
        wanted = frozenset(sids)
        for some in _parts(sorted(wanted)):
            what = "".join(f"(objectSid={Sid.parse(each)})" for each in some)
            base = self._directory.domain_base
            for entry in await self._all(base, attributes, f"(|{what})", "all"):
                sid = _sid_of(entry)
                if sid in wanted:
                    yield sid, entry


_SHORT_NAME = "nETBIOSName"
_ANYTHING = "(objectClass=*)"
_SPECIAL = str.maketrans({each: f"\\{ord(each):02x}" for each in "\\*()\0"})


def filter_value(text: str) -> str:
    """A text as a value in a filter (RFC 4515, 3)."""
    return text.translate(_SPECIAL)


def _text(entry: Entry, attribute: str) -> str:
    return (entry.first(attribute) or b"").decode("utf-8", "replace")


def _sid_of(entry: Entry) -> str:
    try:
        return str(Sid.decode(entry.first(_SID) or b""))
    except DecodeError:
        return ""


def _parts(sids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(sids), ASKED_TOGETHER):
        yield sids[start : start + ASKED_TOGETHER]
