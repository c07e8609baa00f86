"""Who an account of a domain is by its ticket: against impacket, and what is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from impacket.krb5.pac import VALIDATION_INFO

from rpcqm.base.errors import DecodeError
from rpcqm.codec.security.logon_information import MOST_GROUPS, read_logon_information
from tests.support.rpc.privileges import DOMAIN, USERS, Person, logon_information

ELSEWHERE = "S-1-5-21-7-8-9"
SMALL = st.integers(0, 0xFFFFFFFF)
SIDS = st.lists(SMALL, min_size=1, max_size=5).map(
    lambda parts: "-".join(("S-1-5", *map(str, parts)))
)


def groups_of(person: Person) -> set[str]:
    return {str(each) for each in read_logon_information(logon_information(person)).groups}


def test_an_account_has_its_groups_of_all_three_lists() -> None:
    person = Person(
        groups=[USERS, 1110],
        extra=["S-1-18-1", f"{ELSEWHERE}-1200"],
        resource=[1300],
        resource_domain=ELSEWHERE,
        primary=514,
    )
    found = read_logon_information(logon_information(person))
    assert (found.account, found.domain, str(found.sid)) == ("alice", "CORP", f"{DOMAIN}-1103")
    assert groups_of(person) == {
        *(f"{DOMAIN}-{number}" for number in (514, USERS, 1110)),
        *("S-1-18-1", f"{ELSEWHERE}-1200", f"{ELSEWHERE}-1300"),
    }


def test_groups_that_are_not_enabled_or_not_announced_do_not_count() -> None:
    person = Person(groups=[1110], extra=["S-1-18-1"], resource=[5], resource_domain=ELSEWHERE)
    assert groups_of(replace(person, attributes=0x3)) == {f"{DOMAIN}-{USERS}"}
    assert groups_of(replace(person, flags=0)) == {f"{DOMAIN}-{USERS}", f"{DOMAIN}-1110"}


@pytest.mark.parametrize(
    "sid", ["S-1-5-32-544", "S-1-5-18", "S-1-5-7", "S-1-1-0", "S-1-5-21-1-2-3", "S-1-16-12288"]
)
def test_a_domain_gives_nobody_groups_of_this_machine(sid: str) -> None:
    assert groups_of(Person(extra=[sid, "S-1-18-1"])) == {f"{DOMAIN}-{USERS}", "S-1-18-1"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"domain": None}, "names no domain"),
        ({"domain": "S-1-5-32"}, "S-1-5-32 is no domain"),
        ({"domain": "S-1-5-21-1-2"}, "is no domain"),
        ({"domain": "S-1-5-21-1-2-3-4"}, "is no domain"),
        ({"resource": [544], "resource_domain": "S-1-5-32"}, "S-1-5-32 is no domain"),
        ({"number": 0, "extra": [f"{DOMAIN}-500"]}, "is no account"),
        ({"number": 512}, "is no account"),
        ({"flags": 1}, "a guest's, or disabled"),
        ({"control": 0x11}, "a guest's, or disabled"),
    ],
)
def test_what_is_no_account_of_a_domain_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        read_logon_information(logon_information(replace(Person(), **change)))  # type: ignore[arg-type]


@pytest.mark.bound("domain.groups_of_account")
def test_groups_beyond_the_bound_refuse_the_account() -> None:
    """Fewer would be wrong, too: a descriptor may deny something to the one that is left out."""
    most = Person(groups=range(2000, 2000 + MOST_GROUPS - 1), extra=["S-1-18-1"])
    assert len(groups_of(most)) == MOST_GROUPS + 1
    for change in ({"groups": range(3000, 5000)}, {"groups": range(2000, 2000 + MOST_GROUPS)}):
        with pytest.raises(DecodeError, match=f"more than {MOST_GROUPS} groups"):
            read_logon_information(logon_information(replace(most, **change)))  # type: ignore[arg-type]


@given(
    st.builds(
        Person,
        name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9),
        number=SMALL,
        groups=st.lists(SMALL, max_size=4),
        extra=st.lists(SIDS, max_size=3),
        resource=st.lists(SMALL, max_size=3),
        resource_domain=st.none() | SIDS,
        primary=SMALL,
    )
)
def test_impacket_reads_the_same(person: Person) -> None:
    octets = logon_information(person)
    theirs = VALIDATION_INFO()
    theirs.fromString(octets)
    theirs.fromStringReferents(octets[len(theirs.getData()) :])
    read = theirs["Data"]
    assert (read["UserId"], read["PrimaryGroupId"]) == (person.number, person.primary)
    assert (read["EffectiveName"] or "\0").strip("\0") == person.name
    told = [each["RelativeId"] for each in read["GroupIds"] or ()]
    assert told == list(person.groups)
    sids = [each["Sid"].formatCanonical() for each in read["ExtraSids"] or ()]
    assert sids == list(person.extra)
    resource = [each["RelativeId"] for each in read["ResourceGroupIds"] or ()]
    assert resource == list(person.resource)


@given(st.data())
def test_damaged_octets_are_refused_or_read_and_nothing_else(data: st.DataObject) -> None:
    whole = logon_information(Person(groups=[1, 2], extra=["S-1-18-1", f"{ELSEWHERE}-7"]))
    changed = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if changed:
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read_logon_information(bytes(changed))
    except DecodeError:
        return
    assert len(found.groups) <= MOST_GROUPS + 1
