"""What the domain of tests has in it for MSMQ: machines, queues, sites, an alias, a list."""

import base64
from collections.abc import Callable
from uuid import UUID

BASE = "DC=corp,DC=test"
CONFIGURATION = f"CN=Configuration,{BASE}"
SERVICES = f"CN=MsmqServices,CN=Services,{CONFIGURATION}"
SITES = f"CN=Sites,{CONFIGURATION}"
BRANCH = f"OU=Branch,{BASE}"
ROUTER = f"CN=msmq,CN=ROUTER1,{BRANCH}"
OTHER = f"CN=msmq,CN=QM2,CN=Computers,{BASE}"
OWN_COMPUTER = f"CN=QM1,CN=Computers,{BASE}"
OFFERS_TYPE = UUID("4f6d1a5b-93a1-4b2c-8d2e-0a1b2c3d4e5f")

_TYPE = base64.b64encode(OFFERS_TYPE.bytes_le).decode()

PLACES = f"""\
dn: CN=Berlin,{SITES}
objectClass: site

dn: CN=Paris,{SITES}
objectClass: site
mSMQInterval1: 3
mSMQSiteForeign: FALSE

dn: CN=Servers,CN=Berlin,{SITES}
objectClass: serversContainer

dn: CN=ROUTER1,CN=Servers,CN=Berlin,{SITES}
objectClass: server

dn: OU=Aliases,{BASE}
objectClass: organizationalUnit
"""
"""What is made first: others name these by their identifiers."""

_REST = """\
dn: {ROUTER}
objectClass: mSMQConfiguration
mSMQSites:: {berlin}
mSMQRoutingServices: TRUE
mSMQServiceType: 1
mSMQOSType: 1536
mSMQQuota: 4096

dn: {OTHER}
objectClass: mSMQConfiguration
mSMQSites:: {paris}
mSMQOutRoutingServers: {ROUTER}
mSMQJournalQuota: -1
mSMQComputerTypeEx: of tests

dn: CN=offers,{OTHER}
objectClass: mSMQQueue
mSMQLabelEx: What we offer
mSMQQueueType:: {_TYPE}
mSMQJournal: TRUE
mSMQQueueQuota: 2048
mSMQPrivacyLevel: 2
mSMQBasePriority: -3

dn: CN=orders,{OTHER}
objectClass: mSMQQueue
mSMQTransactional: TRUE
mSMQAuthenticate: TRUE

dn: CN=a\\+b\\,\\"c\\" \\<d\\>\\;\\#,{OTHER}
objectClass: mSMQQueue
mSMQLabelEx: special

dn: CN=order-order-order-order-order-order-order-order-order-o-89566ed8,{OTHER}
objectClass: mSMQQueue
mSMQQueueNameExt: rder-order-order-order-order-order-order-order-order-order-order-

dn: CN={link},{SERVICES}
objectClass: mSMQSiteLink
description: over the Rhine
mSMQCost: 7
mSMQSite1: CN=Berlin,{SITES}
mSMQSite2: CN=Paris,{SITES}
mSMQSiteGates: {ROUTER}

dn: CN=shop,OU=Aliases,{BASE}
objectClass: msMQ-Custom-Recipient
msMQ-Recipient-FormatName: DIRECT=OS:qm2\\offers

dn: CN=inner,OU=Aliases,{BASE}
objectClass: group
sAMAccountName: inner
groupType: 2
member: CN=orders,{OTHER}

dn: CN=everybody,OU=Aliases,{BASE}
objectClass: group
sAMAccountName: everybody
groupType: 2
member: CN=offers,{OTHER}
member: CN=shop,OU=Aliases,{BASE}
member: CN=inner,OU=Aliases,{BASE}
"""


def the_rest(identifier: Callable[[str], UUID]) -> str:
    """What names the identifiers of sites, which `identifier` finds by their names."""
    berlin, paris = (identifier(f"CN={name},{SITES}") for name in ("Berlin", "Paris"))
    return _REST.format(
        **globals(),
        berlin=base64.b64encode(berlin.bytes_le).decode(),
        paris=base64.b64encode(paris.bytes_le).decode(),
        link=berlin.hex + paris.hex,
    )
