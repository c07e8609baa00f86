"""Writing the objects of a queue manager into Samba's directory, as its machine."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from rpcqm.adm.directory_writer import DirectoryAnswer
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.security.descriptor import SecurityDescriptor
from rpcqm.codec.security.directory_rights import QUEUE_RIGHTS, from_directory
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel
from rpcqm.directory.machine_orders import machine_order, queue_order
from rpcqm.directory.names import child_of
from rpcqm.directory.process import WORKER, DirectoryProcess
from rpcqm.directory.reading import DirectoryReader, Settings
from rpcqm.directory.writing import (
    CREATE_MACHINE,
    CREATE_QUEUE,
    DELETE_MACHINE,
    DELETE_QUEUE,
    WRITE_MACHINE,
    WRITE_QUEUE,
    WriteOrder,
    carry_out,
)
from rpcqm.qm.publications import PUBLISHED
from tests.support.directory.domain import CONTROLLER, MACHINE, REALM, Domain
from tests.support.directory.domain_objects import BASE, OTHER, OWN_COMPUTER, SITES
from tests.support.waiting import PATIENCE

OWN = f"CN=msmq,{OWN_COMPUTER}"
SUCCESS = DirectoryOperationResult.SUCCESS
NOT_FOUND = DirectoryOperationResult.OBJECT_NOT_FOUND
EXISTS = DirectoryOperationResult.OBJECT_ALREADY_EXISTS
ALL = (*PUBLISHED, "transactional")
SERVER = f"CN=QM1,CN=Servers,CN=Berlin,{SITES}"
SETTINGS_CLASS = "9a0dc347-c100-11d1-bbc5-0080c76670c0"


@pytest.fixture(autouse=True)
def environment(domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in domain.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def joined(domain: Domain, machine: QueueManager) -> Iterator[UUID]:
    """The queue manager's own object, for the time of a test."""
    answer = write(domain, machine_order(CREATE_MACHINE, machine, settings=True))
    assert answer.identifier is not None
    yield answer.identifier
    left = write(domain, machine_order(DELETE_MACHINE, machine, settings=True))
    assert left.result in (SUCCESS, NOT_FOUND), left


@pytest.fixture
def machine(domain: Domain) -> QueueManager:
    return QueueManager(
        computer_name="QM1",
        qualified_computer_name="qm1.corp.test",
        site_identifier_list=[domain.identifier(f"CN=Berlin,{SITES}")],
        queue_manager_version="1.0",
    )


def over(
    domain: Domain, use: Callable[[DirectoryReader], Awaitable[None]], principal: str = MACHINE
) -> None:
    settings = Settings(
        "corp.test",
        (CONTROLLER,),
        timeout=PATIENCE,
        keytab=str(domain.keytab),
        principal=f"{principal}@{REALM}",
    )

    async def run() -> None:
        process = DirectoryProcess(settings.timeout, domain.namespace.argv(WORKER))
        try:
            reader = DirectoryReader(settings, process)
            await reader.connect()
            await use(reader)
        finally:
            await process.stop()

    asyncio.run(run())


def write_all(domain: Domain, *orders: WriteOrder) -> list[DirectoryAnswer]:
    answers: list[DirectoryAnswer] = []

    async def use(reader: DirectoryReader) -> None:
        assert reader.root is not None
        answers.extend([await carry_out(reader.process, reader.root, each) for each in orders])

    over(domain, use)
    return answers


def write(domain: Domain, order: WriteOrder) -> DirectoryAnswer:
    return write_all(domain, order)[0]


def queue(name: str, **attributes: object) -> Queue:
    made = Queue(pathname=rf"qm1\{name}")
    for attribute, value in attributes.items():
        setattr(made, attribute, value)
    return made


def order(machine: QueueManager, action: str, wanted: Queue, *names: str) -> WriteOrder:
    return queue_order(action, machine, wanted, names or ALL, permissions=bool(wanted.security))


