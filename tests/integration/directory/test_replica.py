"""Reading Samba's directory: everything, what changes, what goes, and controllers that fail."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.adm.directory import DirectoryContents
from rpcqm.codec.security.user_certificates import digest_of, pack_certificates
from rpcqm.directory.process import WORKER, DirectoryError, DirectoryProcess
from rpcqm.directory.reading import DirectoryReader, Settings
from tests.support.directory.domain import CONTROLLER, MACHINE, REALM, Domain, unpacked_domain
from tests.support.directory.domain_objects import (
    BASE,
    BRANCH,
    CONFIGURATION,
    OFFERS_TYPE,
    OTHER,
    ROUTER,
    SERVICES,
    SITES,
)
from tests.support.waiting import PATIENCE

pytest.importorskip("ldap", reason="python-ldap is not installed (rpcqm[directory])")
LONG = "order-" * 20


def settings(domain: Domain, **more: object) -> Settings:
    words = {"servers": (CONTROLLER,), "timeout": PATIENCE, "keytab": str(domain.keytab)}
    return Settings("corp.test", principal=f"{MACHINE}@{REALM}", **{**words, **more})  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def environment(domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in domain.environment.items():
        monkeypatch.setenv(name, value)


def with_reader(
    domain: Domain, use: Callable[[DirectoryReader], Awaitable[None]], **more: object
) -> None:
    async def run() -> None:
        wanted = settings(domain, **more)
        process = DirectoryProcess(wanted.timeout, domain.namespace.argv(WORKER))
        try:
            await use(DirectoryReader(wanted, process))
        finally:
            await process.stop()

    asyncio.run(run())


def read(domain: Domain, **more: object) -> DirectoryContents:
    found: list[DirectoryContents] = []

    async def use(reader: DirectoryReader) -> None:
        await reader.connect()
        found.append(await reader.read_all())

    with_reader(domain, use, **more)
    return found[0]


def refusal(domain: Domain, **more: object) -> DirectoryError:
    found: list[DirectoryError] = []

    async def use(reader: DirectoryReader) -> None:
        with pytest.raises(DirectoryError) as caught:
            await reader.connect()
        found.append(caught.value)

    with_reader(domain, use, **more)
    return found[0]


def add_queue(domain: Domain, name: str, *lines: str) -> None:
    more = "".join(f"{line}\n" for line in lines)
    domain.add(f"dn: CN={name},{OTHER}\nobjectClass: mSMQQueue\n{more}")


@pytest.mark.conformance(
    "MQDSSM-dn-queue",
    "MQDSSM-dn-configuration",
    "MQDSSM-dn-site",
    "MQDSSM-dn-enterprise",
    "MQDSSM-dn-site_link",
    "MQDSSM-dn-others",
    "MQDSSM-read-qm",
    "MQDSSM-read-queue",
)
def test_everything_of_the_domain_is_read(domain: Domain) -> None:
    found = read(domain)
    assert found.enterprise is not None
    assert found.enterprise.name == "corp.test"
    sites = {each.name: each for each in found.sites}
    assert {"Berlin", "Paris"} <= sites.keys()
    assert sites["Paris"].intra_site_replication_interval == 3
    machines = {each.computer_name: each for each in found.queue_managers}
    router, other = machines["ROUTER1"], machines["QM2"]
    assert router.identifier == domain.identifier(ROUTER)
    assert router.full_path == ROUTER
    assert router.qualified_computer_name == "router1.corp.test"
    assert router.site_identifier_list == [domain.identifier(f"CN=Berlin,{SITES}")]
    assert router.routing_server
    assert router.queue_manager_quota == 4096
    assert other.out_routing_server_identifier_list == [router.identifier]
    assert other.journal_quota == 0xFFFFFFFF
    (link,) = found.routing_links
    assert (link.actual_cost, link.description) == (7, "over the Rhine")
    assert link.site1_reference is sites["Berlin"]
    assert sites["Berlin"].site_gate_collection == [router]
    queues = {each.pathname: each for each in found.queues}
    assert set(queues) == {"qm2\\offers", "qm2\\orders", f"qm2\\{LONG}"}
    offers = queues["qm2\\offers"]
    assert offers.identifier == domain.identifier(f"CN=offers,{OTHER}")
    assert (offers.label, offers.type, offers.quota) == ("What we offer", OFFERS_TYPE, 2048)
    assert offers.queue_manager is other
    (alias,) = found.queue_aliases
    lists = {each.name: each for each in found.distribution_lists}
    inner, orders = lists["inner"], queues["qm2\\orders"]
    assert orders.transactional
    assert inner.format_names == [f"PUBLIC={orders.identifier}"]
    assert set(lists["everybody"].format_names) == {
        f"PUBLIC={offers.identifier}",
        f"DL={inner.identifier}",
        alias.format_name,
    }


@pytest.mark.conformance("MQDSSM-enterprise-single", "MQDSSM-values-queue", "MQDSSM-values-link")
def test_objects_with_wrong_values_are_left_out_by_name(domain: Domain) -> None:
    second = f"CN=Second,CN=Services,{CONFIGURATION}"
    domain.add(f"dn: {second}\nobjectClass: mSMQEnterpriseSettings\n")
    gone = f"CN=gone,{SERVICES}"
    link = "objectClass: mSMQSiteLink\nmSMQCost: 0\n"
    places = f"mSMQSite1: CN=Berlin,{SITES}\nmSMQSite2: CN=Paris,{SITES}\n"
    domain.add(f"dn: {gone}\n{link}{places}")

    async def use(reader: DirectoryReader) -> None:
        await reader.connect()
        found = await reader.read_all()
        skipped = reader.objects.skipped
        assert len(found.routing_links) == 1
        assert "second one" in skipped[second]
        assert "costs 0" in skipped[gone]
        assert any(name.startswith("CN=a\\+b") for name in skipped)

    with_reader(domain, use)
    domain.delete(second, gone)


def test_rounds_bring_what_is_new_changed_and_gone(domain: Domain) -> None:
    async def use(reader: DirectoryReader) -> None:
        await reader.connect()
        first = await reader.read_all()
        assert await reader.read_changes() is None
        add_queue(domain, "new", "mSMQLabelEx: one")
        second = await reader.read_changes()
        assert second is not None
        assert {each.label for each in second.queues} == {"one", *(q.label for q in first.queues)}
        place = f"CN=new,{OTHER}"
        domain.change(f"dn: {place}\nchangetype: modify\nreplace: mSMQLabelEx\nmSMQLabelEx: two\n")
        third = await reader.read_changes()
        assert third is not None
        assert "two" in {each.label for each in third.queues}
        assert await reader.read_identifiers() is None
        domain.delete(place)
        fourth = await reader.read_identifiers()
        assert fourth is not None
        assert len(fourth.queues) == len(first.queues)

    with_reader(domain, use)


def test_a_user_with_certificates_is_found_by_their_digests(domain: Domain) -> None:
    packed = pack_certificates([b"a certificate"])
    domain.directory.joinpath("packed").write_bytes(packed)
    domain.directory.joinpath("digest").write_bytes(digest_of(b"a certificate"))
    domain.change(
        f"dn: CN=alice,CN=Users,{BASE}\nchangetype: modify\n"
        f"replace: mSMQSignCertificates\nmSMQSignCertificates:< file://{domain.directory}/packed\n-\n"
        f"replace: mSMQDigests\nmSMQDigests:< file://{domain.directory}/digest\n"
    )
    (user,) = read(domain).users
    assert user.certificates == packed
    assert user.certificate_digest_list == [digest_of(b"a certificate")]


def test_groups_that_contain_strangers_or_themselves(domain: Domain) -> None:
    everybody = f"CN=everybody,OU=Aliases,{BASE}"
    inner = f"CN=inner,OU=Aliases,{BASE}"

    async def use(reader: DirectoryReader) -> None:
        await reader.connect()
        await reader.read_all()
        domain.change(f"dn: {inner}\nchangetype: modify\nadd: member\nmember: {everybody}\n")
        ring = await reader.read_changes()
        assert ring is not None
        texts = {each.name: each.format_names for each in ring.distribution_lists}
        assert f"DL={domain.identifier(everybody)}" in texts["inner"]
        domain.change(
            f"dn: {inner}\nchangetype: modify\nadd: member\nmember: CN=alice,CN=Users,{BASE}\n"
        )
        found = await reader.read_changes()
        assert found is not None
        assert "inner" not in {each.name for each in found.distribution_lists}
        assert "no queue, alias or list" in reader.objects.skipped[inner]

    with_reader(domain, use)


def test_a_list_of_more_members_than_come_at_once_has_all(domain: Domain) -> None:
    group = f"CN=many,OU=Aliases,{BASE}"
    text = "".join(f"dn: CN=m{n},{OTHER}\nobjectClass: mSMQQueue\n\n" for n in range(1510))
    domain.add(text)
    members = "".join(f"member: CN=m{n},{OTHER}\n" for n in range(1510))
    domain.add(f"dn: {group}\nobjectClass: group\nsAMAccountName: many\ngroupType: 2\n{members}")
    found = read(domain)
    (several,) = [each for each in found.distribution_lists if each.name == "many"]
    assert len(set(several.format_names)) == 1510
    bounded = read(domain, most_objects=100)
    assert len(bounded.queues) == 100


def test_a_machine_that_moves_takes_its_queues_along(domain: Domain) -> None:
    async def use(reader: DirectoryReader) -> None:
        await reader.connect()
        await reader.read_all()
        domain.samba_tool("computer", "move", "ROUTER1", f"CN=Computers,{BASE}")
        found = await reader.read_changes()
        assert found is not None
        machines = {each.computer_name: each.full_path for each in found.queue_managers}
        assert machines["ROUTER1"] == f"CN=msmq,CN=ROUTER1,CN=Computers,{BASE}"
        domain.samba_tool("computer", "move", "ROUTER1", BRANCH)

    with_reader(domain, use)


def test_a_base_of_searches_leaves_out_the_rest(domain: Domain) -> None:
    found = read(domain, search_bases=(BRANCH,))
    assert [each.computer_name for each in found.queue_managers] == ["ROUTER1"]


def test_a_key_that_is_gone_or_an_unknown_controller_is_said_with_its_step(
    domain: Domain, tmp_path: Path
) -> None:
    assert refusal(domain, keytab=str(tmp_path / "none")).step == "keytab"
    assert refusal(domain, servers=("nobody.corp.test",)).step in ("bind", "connect")
    assert refusal(domain, servers=(), timeout=5).step == "locate"


def test_ldaps_and_starttls_want_a_certificate_that_is_trusted(
    domain: Domain, tmp_path: Path
) -> None:
    authority = domain.directory / "dc/private/tls/ca.pem"
    for security in ("ldaps", "starttls"):
        error = refusal(domain, security=security)
        assert error.code in (-1, -11), str(error)
        # Samba refuses what has no layer of its own unless it is set otherwise, but TLS stands.
        assert refusal(domain, security=security, ca_file=str(authority)).step == "bind"


def test_a_frozen_controller_is_given_up_and_another_tried(domain: Domain) -> None:
    async def use(reader: DirectoryReader) -> None:
        domain.freeze()
        try:
            with pytest.raises(DirectoryError, match=r"not answered|Can't contact|reach"):
                await reader.connect()
        finally:
            domain.thaw()

    with_reader(domain, use, timeout=1.0)


@pytest.fixture
def lenient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    """A controller that takes binds without a layer inside TLS, as Windows does."""
    cache = tmp_path_factory.getbasetemp().parent
    option = "ldap server require strong auth = allow_sasl_over_tls"
    with unpacked_domain(cache) as made, made.serving(option):
        yield made


@pytest.mark.parametrize("security", ["ldaps", "starttls"])
def test_what_is_read_inside_tls_is_the_same(lenient: Domain, security: str) -> None:
    authority = lenient.directory / "dc/private/tls/ca.pem"
    found = read(lenient, security=security, ca_file=str(authority))
    assert len(found.queue_managers) == 2
