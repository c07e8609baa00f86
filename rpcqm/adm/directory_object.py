"""Elements that a directory can hold ([MS-MQDMPR] 3.1.1, 3.1.1.6 to 3.1.1.8, 3.1.1.15)."""

from dataclasses import dataclass, field
from uuid import UUID

NULL_GUID = UUID(int=0)


@dataclass(slots=True, eq=False)
class DirectoryObject:
    """Base of all elements that can be published; the identifier never changes."""

    identifier: UUID = NULL_GUID
    unsaid: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Directory attributes that the directory which this was read from does not contain."""


@dataclass(slots=True, eq=False)
class Enterprise(DirectoryObject):
    """Defaults of a forest ([MS-MQDMPR] 3.1.1.6); times are seconds."""

    name: str = ""
    weakened_security: bool = False
    non_ldap_capable_queue_manager_notification: bool = False
    default_time_to_live: int = 345_600
    old_directory: bool = False
    security: bytes = b""


@dataclass(slots=True, eq=False)
class Site(DirectoryObject):
    """A site and its gates ([MS-MQDMPR] 3.1.1.7); intervals are seconds."""

    name: str = ""
    primary_site_controller: str = ""
    intra_site_replication_interval: int = 0
    inter_site_replication_interval: int = 0
    full_path: str = ""
    foreign_site: bool = False
    public_signing_key_list: bytes = b""
    migrated_from_msmq10: bool = False
    security: bytes = b""
    site_gate_collection: list[DirectoryObject] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class RoutingLink(DirectoryObject):
    """The cost of going from one site to another ([MS-MQDMPR] 3.1.1.8), 1 to 999,999."""

    description: str = ""
    full_path: str = ""
    actual_cost: int = 1
    site1_identifier: UUID = NULL_GUID
    site2_identifier: UUID = NULL_GUID
    site_gate_identifier_list: list[UUID] = field(default_factory=list)
    site1_reference: Site | None = None
    site2_reference: Site | None = None
    site_gate_collection: list[DirectoryObject] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class User(DirectoryObject):
    """Certificates of a principal ([MS-MQDMPR] 3.1.1.15)."""

    security_identifier: bytes = b""
    certificate_digest_list: list[bytes] = field(default_factory=list)
    certificates: bytes = b""


@dataclass(slots=True, eq=False)
class DistributionList(DirectoryObject):
    """The members of DL=identifier: format names, also of other lists ([MS-MQMQ] 2.1.5)."""

    name: str = ""
    format_names: list[str] = field(default_factory=list)
    full_path: str = ""
    directory_path: str = ""


@dataclass(slots=True, eq=False)
class QueueAlias(DirectoryObject):
    """The format name of the queue that a path in the directory stands for ([MS-MQDSSM] 2.3)."""

    name: str = ""
    format_name: str = ""
    full_path: str = ""
    directory_path: str = ""