def shown(domain: Domain, name: str, *attributes: str) -> dict[str, list[str]]:
    """What the database has; an independent tool reads it."""
    text = domain.run("ldbsearch", "-H", domain.database, "-b", name, "-s", "base", *attributes)
    found: dict[str, list[str]] = {}
    for key, value in re.findall(r"^(\w[\w-]*)::? (.*)$", text.replace("\n ", ""), re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


def is_there(domain: Domain, name: str) -> bool:
    try:
        domain.identifier(name)
    except AssertionError:
        return False
    return True


def sid_of(domain: Domain, name: str) -> str:
    return shown(domain, name, "objectSid")["objectSid"][0]


@pytest.mark.conformance(
    "MQDSSM-create-qm",
    "MQDSSM-create-qm-security",
    "MQDSSM-os-type",
    "MQDSSM-service-type",
    "MQDSSM-ldap-create",
    "MQDSSM-write-qm",
    "MQDSSM-ldap-set",
)
def test_a_queue_manager_joins_and_is_then_only_written_where_it_differs(
    domain: Domain, machine: QueueManager, joined: UUID
) -> None:
    assert domain.identifier(OWN) == joined
    found = shown(domain, OWN)
    assert found["mSMQQuota"] == [str(0x100000)]
    assert found["mSMQJournalQuota"] == ["-1"]
    assert (found["mSMQOSType"], found["mSMQServiceType"]) == (["256"], ["0"])
    assert found["mSMQRoutingServices"] == ["FALSE"]
    again = write(domain, machine_order(CREATE_MACHINE, machine, settings=True))
    assert (again.identifier, again.steps) == (joined, ())
    machine.queue_manager_quota, machine.routing_server = 7, False
    machine.queue_manager_version = ""
    changed = write(domain, machine_order(WRITE_MACHINE, machine, settings=True))
    assert changed.steps == (f"set mSMQComputerTypeEx, mSMQQuota of {OWN}",)
    found = shown(domain, OWN)
    assert found["mSMQQuota"] == ["7"]
    assert "mSMQComputerTypeEx" not in found


def test_a_dry_run_tells_what_would_be_done_and_does_nothing(
    domain: Domain, machine: QueueManager
) -> None:
    answer = write(domain, machine_order(CREATE_MACHINE, machine, settings=True, dry_run=True))
    assert (answer.result, answer.steps) == (SUCCESS, (f"add {OWN}",))
    assert not is_there(domain, OWN)


@pytest.mark.conformance("MQDSSM-create-out-routers", "MQDSSM-create-in-routers")
def test_routers_are_written_by_their_names_and_unknown_ones_are_skipped(
    domain: Domain, machine: QueueManager, joined: UUID
) -> None:
    machine.out_routing_server_identifier_list = [uuid4(), domain.identifier(OTHER)]
    machine.in_routing_server_identifier_list = [domain.identifier(OTHER)]
    write(domain, machine_order(WRITE_MACHINE, machine, settings=True))
    found = shown(domain, OWN)
    assert (found["mSMQOutRoutingServers"], found["mSMQInRoutingServers"]) == ([OTHER], [OTHER])


@pytest.mark.conformance("MQDSSM-create-queue", "MQDSSM-privacy-level")
def test_a_queue_gets_its_identifier_and_is_added_once(
    domain: Domain, machine: QueueManager, joined: UUID
) -> None:
    level = QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY
    offers = queue("offers", label="Ä label", transactional=True, quota=5, privacy_level=level)
    create = order(machine, CREATE_QUEUE, offers)
    first, second = write_all(domain, create, create)
    assert (first.result, second.result) == (SUCCESS, SUCCESS)
    assert domain.identifier(f"CN=offers,{OWN}") == first.identifier == second.identifier
    assert second.steps == (f"add CN=offers,{OWN}",)
    found = shown(domain, f"CN=offers,{OWN}")
    assert (found["mSMQTransactional"], found["mSMQPrivacyLevel"]) == (["TRUE"], ["2"])
    assert (found["mSMQQueueQuota"], found["mSMQQueueJournalQuota"]) == (["5"], ["-1"])
    other = order(machine, CREATE_QUEUE, queue("offers", transactional=False))
    assert write(domain, other).result is EXISTS


@pytest.mark.conformance("MQDSSM-queue-name", "MQDSSM-write-queue-name", "MQDSSM-hash")
@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("#a <b>=c/d", "#a <b>=c/d"),
        ("order-" * 20, f"{'order-' * 9}o-89566ed8"),
        ("ä" * 63, "ä" * 63),
    ],
    ids=["special", "long", "not ASCII"],
)
def test_every_name_is_kept_and_found_again(
    domain: Domain, machine: QueueManager, joined: UUID, name: str, stored: str
) -> None:
    made, again, gone = write_all(
        domain,
        order(machine, CREATE_QUEUE, queue(name)),
        order(machine, CREATE_QUEUE, queue(name)),
        order(machine, DELETE_QUEUE, queue(name)),
    )
    assert (made.result, gone.result) == (SUCCESS, SUCCESS), (made, gone)
    assert made.identifier == again.identifier is not None
    assert made.steps == (f"add {child_of(OWN, stored)}",)


