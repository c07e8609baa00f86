"""The objects of a directory as they were read, and the bounds of what is kept of them."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.directory import objects as bounds
from rpcqm.directory import reading
from rpcqm.directory.objects import Objects
from rpcqm.directory.process import DirectoryProcess
from rpcqm.directory.reading import DirectoryReader, Settings
from rpcqm.directory.replica import MISS_SECONDS, LdapReplica
from rpcqm.directory.values import Entry

MACHINE = "CN=msmq,CN=QM2,DC=x"
_numbers = iter(range(1, 1 << 20))


def entry(name: str, kind: str, **values: bytes) -> Entry:
    found = {key.lower(): [value] for key, value in values.items()}
    guid = UUID(int=next(_numbers)).bytes_le
    return Entry(name, {"objectclass": [b"top", kind.encode()], "objectguid": [guid], **found})


@pytest.fixture
def made() -> Objects:
    made = Objects(3)
    made.take(entry(MACHINE, "mSMQConfiguration"))
    made.make_machines()
    return made


@pytest.mark.bound("directory.most_objects")
def test_queues_beyond_the_bound_are_counted(made: Objects) -> None:
    for number in range(5):
        made.take(entry(f"CN=q{number},{MACHINE}", "mSMQQueue"))
        made.make_queues()
    assert len(made.contents().queues) == 3
    assert made.left_out == 2


@pytest.mark.bound("directory.skipped")
def test_so_many_objects_with_wrong_values_are_named(made: Objects) -> None:
    for number in range(bounds.MOST_SKIPPED + 1):
        made.take(entry(f"CN=s{number},DC=x", "site", mSMQInterval1=b"soon"))
    assert made.contents().sites == []
    assert len(made.skipped) == bounds.MOST_SKIPPED


@pytest.mark.bound("directory.certificate_octets")
def test_a_user_with_too_many_certificates_is_left_out(made: Objects) -> None:
    for size in (0, 1):
        octets = bytes(bounds.LARGEST_CERTIFICATES + size)
        made.take(entry(f"CN=u{size},DC=x", "user", objectSid=b"\1", mSMQSignCertificates=octets))
    assert len(made.contents().users) == 1
    assert "too large" in made.skipped["CN=u1,DC=x"]


@pytest.mark.parametrize("kind", ["mSMQQueue", "mSMQConfiguration", "mSMQSiteLink", "group"])
def test_a_damaged_name_or_identifier_leaves_only_its_object_out(made: Objects, kind: str) -> None:
    for name in ("", "CN=a\\", "CN=x", "a,b,c"):
        made.take(entry(name, kind))
        made.take(Entry(name, {"objectclass": [kind.encode()], "objectguid": [b"short"]}))
    made.make_machines()
    made.make_queues()
    assert len(made.contents().queue_managers) == 1


@pytest.mark.conformance("MQDSSM-read-qm")
def test_a_queue_manager_has_what_its_computer_says(made: Objects) -> None:
    made.take(entry("CN=QM2,DC=x", "computer", dNSHostName=b"qm2.corp.test"))
    made.take(entry("CN=QM3,DC=x", "computer", dNSHostName=b"qm3.corp.test"))
    made.make_machines()
    (machine,) = made.contents().queue_managers
    assert (machine.computer_name, machine.qualified_computer_name) == ("QM2", "qm2.corp.test")


def test_what_is_gone_is_dropped(made: Objects) -> None:
    made.take(entry(f"CN=q,{MACHINE}", "mSMQQueue"))
    made.make_queues()
    assert made.contents().queues
    made.keep_only(set())
    made.make_machines()
    assert not made.contents().queue_managers
    assert not made.contents().queues


class Groups(DirectoryProcess):
    """A directory in which every group is in another one."""

    def __init__(self) -> None:
        super().__init__(1)
        self.searches = 0

    async def search(self, *words: object, **more: object) -> AsyncIterator[list[Entry]]:
        self.searches += 1
        name = f"CN=g{self.searches},DC=x"
        yield [entry(name, "group", memberOf=f"CN=g{self.searches + 1},DC=x".encode())]


@pytest.mark.bound("directory.lists")
def test_so_many_groups_in_groups_are_read(made: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_LISTS", 5)
    groups = Groups()
    reader = DirectoryReader(Settings("x"), groups)
    reader.root = reading.Root("", "DC=x", "CN=c,DC=x", "x", 1, b"", "")
    asyncio.run(reader._read_lists(made, {"cn=g1,dc=x": "CN=g1,DC=x"}))
    assert groups.searches == len(made.lists) == 5


@pytest.mark.bound("directory.miss_seconds")
def test_misses_bring_one_round_in_so_many_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica, now = LdapReplica(Settings("x"), tmp_path), 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    replica.missed()
    assert not replica._early.is_set()  # nothing is connected
    replica.connected = True
    replica.missed()
    assert replica._early.is_set()
    replica._early.clear()
    now += MISS_SECONDS - 1
    replica.missed()
    assert not replica._early.is_set()
    now += 1
    replica.missed()
    assert replica._early.is_set()
    assert replica.misses == 4
