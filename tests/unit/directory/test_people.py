"""What is asked of a directory about accounts, and what its answers mean."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.directory.people import ASKED_TOGETHER, DirectoryPeople
from rpcqm.directory.values import Entry

DOMAIN = "S-1-5-21-1-2-3"
ALICE, BOB, CAROL = (f"{DOMAIN}-{number}" for number in (1103, 1104, 1105))
BASE = "DC=corp,DC=test"


def entry(sid: str, **values: bytes) -> Entry:
    found = {name.replace("_", "-").lower(): [value] for name, value in values.items()}
    return Entry(f"CN={sid}", {"objectsid": [sid_bytes(sid)], **found})


class Directory:
    """Says what it was given, whatever is asked."""

    domain_base, configuration_base = BASE, f"CN=Configuration,{BASE}"

    def __init__(self, *found: Entry) -> None:
        self.found = found
        self.asked: list[tuple[str, str, str]] = []

    async def search(
        self, base: str, attributes: Sequence[str], what: str, scope: str
    ) -> AsyncIterator[list[Entry]]:
        self.asked.append((base, what, scope))
        if base.startswith("CN=Partitions,"):
            yield [Entry(base, {"netbiosname": [b"CORP"]})]
            return
        for each in self.found:
            yield [each]


def test_an_account_stands_that_is_there_and_not_disabled() -> None:
    directory = Directory(
        entry(ALICE, userAccountControl=b"512"),
        entry(BOB, userAccountControl=b"514"),
        entry(f"{DOMAIN}-9", userAccountControl=b"512"),
        Entry("CN=nobody", {}),
    )
    people = DirectoryPeople(directory)
    assert asyncio.run(people.standing([ALICE, BOB, CAROL])) == {
        ALICE: True,
        BOB: False,
        CAROL: False,
    }
    (asked,) = directory.asked
    what = f"(|(objectSid={ALICE})(objectSid={BOB})(objectSid={CAROL}))"
    assert asked == (BASE, what, "all")


def test_where_disabled_accounts_cannot_be_seen_they_stand() -> None:
    assert asyncio.run(DirectoryPeople(Directory(entry(ALICE))).standing([ALICE])) == {ALICE: True}


def test_many_are_asked_about_together() -> None:
    directory = Directory()
    sids = [f"{DOMAIN}-{number}" for number in range(1000, 1000 + 2 * ASKED_TOGETHER + 1)]
    standing = asyncio.run(DirectoryPeople(directory).standing(sids))
    assert len(directory.asked) == 3
    assert set(standing) == set(sids)


@pytest.mark.parametrize("control", [b"", b"x", b"99999999999"])
def test_a_number_that_is_none_is_no_answer(control: bytes) -> None:
    directory = Directory(entry(ALICE, userAccountControl=control))
    with pytest.raises(DecodeError):
        asyncio.run(DirectoryPeople(directory).standing([ALICE]))


def test_names_are_those_that_can_be_shown() -> None:
    directory = Directory(
        entry(ALICE, sAMAccountName="alicé".encode()),
        entry(BOB, sAMAccountName=b"b\x1b[2J"),
        entry(CAROL),
    )
    people = DirectoryPeople(directory)
    assert asyncio.run(people.names([ALICE, BOB, CAROL])) == {ALICE: "CORP\\alicé"}
    assert asyncio.run(people.names([])) == {}
    short = f"(&(nCName={BASE})(nETBIOSName=*))"
    assert directory.asked[0] == (f"CN=Partitions,CN=Configuration,{BASE}", short, "one")
    assert len(directory.asked) == 2


def test_the_groups_of_an_account_are_read_from_itself() -> None:
    found = Entry("CN=alice", {"tokengroupsglobalanduniversal": [sid_bytes(BOB), sid_bytes(CAROL)]})
    directory = Directory(found)
    assert asyncio.run(DirectoryPeople(directory).groups(ALICE)) == {BOB, CAROL}
    assert directory.asked == [(f"<SID={ALICE}>", "(objectClass=*)", "base")]


@pytest.mark.parametrize("sid", ["*", "S-1-5-21)(cn=*", ""])
def test_what_is_no_sid_is_in_no_filter(sid: str) -> None:
    directory = Directory()
    people = DirectoryPeople(directory)
    for ask in (people.standing([sid]), people.groups(sid)):
        with pytest.raises(ValueError, match="is no SID"):
            asyncio.run(ask)
    assert directory.asked == []


def test_identifiers_are_those_of_exactly_these_names() -> None:
    directory = Directory(
        entry(ALICE, sAMAccountName=b"alice"),
        entry(BOB, sAMAccountName=b"bob"),
    )
    people = DirectoryPeople(directory)
    found = asyncio.run(people.identifiers(["corp\\Alice", "OTHER\\bob"]))
    assert found == {"CORP\\alice": ALICE}
    assert directory.asked[1:] == [(BASE, "(sAMAccountName=Alice)", "all")]


def test_names_are_values_in_filters_and_nothing_else() -> None:
    directory = Directory()
    asyncio.run(DirectoryPeople(directory).identifiers(["CORP\\a*)(cn=\0"]))
    assert directory.asked[1][1] == "(sAMAccountName=a\\2a\\29\\28cn=\\00)"
