"""Joining Samba's domain and leaving it, and what a data directory is after that."""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.adm.directory_writer import DirectoryAnswer
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.directory.process import WORKER
from rpcqm.directory.reading import Settings
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.service.directory_membership import Membership, MembershipError, look_at
from rpcqm.store.directory_mark import look_at as mark_of
from tests.support.directory.domain import CONTROLLER, MACHINE, REALM, Domain
from tests.support.directory.domain_objects import OWN_COMPUTER, SITES
from tests.support.queue_manager import RunningQueueManager
from tests.support.waiting import PATIENCE

OWN = f"CN=msmq,{OWN_COMPUTER}"
NAMES = QueueManagerSettings("QM1", "qm1.corp.test")


@pytest.fixture(autouse=True)
def environment(domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in domain.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(autouse=True)
def left(domain: Domain) -> Iterator[None]:
    yield
    member(domain, lambda it: it.leave(Path("/nonexistent")))


def member(
    domain: Domain,
    use: Callable[[Membership], Awaitable[DirectoryAnswer]],
    dry_run: bool = False,
) -> DirectoryAnswer:
    settings = Settings(
        "corp.test",
        (CONTROLLER,),
        timeout=PATIENCE,
        keytab=str(domain.keytab),
        principal=f"{MACHINE}@{REALM}",
    )

    async def run() -> DirectoryAnswer:
        machine = QueueManager(computer_name="QM1", qualified_computer_name="qm1.corp.test")
        it = Membership(settings, machine, dry_run, domain.namespace.argv(WORKER))
        try:
            return await use(it)
        finally:
            await it.stop()

    return asyncio.run(run())


def join(
    domain: Domain, data: Path, site: str = "Berlin", new: bool = False, dry_run: bool = False
) -> DirectoryAnswer:
    return member(domain, lambda it: it.join(data, site, new), dry_run)


def run(data: Path, use: Callable[[RunningQueueManager], object] = lambda _: None) -> UUID:
    """Run a queue manager on the data for a time, as its mark says; its identifier."""
    order = mark_of(data).order if data.exists() else ""
    running = RunningQueueManager(data, replace(NAMES, identity_order=order))
    use(running)
    running.settle()
    running.stop()
    return running.engine.queue_manager.identifier


def test_a_new_queue_manager_has_the_identifier_of_its_object(
    domain: Domain, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    planned = join(domain, data, dry_run=True)
    assert planned.steps == (f"add {OWN}",)
    assert not data.exists()
    joined = join(domain, data)
    assert joined.identifier == domain.identifier(OWN)
    assert run(data) == run(data) == joined.identifier
    assert join(domain, data).steps == ()
    assert look_at(data).identifier == joined.identifier


def test_who_has_messages_is_refused_unless_it_may_be_another(
    domain: Domain, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    before = run(data, lambda qm: qm.send(qm.create(), b"kept"))
    with pytest.raises(MembershipError, match=r"has messages of .*--new-identifier"):
        join(domain, data)
    assert run(data) == before
    joined = join(domain, data, new=True)

    def kept(qm: RunningQueueManager) -> None:
        assert qm.bodies(qm.find()) == [b"kept"]

    assert run(data, kept) == joined.identifier != before
    assert run(data, kept) == joined.identifier


def test_who_has_no_messages_yet_joins(domain: Domain, tmp_path: Path) -> None:
    data = tmp_path / "data"
    before = run(data)
    joined = join(domain, data)
    assert run(data) == joined.identifier != before


@pytest.mark.conformance("MQDSSM-create-qm-preconditions")
def test_a_site_that_is_not_there_or_not_said_is_named(domain: Domain, tmp_path: Path) -> None:
    with pytest.raises(MembershipError, match=r"There is no site Rome\."):
        join(domain, tmp_path, site="Rome")
    with pytest.raises(MembershipError, match=r"by --site: .*Berlin.*Paris"):
        join(domain, tmp_path, site="")
    joined = join(domain, tmp_path / "data", site="Paris")
    assert joined.identifier is not None
    assert domain.identifier(f"CN=Paris,{SITES}")


def test_an_object_that_is_there_keeps_what_its_administrators_have_decided(
    domain: Domain, tmp_path: Path
) -> None:
    berlin = domain.identifier(f"CN=Berlin,{SITES}")
    domain.add(
        f"dn: {OWN}\nobjectClass: mSMQConfiguration\nmSMQRoutingServices: TRUE\n"
        f"mSMQQuota: 5\nmSMQSites:: {b64encode(berlin.bytes_le).decode()}\n"
    )
    with pytest.raises(MembershipError, match="Insufficient access"):
        join(domain, tmp_path / "data")  # nobody has let the machine write it
    search = ("ldbsearch", "-H", domain.database, "-s", "base", "-b")
    sid = domain.run(*search, OWN_COMPUTER, "objectSid").split("objectSid: ")[1].split()[0]
    domain.samba_tool("dsacl", "set", f"--objectdn={OWN}", f"--sddl=(A;;RPWP;;;{sid})")
    joined = join(domain, tmp_path / "data", site="")
    assert "mSMQQuota" in joined.steps[0]
    found = domain.run(*search, OWN)
    assert "mSMQRoutingServices: TRUE" in found
    assert f"mSMQSites: {berlin}" in found
    domain.delete(OWN)
