"""A client that dies while it holds 10,000 objects: bounded memory, and all of them are freed."""

import asyncio
from collections.abc import Iterator
from uuid import UUID

import pytest

from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.types.dcom import ComplexPingRequest
from rpcqm.config.dcom_section import DcomSection
from rpcqm.dcom.ping_sets import EXPIRY, GONE, LOOK, PING_PERIOD
from rpcqm.rpc.security.ntlm import NtlmCredentials
from tests.support.accounts import PASSWORD
from tests.support.dcom.dcom_client import DcomClient, Reference, orpcthis
from tests.support.dcom.dcom_service import CLSID_WAITING, DISPENSER, DcomService, in_process
from tests.support.memory import resident

OBJECTS = 10_000
BATCH = 500
MOST_OCTETS = 4096
"""Octets that an object may take in this process, which is the client's too: a live one takes 1 KiB
(`test_a_live_object_takes_less_than_a_kibibyte`)."""
BOB = NtlmCredentials("bob", PASSWORD)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DcomService]:
    section = DcomSection(enabled=True, minimum_level="connect")
    with in_process(tmp_path_factory.mktemp("service"), section) as running:
        yield running


def hold(com: DcomClient, giver: Reference, count: int) -> list[int]:
    """New objects that the client is given, by their OIDs."""

    async def calls() -> list[bytes]:
        assert com.exporter is not None
        binding = await com._binding(com.exporter, f"mqac.{DISPENSER}")
        operation = binding.interface.operation("BeginTransaction")
        request = operation.request_class(orpcthis=orpcthis())
        stub = operation.encode_request(TransferSyntax.NDR, request)
        ipid, found = UUID(bytes_le=giver.ipid), list[bytes]()
        for _ in range(0, count, BATCH):
            begun = [
                binding.client.start(binding.context_id, operation.opnum, stub, ipid)
                for _ in range(BATCH)
            ]
            found += await asyncio.gather(*(each.result() for each in begun))
        return found

    responses = com._loop.run(calls())
    return [int.from_bytes(each[OID : OID + 8], "little") for each in responses]


OID = 8 + 4 + 8 + 24 + 16
"""Where the OID is in the stub: behind ORPCTHAT, a referent, two counts, an OBJREF's head, and in
its STDOBJREF behind flags, references and the OXID."""


def test_all_objects_of_a_client_that_dies_are_freed(service: DcomService) -> None:
    with DcomClient(service.activators, BOB) as other, DcomClient(service.activators) as com:
        kept = other.create(CLSID_WAITING, DISPENSER)
        theirs = service.made[-1]
        theirs.at_once = True
        giver = com.create(CLSID_WAITING, DISPENSER)
        made = service.made[-1]
        made.at_once = True
        hold(com, giver, BATCH)
        before = resident()
        oids = hold(com, giver, OBJECTS)
        assert (resident() - before) / OBJECTS < MOST_OCTETS
        assert len(set(oids)) == OBJECTS
        pinged = ComplexPingRequest(
            pSetId=0,
            SequenceNum=1,
            cAddToSet=OBJECTS,
            cDelFromSet=0,
            AddToSet=oids,
            DelFromSet=None,
        )
        assert com.ask("dcom.IObjectExporter", "ComplexPing", pinged).result == 0
        com.drop()
        for _ in range(EXPIRY // PING_PERIOD):
            assert not any(each.ends for each in made.given[BATCH:])
            service.advance(PING_PERIOD)
            given = other.call(kept, "BeginTransaction")
            other.release(given)
        service.advance(2 * LOOK)
        service.until(lambda: len(service.door.exporter) == 1)
        assert {each.ends for each in made.given} == {1}
        assert (made.ends, theirs.ends) == (1, 0)
        assert len(service.door.pings) == 0
        assert service.door.exporter.interfaces == 1
        assert [each.ends for each in theirs.given] == [1] * len(theirs.given)


def test_objects_of_a_client_that_dies_before_it_pings_are_freed_soon(
    service: DcomService,
) -> None:
    """A client that pings does so within a period; objects of one that lives wait three."""
    with DcomClient(service.activators, BOB) as other, DcomClient(service.activators) as com:
        other.create(CLSID_WAITING, DISPENSER)
        theirs = service.made[-1]
        giver = com.create(CLSID_WAITING, DISPENSER)
        made = service.made[-1]
        made.at_once = True
        hold(com, giver, BATCH)
        com.drop()
        service.advance(GONE - 1)
        assert made.ends == 0 == sum(each.ends for each in made.given)
        service.advance(2 * LOOK)
        service.until(lambda: made.ends == 1)
        assert {each.ends for each in made.given} == {1}
        assert theirs.ends == 0
        service.advance(EXPIRY)
        assert theirs.ends == 1
