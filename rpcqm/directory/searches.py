"""The searches of a directory: filters and attributes ([MS-MQDSSM] 2.2.2, 3.1.6.10, 3.1.6.15).

Objects of machines are found below the naming context of the domain, wherever they lie; sites,
links and the forest's settings below that of the configuration.
"""

from collections.abc import Iterable, Iterator, Sequence

from rpcqm.directory import values
from rpcqm.directory.values import Attribute, escaped_octets

CLASS = "objectClass"
QUEUE, MACHINE, ALIAS = "msmqqueue", "msmqconfiguration", "msmq-custom-recipient"
USER, GROUP, COMPUTER = "user", "group", "computer"
SITE, LINK, ENTERPRISE = "site", "msmqsitelink", "msmqenterprisesettings"

_MACHINES = (
    "(objectClass=mSMQConfiguration)(objectClass=mSMQQueue)(objectClass=msMQ-Custom-Recipient)"
    "(&(objectCategory=person)(mSMQDigests=*))"
)
DOMAIN_FILTER = f"(|{_MACHINES})"
CONFIGURATION_FILTER = (
    "(|(objectClass=site)(objectClass=mSMQSiteLink)(objectClass=mSMQEnterpriseSettings))"
)
TOGETHER = 50
"""Distinguished names in one filter."""


def changed_filter(what: str, since: int) -> str:
    """The filter for changes since a number, with groups and computers where machines are."""
    if what is DOMAIN_FILTER:
        what = f"(|{_MACHINES}(objectClass=group)(objectClass=computer))"
    return f"(&(uSNChanged>={since}){what})"


def _stored(*tables: Iterable[Attribute]) -> tuple[str, ...]:
    names = [each.stored for table in tables for each in table]
    return (CLASS, values.IDENTIFIER.stored, *dict.fromkeys(names))


COMPUTER_ATTRIBUTES = (*_stored(values.COMPUTER), "servicePrincipalName", "sAMAccountName")
_OF_MACHINES = (
    "mSMQQueueNameExt",
    "mSMQServiceType",
    "mSMQOutRoutingServers",
    "mSMQInRoutingServers",
    "msMQ-Recipient-FormatName",
    "memberOf",
)
DOMAIN_ATTRIBUTES = (
    *_stored(values.QUEUE, values.QUEUE_MANAGER, values.TIMES, values.USER),
    *_OF_MACHINES,
)
CHANGED_ATTRIBUTES = tuple(dict.fromkeys((*DOMAIN_ATTRIBUTES, *COMPUTER_ATTRIBUTES, "member")))
"""The attributes of an incremental round, because any of these kinds may have changed."""
CONFIGURATION_ATTRIBUTES = (
    *_stored(values.ENTERPRISE, values.SITE, values.ROUTING_LINK),
    "mSMQSite1",
    "mSMQSite2",
    "mSMQSiteGates",
)
GROUP_ATTRIBUTES = (CLASS, values.IDENTIFIER.stored, "sAMAccountName", "member", "memberOf")
IDENTIFIERS = (values.IDENTIFIER.stored,)


def named_filters(names: Sequence[str]) -> Iterator[str]:
    """Filters for objects by their distinguished names, several in each."""
    for start in range(0, len(names), TOGETHER):
        some = names[start : start + TOGETHER]
        parts = (f"(distinguishedName={escaped_octets(name.encode())})" for name in some)
        yield f"(|{''.join(parts)})"
