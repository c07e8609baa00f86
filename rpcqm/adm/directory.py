"""The contents of a directory, and the filters of queries ([MS-MQDMPR] 3.1.7.1.18 to .24)."""

import enum
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar, cast

from rpcqm.adm.directory_object import (
    DirectoryObject,
    DistributionList,
    Enterprise,
    QueueAlias,
    RoutingLink,
    Site,
    User,
)
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.records import QUEUE_ATTRIBUTES
from rpcqm.base.text import folded

T = TypeVar("T", bound=DirectoryObject)


class DirectoryUnavailableError(Exception):
    """The directory cannot be read now: DirectoryNotConnected."""


DIRECTORY_ATTRIBUTES: dict[type[DirectoryObject], tuple[str, ...]] = {
    Enterprise: (
        "identifier",
        "name",
        "weakened_security",
        "non_ldap_capable_queue_manager_notification",
        "default_time_to_live",
        "old_directory",
        "security",
    ),
    Site: (
        "identifier",
        "name",
        "primary_site_controller",
        "intra_site_replication_interval",
        "inter_site_replication_interval",
        "full_path",
        "foreign_site",
        "public_signing_key_list",
        "migrated_from_msmq10",
        "security",
    ),
    RoutingLink: (
        "identifier",
        "description",
        "full_path",
        "actual_cost",
        "site1_identifier",
        "site2_identifier",
        "site_gate_identifier_list",
    ),
    QueueManager: (
        "identifier",
        "computer_name",
        "queue_manager_version",
        "operating_system_version",
        "operating_system_type",
        "qualified_computer_name",
        "create_time",
        "modify_time",
        "queue_manager_quota",
        "journal_quota",
        "foreign_system",
        "full_path",
        "site_identifier_list",
        "out_routing_server_identifier_list",
        "in_routing_server_identifier_list",
        "directory_server",
        "remote_access_server",
        "routing_server",
        "supporting_server",
        "directory_server_type",
        "public_encryption_key_list",
        "public_signing_key_list",
        "security",
        "clustered",
    ),
    Queue: QUEUE_ATTRIBUTES,
    User: ("identifier", "security_identifier", "certificate_digest_list", "certificates"),
    DistributionList: ("identifier", "name", "format_names", "full_path", "directory_path"),
    QueueAlias: ("identifier", "name", "format_name", "full_path", "directory_path"),
}
"""The directory attributes of every kind of object."""

KINDS: dict[str, type[DirectoryObject]] = {kind.__name__: kind for kind in DIRECTORY_ATTRIBUTES}


@dataclass(slots=True, eq=False)
class DirectoryContents:
    """All objects of a directory; references between them are not set here."""

    enterprise: Enterprise | None = None
    sites: list[Site] = field(default_factory=list)
    routing_links: list[RoutingLink] = field(default_factory=list)
    queue_managers: list[QueueManager] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    users: list[User] = field(default_factory=list)
    distribution_lists: list[DistributionList] = field(default_factory=list)
    queue_aliases: list[QueueAlias] = field(default_factory=list)
    _indexes: dict[tuple[type[DirectoryObject], str], dict[object, list[DirectoryObject]]] = field(
        default_factory=dict, repr=False
    )

    def having(self, kind: type[T], attribute: str, value: object) -> list[T]:
        """The objects of a kind with a value of an attribute, by an index that is made once.

        Texts are the same without regard to case.
        """
        index = self._indexes.get((kind, attribute))
        if index is None:
            index = self._indexes[kind, attribute] = {}
            for each in self.of(kind):
                index.setdefault(_comparable(getattr(each, attribute)), []).append(each)
        return cast("list[T]", index.get(_comparable(value), []))

    def of(self, kind: type[T]) -> Iterator[T]:
        """The objects of one kind, in the order of the directory."""
        everything: tuple[Sequence[DirectoryObject], ...] = (
            [self.enterprise] if self.enterprise else [],
            self.sites,
            self.routing_links,
            self.queue_managers,
            self.queues,
            self.users,
            self.distribution_lists,
            self.queue_aliases,
        )
        for elements in everything:
            for element in elements:
                if type(element) is kind:
                    yield element


def _comparable(value: object) -> object:
    return folded(value) if isinstance(value, str) else value


DirectorySource = Callable[[], DirectoryContents]
"""Reads the present directory; raises DirectoryUnavailableError."""


class FilterOperator(enum.Enum):
    """Operators of attribute-filter expressions ([MS-MQDMPR] 3.1.7.1.20)."""

    EQUALS = "EQUALS"
    NOT_EQUALS = "NOT-EQUALS"
    LESS_THAN = "LESS-THAN"
    GREATER_THAN = "GREATER-THAN"
    LESS_THAN_OR_EQUAL = "LESS-THAN-OR-EQUAL"
    GREATER_THAN_OR_EQUAL = "GREATER-THAN-OR-EQUAL"


_COMPARE: dict[FilterOperator, Callable[..., bool]] = {
    FilterOperator.EQUALS: operator.eq,
    FilterOperator.NOT_EQUALS: operator.ne,
    FilterOperator.LESS_THAN: operator.lt,
    FilterOperator.GREATER_THAN: operator.gt,
    FilterOperator.LESS_THAN_OR_EQUAL: operator.le,
    FilterOperator.GREATER_THAN_OR_EQUAL: operator.ge,
}


class AttributeFilter(NamedTuple):
    """One comparison of an attribute with a value; texts are compared without regard to case."""

    attribute: str
    operator: FilterOperator
    value: object

    def matches(self, element: DirectoryObject) -> bool:
        """Whether an object satisfies it; values that cannot be compared do not."""
        left, right = getattr(element, self.attribute), self.value
        if isinstance(left, str) and isinstance(right, str):
            left, right = folded(left), folded(right)
        try:
            return _COMPARE[self.operator](left, right)
        except TypeError:
            return False


def equals(attribute: str, value: object) -> AttributeFilter:
    """The filter for one value of an attribute."""
    return AttributeFilter(attribute, FilterOperator.EQUALS, value)


class AttributeSortOrder(NamedTuple):
    """The sorting of results by one attribute: higher priorities first, 0 does not sort."""

    attribute: str
    sort_priority: int
    sort_ascending: bool = True
