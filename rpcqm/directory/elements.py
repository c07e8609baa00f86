"""Converts objects of a directory into elements ([MS-MQDSSM] 3.1.6.11)."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar
from uuid import UUID

from rpcqm.adm.directory_object import (
    NULL_GUID,
    DirectoryObject,
    Enterprise,
    QueueAlias,
    RoutingLink,
    Site,
    User,
)
from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import DecodeError
from rpcqm.directory import names, values
from rpcqm.directory.values import Attribute, Entry, read_text, read_values

T = TypeVar("T", bound=DirectoryObject)
Identifiers = Callable[[str], UUID | None]
"""The identifier of the object with a distinguished name, or None."""

UNSAID = frozenset({"security", "scope"})
"""Attributes that are not read: permissions have another meaning there."""
CLUSTER = b"MSClusterVirtualServer"


def _made(kind: type[T], entry: Entry, attributes: Sequence[Attribute], **more: Any) -> T:
    """An element with the attributes that are set, and the defaults of its kind."""
    found: dict[str, Any] = read_values(entry, (values.IDENTIFIER, *attributes))
    if found.get("identifier", NULL_GUID) == NULL_GUID:
        raise DecodeError(f"{entry.name} has no identifier")
    unset = (each.name for each in attributes if each.name not in found)
    return kind(**found, **more, unsaid=_unsaid(tuple(unset)))


@lru_cache(maxsize=1024)  # cached, because many objects have the same attributes
def _unsaid(unset: tuple[str, ...]) -> frozenset[str]:
    """The attributes that are not set: the queue manager's own values stay."""
    return UNSAID | frozenset(unset)


def read_queue_manager(entry: Entry, identifiers: Identifiers) -> QueueManager:
    """A queue manager; `add_computer` adds its computer's values."""
    attributes = (*values.QUEUE_MANAGER, *values.TIMES)
    made = _made(QueueManager, entry, attributes, full_path=entry.name)
    made.computer_name = names.value_of(names.parts_of(names.parent_of(entry.name))[0])
    made.out_routing_server_identifier_list = _referred(entry, "mSMQOutRoutingServers", identifiers)
    made.in_routing_server_identifier_list = _referred(entry, "mSMQInRoutingServers", identifiers)
    bits = values.read_integer(entry.first("mSMQServiceType") or b"0")
    made.remote_access_server = bool(bits & values.REMOTE_ACCESS)
    if made.directory_server:
        made.directory_server_type = values.server_type(bits)
    return made


def add_computer(made: QueueManager, computer: Entry | None) -> None:
    """Add the values of the object above; a computer without names is no error here."""
    if computer is not None:
        for name, value in read_values(computer, values.COMPUTER).items():
            setattr(made, name, value)
        made.clustered = any(CLUSTER in each for each in computer.all("servicePrincipalName"))
    made.qualified_computer_name = made.qualified_computer_name or made.computer_name


def _referred(entry: Entry, attribute: str, identifiers: Identifiers) -> list[UUID]:
    """The identifiers of distinguished names; missing objects are skipped."""
    found = (identifiers(read_text(each)) for each in entry.all(attribute))
    return [each for each in found if each is not None]


def read_queue(entry: Entry, machine: QueueManager) -> Queue:
    """A public queue ([MS-MQDSSM] 3.1.6.11.2)."""
    attributes = (*values.QUEUE, *values.TIMES)
    made = _made(Queue, entry, attributes, full_path=entry.name)
    stored = names.value_of(names.parts_of(entry.name)[0])
    queue = names.queue_name(stored, read_text(entry.first("mSMQQueueNameExt") or b"")).lower()
    made.pathname = f"{machine.computer_name.lower()}\\{queue}"
    made.qualified_pathname = f"{machine.qualified_computer_name.lower()}\\{queue}"
    made.directory_path = f"LDAP://{entry.name}"
    made.queue_type = QueueType.PUBLIC
    made.queue_manager = machine
    return made


def read_enterprise(entry: Entry, root_domain: str) -> Enterprise:
    """The forest's settings; its name is that of the root domain ([MS-MQDSSM] 3.1.6.11.3)."""
    made = _made(Enterprise, entry, values.ENTERPRISE)
    made.name = root_domain
    made.old_directory = made.old_directory or entry.first("mSMQVersion") is None
    if entry.first("mSMQCSPName") is None:
        made.non_ldap_capable_queue_manager_notification = True
    return made


def read_site(entry: Entry) -> Site:
    """A site, also one that MSMQ never touched ([MS-MQDSSM] 3.1.6.11.4)."""
    made = _made(Site, entry, values.SITE, full_path=entry.name)
    made.migrated_from_msmq10 = bool(made.migrated_from_msmq10)
    made.intra_site_replication_interval = made.intra_site_replication_interval or 2
    made.inter_site_replication_interval = made.inter_site_replication_interval or 10
    return made


def read_link(entry: Entry, sites: Identifiers, machines: Identifiers) -> RoutingLink:
    """A link; DecodeError if one of its sites is gone ([MS-MQDSSM] 3.1.6.11.5)."""
    made = _made(RoutingLink, entry, values.ROUTING_LINK, full_path=entry.name)
    one, other = (sites(read_text(entry.first(each) or b"")) for each in ("mSMQSite1", "mSMQSite2"))
    if one is None or other is None:
        raise DecodeError(f"{entry.name} links a site that is not there")
    if not 1 <= made.actual_cost <= 999_999:
        raise DecodeError(f"{entry.name} costs {made.actual_cost}, not 1 to 999,999")
    made.site1_identifier, made.site2_identifier = one, other
    made.site_gate_identifier_list = _referred(entry, "mSMQSiteGates", machines)
    return made


def read_user(entry: Entry) -> User:
    """A user with the digests of his certificates ([MS-MQDSSM] 3.1.6.11.6)."""
    made = _made(User, entry, values.USER)
    if not made.security_identifier:
        raise DecodeError(f"{entry.name} has no SID")
    return made


def read_alias(entry: Entry) -> QueueAlias:
    """An alias of a queue ([MS-MQDSSM] 2.3)."""
    format_name = entry.first("msMQ-Recipient-FormatName")
    if not format_name:
        raise DecodeError(f"{entry.name} has no format name")
    made = _made(QueueAlias, entry, (), full_path=entry.name)
    made.directory_path = f"LDAP://{entry.name}"
    made.name = names.value_of(names.parts_of(entry.name)[0])
    made.format_name = read_text(format_name)
    return made