@pytest.mark.conformance("MQDSSM-create-queue-preconditions")
def test_what_a_directory_does_not_keep_is_refused(
    domain: Domain, machine: QueueManager, joined: UUID
) -> None:
    spaces, label = write_all(
        domain,
        order(machine, CREATE_QUEUE, queue("spaces ")),
        order(machine, CREATE_QUEUE, queue("labels", label="x" * 125)),
    )
    assert "spaces" in spaces.reason
    assert label.result is DirectoryOperationResult.GENERIC_ERROR
    assert label.reason
    assert not is_there(domain, f"CN=labels,{OWN}")


@pytest.mark.conformance("MQDSSM-write-queue", "MQDSSM-result-mapping")
def test_a_queue_is_written_where_it_differs(
    domain: Domain, machine: QueueManager, joined: UUID
) -> None:
    offers = queue("offers", label="first")
    offers.identifier = write(domain, order(machine, CREATE_QUEUE, offers)).identifier or uuid4()
    offers.label, offers.journaling = "", True
    write_it = order(machine, WRITE_QUEUE, offers)
    first, second = write_all(domain, write_it, write_it)
    assert first.steps == (f"set mSMQJournal, mSMQLabelEx of CN=offers,{OWN}",) or (
        first.steps == (f"set mSMQLabelEx, mSMQJournal of CN=offers,{OWN}",)
    )
    assert second.steps == ()
    found = shown(domain, f"CN=offers,{OWN}")
    assert "mSMQLabelEx" not in found
    assert found["mSMQJournal"] == ["TRUE"]
    offers.identifier = uuid4()
    assert write(domain, order(machine, WRITE_QUEUE, offers)).result is NOT_FOUND


def test_permissions_are_written_as_rights_of_the_directory_and_come_back(
    domain: Domain, machine: QueueManager, joined: UUID
) -> None:
    alice = sid_of(domain, f"CN=alice,CN=Users,{BASE}")
    own = sid_of(domain, OWN_COMPUTER)
    text = f"O:{own}D:(D;;0x4;;;{alice})(A;;0x27;;;WD)(A;;0xf003f;;;{own})"
    offers = queue("offers", security=parse_sddl(text).encode())
    offers.identifier = write(domain, order(machine, CREATE_QUEUE, offers)).identifier or uuid4()
    assert write(domain, order(machine, WRITE_QUEUE, offers)).steps == ()
    listed = domain.samba_tool("dsacl", "get", f"--objectdn=CN=offers,{OWN}")
    assert f"(OD;;CR;06bd3202-df3e-11d1-9c86-006008764d0e;;{alice})" in listed
    assert "(OA;;CR;06bd3200-df3e-11d1-9c86-006008764d0e;;WD)" in listed
    octets = descriptor_of(domain, f"CN=offers,{OWN}")
    read = from_directory(octets, QUEUE_RIGHTS, Sid.parse(own))
    assert read.dacl is not None
    ours = [ace for ace in read.dacl.aces if not ace.flags]
    assert ours == list(parse_sddl(text).dacl.aces)  # type: ignore[union-attr]
    offers.security = parse_sddl(f"O:{own}D:(A;;0x20;;;WD)").encode()
    changed, again = write_all(domain, *2 * [order(machine, WRITE_QUEUE, offers)])
    assert changed.steps == (f"set the permissions of CN=offers,{OWN}",)
    assert again.steps == ()
    offers.label = "still ours"
    assert write(domain, order(machine, WRITE_QUEUE, offers)).result is SUCCESS


def descriptor_of(domain: Domain, name: str) -> SecurityDescriptor:
    found: list[bytes] = []

    async def use(reader: DirectoryReader) -> None:
        entry = await reader.process.read(name, ("nTSecurityDescriptor",), flags=7)
        assert entry is not None
        found.extend(entry.all("nTSecurityDescriptor"))

    over(domain, use)
    return SecurityDescriptor.decode(found[0])


