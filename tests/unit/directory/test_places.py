"""Where the objects of a directory lie, and by what they are found."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.adm.directory import DirectoryContents
from rpcqm.directory.process import DirectoryProcess
from rpcqm.directory.reading import DirectoryReader, Root, Settings
from rpcqm.directory.values import Entry, escaped_octets, guid_base
from rpcqm.directory.writing import WRITE_MACHINE, WriteOrder, carry_out

DOMAIN = "DC=corp,DC=test"
CONFIGURATION = f"CN=Configuration,{DOMAIN}"
COMPUTER = f"CN=QM2,OU=Servers\\, old,{DOMAIN}"
MACHINE = f"CN=msmq,{COMPUTER}"
SITES, SERVICES = f"CN=Sites,{CONFIGURATION}", f"CN=MsmqServices,CN=Services,{CONFIGURATION}"
BERLIN, SERVER = f"CN=Berlin,{SITES}", f"CN=QM2,CN=Servers,CN=Berlin,{SITES}"
ROOT = Root("dc1", DOMAIN, CONFIGURATION, "corp.test", 1, b"", "")


def entry(name: str, kind: str, **stored: str | bytes) -> Entry:
    made = {k.lower(): [v.encode() if isinstance(v, str) else v] for k, v in stored.items()}
    return Entry(name, {"objectclass": [kind.encode()], "objectguid": [uuid4().bytes_le], **made})


def identifier_of(entry: Entry) -> UUID:
    return UUID(bytes_le=entry.all("objectGUID")[0])


class Small(DirectoryProcess):
    """A directory of a few objects, which finds them by their place, class, name or identifier."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        super().__init__(1)
        self.entries = list(entries)
        self.orders: list[tuple[str, str]] = []

    async def order(self, order: str, **words: Any) -> Mapping[str, Any]:
        self.orders.append((order, words["name"]))
        return {}

    async def search(
        self,
        base: str,
        attributes: Sequence[str],
        what: str = "(objectClass=*)",
        scope: str = "base",
        flags: int = 0,
    ) -> AsyncIterator[list[Entry]]:
        for each in self.entries:
            found = (
                base in (each.name, guid_base(identifier_of(each)))
                if scope == "base"
                else self.fits(each, base, what)
            )
            if found:
                yield [each]

    @staticmethod
    def fits(each: Entry, base: str, what: str) -> bool:
        kind, name = each.all("objectClass")[0].decode(), escaped_octets(each.name.encode())
        wanted = (f"objectClass={kind})", f"objectCategory={kind})", f"distinguishedName={name})")
        return each.name.endswith(base) and any(part in what for part in wanted)


def read(*entries: Entry) -> DirectoryContents:
    reader = DirectoryReader(Settings("corp.test"), Small(entries))
    reader.root = ROOT
    return asyncio.run(reader.read_all())


@pytest.mark.conformance("MQDSSM-dn-queue", "MQDSSM-dn-configuration")
def test_a_queue_is_that_of_the_computer_above_wherever_that_lies() -> None:
    found = read(
        entry(f"CN=offers,{MACHINE}", "mSMQQueue"),
        entry(MACHINE, "mSMQConfiguration"),
        entry(COMPUTER, "computer", dNSHostName="qm2.corp.test"),
    )
    (machine,), (queue,) = found.queue_managers, found.queues
    assert (machine.computer_name, queue.qualified_pathname) == ("QM2", "qm2.corp.test\\offers")
    assert queue.queue_manager is machine


@pytest.mark.conformance("MQDSSM-dn-site", "MQDSSM-dn-site_link")
def test_sites_and_links_are_those_of_the_configuration() -> None:
    sites = [BERLIN, f"CN=Paris,{SITES}"]
    found = read(
        *(entry(each, "site") for each in (*sites, f"CN=Rome,OU=x,{DOMAIN}")),
        *(
            entry(f"CN=link,{place}", "mSMQSiteLink", mSMQSite1=sites[0], mSMQSite2=sites[1])
            for place in (SERVICES, f"OU=x,{DOMAIN}")
        ),
    )
    assert [each.full_path for each in found.sites] == sites
    assert [each.full_path for each in found.routing_links] == [f"CN=link,{SERVICES}"]


@pytest.mark.conformance("MQDSSM-dn-enterprise", "MQDSSM-enterprise-single")
def test_the_settings_of_the_forest_are_those_below_its_services() -> None:
    kind, others = "mSMQEnterpriseSettings", f"CN=Others,CN=Services,{CONFIGURATION}"
    found = read(entry(SERVICES, kind, mSMQLongLived="7"), entry(others, kind, mSMQLongLived="8"))
    assert found.enterprise is not None
    assert found.enterprise.default_time_to_live == 7


@pytest.mark.conformance("MQDSSM-dn-others")
def test_an_alias_is_found_in_any_place() -> None:
    text = {"msMQ-Recipient-FormatName": "DIRECT=OS:a\\b"}
    places = [f"CN=a,CN=Users,{DOMAIN}", f"CN=b,OU=x,OU=y,{DOMAIN}"]
    found = read(*(entry(each, "msMQ-Custom-Recipient", **text) for each in places))
    assert [each.full_path for each in found.queue_aliases] == places


@pytest.mark.conformance("MQDSSM-dn-settings")
def test_settings_lie_below_the_server_of_the_site() -> None:
    sid = bytes.fromhex("010500000000000515000000010000000200000003000000e9030000")
    berlin = entry(BERLIN, "site")
    process = Small(
        [
            entry(COMPUTER, "computer", objectSid=sid),
            entry(MACHINE, "mSMQConfiguration"),
            entry(SERVER, "server"),
            entry(f"CN=QM2,CN=Servers,CN=Paris,{SITES}", "server"),
            berlin,
        ]
    )
    order = WriteOrder(
        WRITE_MACHINE,
        "QM2",
        settings={"mSMQRoutingService": [b"TRUE"]},
        sites=(identifier_of(berlin),),
    )
    answer = asyncio.run(carry_out(process, ROOT, order))
    assert answer.steps == (f"add CN=MSMQ Settings,{SERVER}",)
    assert process.orders == [("add", f"CN=MSMQ Settings,{SERVER}")]
