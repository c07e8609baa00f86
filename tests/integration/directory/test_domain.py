"""The domain that other tests build on: whom it knows, and what it has for MSMQ."""

from tests.support.directory.domain import BASE, CONTROLLER, MACHINE, Domain
from tests.support.directory.domain_objects import OTHER

SEARCH = ("ldapsearch", "-LLL", "-Q", "-Y", "GSSAPI", "-H", f"ldap://{CONTROLLER}")


def test_the_machine_logs_on_with_its_keytab_and_reads_queues(domain: Domain) -> None:
    cache = f"FILE:{domain.directory / 'machine'}"
    domain.run("kinit", "-c", cache, "-k", "-t", domain.keytab, MACHINE)
    found = domain.run(*SEARCH, "-b", OTHER, "(objectClass=mSMQQueue)", "dn", cache=cache)
    assert found.count("dn:") == 4


def test_a_user_logs_on_and_reads_as_himself(domain: Domain) -> None:
    found = domain.run(*SEARCH, "-b", BASE, "-s", "base", "dn", cache=domain.log_on("alice"))
    assert f"dn: {BASE}" in found
