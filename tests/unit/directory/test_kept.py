"""What was read of a directory, kept on disk."""

import stat
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.adm.directory import DIRECTORY_ATTRIBUTES, DirectoryContents, DirectoryUnavailableError
from rpcqm.adm.directory_object import Enterprise, QueueAlias, RoutingLink, Site, User
from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import DecodeError
from rpcqm.codec.security.identifier import Sid
from rpcqm.config.directory import load_directory
from rpcqm.config.directory_export import directory_file
from rpcqm.directory.kept import NAME, Kept, read_kept, write_kept
from rpcqm.directory.reading import Settings
from rpcqm.directory.replica import LdapReplica


def contents() -> DirectoryContents:
    sites = [Site(UUID(int=number), f"site{number}") for number in (1, 2)]
    router = QueueManager(UUID(int=3), computer_name="ROUTER1", unsaid=frozenset({"security"}))
    router.site_identifier_list = [sites[0].identifier]
    sites[0].site_gate_collection = [router]
    link = RoutingLink(UUID(int=4), "over the Rhine", actual_cost=7)
    link.site1_identifier, link.site2_identifier = sites[0].identifier, sites[1].identifier
    link.site1_reference, link.site2_reference = sites
    link.site_gate_identifier_list, link.site_gate_collection = [router.identifier], [router]
    queue = Queue(UUID(int=5), "offers", pathname="router1\\offers", queue_manager=router)
    queue.queue_type = QueueType.PUBLIC
    return DirectoryContents(
        Enterprise(UUID(int=6), "corp.test"),
        sites,
        [link],
        [router],
        [queue],
        [User(UUID(int=7), b"\1", [b"digest"], b"\0\xff")],
        queue_aliases=[QueueAlias(UUID(int=8), "shop", "DIRECT=OS:a\\b")],
    )


def test_what_is_kept_is_read_as_it_was(tmp_path: Path) -> None:
    path, made = tmp_path / NAME, contents()
    write_kept(path, Kept(made, 12.5, "corp.test"))
    read = read_kept(path, "corp.test")
    assert read is not None
    assert read.read_at == 12.5
    for kind, names in DIRECTORY_ATTRIBUTES.items():
        pairs = list(zip(made.of(kind), read.contents.of(kind), strict=True))
        for one, other in pairs:
            assert one.unsaid == other.unsaid
            for name in set(names) - {"security", "scope"}:
                assert getattr(one, name) == getattr(other, name), name
    assert read.contents.queues[0].queue_manager is read.contents.queue_managers[0]
    link = read.contents.routing_links[0]
    assert link.site1_reference is read.contents.sites[0]
    assert link.site_gate_collection == read.contents.sites[0].site_gate_collection
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_of_another_domain_or_not_there_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / NAME
    assert read_kept(path, "corp.test") is None
    write_kept(path, Kept(contents(), 0, "corp.test"))
    assert read_kept(path, "other.test") is None


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]\n", b'{"version": 1, "domain": "x"}\n'])
def test_a_damaged_file_is_refused_and_a_replica_starts_without_it(
    tmp_path: Path, damage: bytes
) -> None:
    path = tmp_path / NAME
    path.write_bytes(damage)
    with pytest.raises(DecodeError):
        read_kept(path, "x")
    LdapReplica(Settings("x"), tmp_path).load()


@pytest.mark.parametrize("lines", range(1, 9))
def test_a_file_that_misses_lines_in_between_is_refused_or_read(tmp_path: Path, lines: int) -> None:
    path = tmp_path / NAME
    write_kept(path, Kept(contents(), 0, "x"))
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:lines] + whole[lines + 1 :]))
    LdapReplica(Settings("x"), tmp_path).load()


def test_a_replica_serves_what_was_kept_until_it_is_too_old(tmp_path: Path) -> None:
    write_kept(tmp_path / NAME, Kept(contents(), 0, "x"))
    replica = LdapReplica(Settings("x"), tmp_path)
    replica.load()
    with pytest.raises(DirectoryUnavailableError, match="seconds old"):
        replica()
    lasting = LdapReplica(Settings("x", keep_for=1e12), tmp_path)
    lasting.load()
    assert lasting().queues[0].label == "offers"
    assert lasting.offline
    assert lasting.counts()["Site"] == 2


def test_what_is_exported_is_a_directory_file_of_the_same(tmp_path: Path) -> None:
    made = contents()
    made.users[0].security_identifier = Sid.parse("S-1-5-21-1-2-3-4").encode()
    path = tmp_path / "directory.toml"
    path.write_text("\n".join(directory_file(made)))
    read = load_directory(path)
    assert [each.name for each in read.sites] == ["site1", "site2"]
    assert read.routing_links[0].actual_cost == 7
    assert read.sites[0].site_gate_collection == read.queue_managers
    (queue,) = read.queues
    assert (queue.identifier, queue.label, queue.quota) == (UUID(int=5), "offers", 0xFFFFFFFF)
    assert read.queue_aliases[0].format_name == "DIRECT=OS:a\\b"
    assert len(read.users) == 1