@pytest.mark.conformance("MQDSSM-delete-queue", "MQDSSM-ldap-delete")
def test_only_objects_of_ours_are_deleted(
    domain: Domain, machine: QueueManager, joined: UUID
) -> None:
    domain.add(f"dn: CN=theirs,{OWN}\nobjectClass: mSMQQueue\n")
    foreign = replace(order(machine, DELETE_QUEUE, queue("x")), identifier=domain.identifier(OTHER))
    made, by_name, theirs, elsewhere = write_all(
        domain,
        order(machine, CREATE_QUEUE, queue("ours")),
        order(machine, DELETE_QUEUE, queue("ours")),
        order(machine, DELETE_QUEUE, queue("theirs")),
        foreign,
    )
    assert made.result is by_name.result is SUCCESS
    assert theirs.result is elsewhere.result is NOT_FOUND
    assert not is_there(domain, f"CN=ours,{OWN}")
    assert is_there(domain, f"CN=theirs,{OWN}")
    refused = write(domain, order(machine, CREATE_QUEUE, queue("theirs")))
    assert refused.result is EXISTS
    leave = write(domain, machine_order(DELETE_MACHINE, machine, settings=True))
    assert f"CN=theirs,{OWN}" in leave.reason
    domain.delete(f"CN=theirs,{OWN}")


@pytest.mark.conformance("MQDSSM-delete-qm")
def test_who_leaves_takes_its_own_queues_along_one_by_one(
    domain: Domain, machine: QueueManager, joined: UUID
) -> None:
    write_all(domain, *(order(machine, CREATE_QUEUE, queue(name)) for name in ("one", "two")))
    left = write(domain, machine_order(DELETE_MACHINE, machine, settings=True))
    assert sorted(left.steps) == sorted(
        (f"delete CN=one,{OWN}", f"delete CN=two,{OWN}", f"delete {OWN}")
    )
    assert left.steps[-1] == f"delete {OWN}"
    assert not is_there(domain, OWN)


@pytest.mark.conformance("MQDSSM-create-qm-preconditions")
def test_nothing_is_written_before_joining_nor_for_other_computers(
    domain: Domain, machine: QueueManager
) -> None:
    not_joined = write(domain, order(machine, CREATE_QUEUE, queue("offers")))
    assert "rpcqm directory join" in not_joined.reason
    nobody = replace(machine_order(CREATE_MACHINE, machine, True), machine="QM9", qualified="")
    assert "no computer QM9" in write(domain, nobody).reason
    other = replace(order(machine, CREATE_QUEUE, queue("more")), machine="QM2", qualified="")
    answer = write(domain, other)
    assert answer.denied
    assert not is_there(domain, f"CN=more,{OTHER}")


@pytest.mark.conformance(
    "MQDSSM-dn-settings",
    "MQDSSM-create-qm-settings",
    "MQDSSM-write-settings",
)
def test_settings_of_a_router_follow_it(
    domain: Domain, machine: QueueManager, joined: UUID
) -> None:
    machine.routing_server = True
    machine.site_identifier_list.append(uuid4())  # a site that is gone
    write_it = machine_order(WRITE_MACHINE, machine, settings=True)
    missing = write(domain, write_it)
    assert SERVER in missing.reason
    add_server(domain)
    first, again = write_all(domain, write_it, write_it)
    name = f"CN=MSMQ Settings,{SERVER}"
    assert (first.steps, again.steps) == ((f"add {name}",), ())
    found = shown(domain, name)
    assert (found["mSMQServices"], found["mSMQRoutingService"]) == (["1"], ["TRUE"])
    machine.supporting_server = True
    changed = write(domain, machine_order(WRITE_MACHINE, machine, settings=True))
    assert changed.steps[1:] == (f"delete {name}", f"add {name}")
    machine.routing_server = machine.supporting_server = False
    write(domain, machine_order(WRITE_MACHINE, machine, settings=True))
    assert not is_there(domain, name)
    domain.delete(SERVER)


@pytest.mark.conformance("MQDSSM-delete-qm-settings")
def test_a_router_that_leaves_takes_its_settings_along(
    domain: Domain, machine: QueueManager, joined: UUID
) -> None:
    add_server(domain)
    machine.routing_server = True
    _, left = write_all(
        domain,
        machine_order(WRITE_MACHINE, machine, settings=True),
        machine_order(DELETE_MACHINE, machine, settings=True),
    )
    assert left.steps == (f"delete CN=MSMQ Settings,{SERVER}", f"delete {OWN}")
    assert not is_there(domain, f"CN=MSMQ Settings,{SERVER}")
    domain.delete(SERVER)


def add_server(domain: Domain) -> None:
    """The object below which the machine may make and delete its settings."""
    domain.add(f"dn: {SERVER}\nobjectClass: server\n")
    right = f"(OA;;CCDC;{SETTINGS_CLASS};;{sid_of(domain, OWN_COMPUTER)})"
    domain.samba_tool("dsacl", "set", f"--objectdn={SERVER}", f"--sddl={right}")
