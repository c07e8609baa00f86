"""Public queues that one queue manager makes in Samba's directory, and another uses."""

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.qm.machine import JOIN_ORDER
from rpcqm.store.directory_mark import write_mark
from tests.support.directory.domain import CONTROLLER, MACHINE, REALM, Domain
from tests.support.directory.domain_objects import OWN_COMPUTER, ROUTER
from tests.support.served import ServedQueueManager
from tests.support.waiting import until

pytest.importorskip("ldap", reason="python-ldap is not installed (rpcqm[directory])")

OWN = f"CN=msmq,{OWN_COMPUTER}"
FREE = ("--rpc-port", "0", "--qm2qm-port", "0")


def configuration(domain: Domain, name: str, *lines: str) -> str:
    return (
        f'name = "{name}"\n[directory]\ndomain = "corp.test"\nservers = ["{CONTROLLER}"]\n'
        f'keytab = "{domain.keytab}"\nprincipal = "{MACHINE}@{REALM}"\nround = 1\ntimeout = 2\n'
        + "".join(f"{x}\n" for x in lines)
    )


PUBLISHES = ('mode = "publish"', 'publish = ["queues", "queue-manager"]')


@pytest.fixture(scope="module")
def environment(domain: Domain) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in domain.environment.items():
            patch.setenv(name, value)
        yield


def command(domain: Domain, place: Path, *words: str) -> str:
    """What a command writes; AssertionError if it fails."""
    rpcqm = (sys.executable, "-m", "rpcqm", *words)
    at = ("--config", place / "rpcqm.toml", "--data-dir", place / "data")
    return domain.run(*rpcqm, *at)


@pytest.fixture(scope="module")
def one(
    domain: Domain, environment: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedQueueManager]:
    """The queue manager that publishes, joined to Berlin."""
    place = tmp_path_factory.mktemp("one")
    settings = configuration(domain, "QM1", *PUBLISHES)
    (place / "rpcqm.toml").write_text(settings)
    planned = command(domain, place, "directory", "join", "--site", "Berlin", "--dry-run")
    assert planned == f"would add {OWN}\n"
    told = command(domain, place, "directory", "join", "--site", "Berlin")
    assert str(domain.identifier(OWN)) in told
    with ServedQueueManager(domain.namespace, place, settings, FREE) as running:
        assert running.ready["id"] == str(domain.identifier(OWN))
        until(lambda: "the directory is read" in running.log)
        yield running


@pytest.fixture(scope="module")
def other(
    domain: Domain, one: ServedQueueManager, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedQueueManager]:
    """A router in Berlin that only reads the directory, which has had it for long."""
    place = tmp_path_factory.mktemp("other")
    (place / "data").mkdir()
    write_mark(place / "data", f"{JOIN_ORDER}:{domain.identifier(ROUTER)}")
    ports = ("--rpc-port", "0", "--epm-port", "0", "--binary-port", "0", "--qm2qm-port", "0")
    with ServedQueueManager(
        domain.namespace, place, configuration(domain, "ROUTER1"), ports
    ) as running:
        until(lambda: "the directory is read" in running.log)
        yield running


def found_by_ldapsearch(domain: Domain, *attributes: str) -> str:
    search = ("ldapsearch", "-LLL", "-Q", "-Y", "GSSAPI", "-H", f"ldap://{CONTROLLER}")
    below = ("-b", OWN, "(objectClass=mSMQQueue)", *attributes)
    return domain.run(*search, *below, cache=domain.log_on("alice"))


def refusal(served: ServedQueueManager, *words: str) -> str:
    """What a command says to standard error that the queue manager refuses, "" if it does not."""
    rpcqm = [sys.executable, "-m", "rpcqm", *words, "--data-dir", str(served.directory / "data")]
    done = subprocess.run(rpcqm, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (not done.stderr), done
    return done.stderr


def logged(served: ServedQueueManager, text: str) -> int:
    return served.log.count(text)


def test_a_public_queue_of_one_is_used_by_the_other(
    domain: Domain, one: ServedQueueManager, other: ServedQueueManager
) -> None:
    one.command("queue", "create", r".\offers", "--label", "What we offer")
    identifier = domain.identifier(f"CN=offers,{OWN}")
    assert "mSMQLabelEx: What we offer" in found_by_ldapsearch(domain, "mSMQLabelEx")
    name = f"PUBLIC={identifier}"
    until(lambda: str(identifier) in other.command("queue", "list", "--directory", "--json"))
    for to in (r"qm1\offers", name):
        other.command("send", to, "--body", f"to {to}")
    bodies = [
        one.command("receive", r".\offers", "--timeout", "10000", "--format", "body")
        for _ in range(2)
    ]
    assert sorted(bodies) == sorted((f"to {name}", r"to qm1\offers"))


def test_changes_and_deletions_follow(domain: Domain, one: ServedQueueManager) -> None:
    one.command("queue", "create", r".\changing")
    one.command("queue", "set", r".\changing", "--label", "changed", "--quota", "7")
    found = found_by_ldapsearch(domain, "mSMQLabelEx", "mSMQQueueQuota")
    assert re.search(
        r"CN=changing.*\nmSMQQueueQuota: 7\nmSMQLabelEx: changed|"
        r"CN=changing.*\nmSMQLabelEx: changed\nmSMQQueueQuota: 7",
        found,
    )
    one.command("queue", "delete", r".\changing", "--yes")
    assert "changing" not in found_by_ldapsearch(domain, "dn")


def test_while_the_controller_is_frozen_nothing_waits_but_what_has_to_be_published(
    domain: Domain, one: ServedQueueManager
) -> None:
    one.command("queue", "create", r".\during")
    domain.freeze()
    try:
        assert "MQ_ERROR_NO_DS" in refusal(one, "queue", "create", r".\late")
        one.command("queue", "create", "private-one")
        one.command("send", r".\during", "--body", "here")
        assert one.command("receive", r".\during", "--format", "body") == "here"
    finally:
        domain.thaw()
    one_more = logged(one, "the directory is read")
    until(lambda: logged(one, "the directory is read") >= one_more)
    until(lambda: "late" not in found_by_ldapsearch(domain, "dn"))
    until(lambda: not refusal(one, "queue", "create", r".\late"))


def test_what_an_administrator_changes_there_counts_here(
    domain: Domain, one: ServedQueueManager
) -> None:
    one.command("queue", "create", r".\theirs", "--label", "ours")
    until(lambda: "theirs" in found_by_ldapsearch(domain, "dn"))

    labels = itertools.cycle(("ours", "of an administrator"))

    def heard() -> bool:
        """Theirs counts once a round has shown ours, so both are written in turns."""
        domain.change(
            f"dn: CN=theirs,{OWN}\nchangetype: modify\nreplace: mSMQLabelEx\n"
            f"mSMQLabelEx: {next(labels)}\n"
        )
        return "of an administrator" in one.command("queue", "show", r".\theirs", "--json")

    until(heard)
    one.command("queue", "set", r".\theirs", "--label", "ours again")
    domain.change(
        f"dn: CN=theirs,{OWN}\nchangetype: modify\nreplace: mSMQLabelEx\nmSMQLabelEx: lost\n"
    )
    planned = command(domain, one.directory, "directory", "publish", "--dry-run", r".\theirs")
    assert planned in (f"would set mSMQLabelEx of CN=theirs,{OWN}\n", "")
