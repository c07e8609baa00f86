"""A queue manager with Samba's directory: what it knows, and what its loop never waits for."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.directory.domain import CONTROLLER, Domain
from tests.support.directory.domain_objects import OTHER
from tests.support.served import ServedQueueManager
from tests.support.waiting import until

pytest.importorskip("ldap", reason="python-ldap is not installed (rpcqm[directory])")

OFFERS = "qm2\\offers"


def configuration(domain: Domain, *lines: str) -> str:
    return (
        f'name = "QM1"\n[directory]\ndomain = "corp.test"\nservers = ["{CONTROLLER}"]\n'
        f'keytab = "{domain.keytab}"\nround = 1\ntimeout = 2\n' + "".join(f"{x}\n" for x in lines)
    )


@pytest.fixture(scope="module")
def served(
    domain: Domain, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedQueueManager]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in domain.environment.items():
            patch.setenv(name, value)
        directory = tmp_path_factory.mktemp("served")
        settings = configuration(domain)
        with ServedQueueManager(domain.namespace, directory, settings) as running:
            until(lambda: "the directory is read" in running.log)
            yield running


def libraries(process: int) -> str:
    return Path(f"/proc/{process}/maps").read_text()


def test_the_process_that_serves_has_no_library_for_ldap(served: ServedQueueManager) -> None:
    assert "libldap" not in libraries(served.ready["pid"])


def test_a_queue_elsewhere_is_known_by_its_path_name_and_its_identifier(
    domain: Domain, served: ServedQueueManager
) -> None:
    identifier = domain.identifier(f"CN=offers,{OTHER}")
    for name in (OFFERS, f"PUBLIC={identifier}"):
        served.command("send", name, "--body", "x")


def test_a_controller_that_freezes_holds_up_nothing_and_nothing_is_forgotten(
    domain: Domain, served: ServedQueueManager
) -> None:
    domain.freeze()
    try:
        until(lambda: "the directory is not read" in served.log)
        served.command("send", OFFERS, "--body", "while it is frozen")
    finally:
        domain.thaw()
    seen = served.log.count("the directory is read")
    until(lambda: served.log.count("the directory is read") > seen)


def test_a_start_needs_no_controller(domain: Domain, served: ServedQueueManager) -> None:
    kept = served.directory / "data/directory.replica"
    assert kept.stat().st_mode & 0o777 == 0o600
    domain.freeze()
    try:
        again = served.directory.parent / "again"
        (again / "data").mkdir(parents=True)
        (again / "data/directory.replica").write_bytes(kept.read_bytes())
        with ServedQueueManager(
            domain.namespace, again, configuration(domain), ("--rpc-port", "0", "--epm-port", "0")
        ) as running:
            running.command("send", OFFERS, "--body", "x")
    finally:
        domain.thaw()


def test_what_was_kept_is_shown_by_a_command(domain: Domain, served: ServedQueueManager) -> None:
    file = served.directory / "rpcqm.toml"
    found = served.command("directory", "show", "sites", "--json", "--config", str(file))
    assert {"Berlin", "Paris"} <= {each["name"] for each in json.loads(found)}
