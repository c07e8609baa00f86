"""`rpcqm directory test`, `show` and `export` on Samba's directory."""

import json
import sys
from pathlib import Path

import pytest

from rpcqm.config.directory import load_directory
from tests.support.directory.domain import CONTROLLER, Domain

pytest.importorskip("ldap", reason="python-ldap is not installed (rpcqm[directory])")


@pytest.fixture
def file(domain: Domain, tmp_path: Path) -> Path:
    path = tmp_path / "rpcqm.toml"
    path.write_text(
        f'name = "QM1"\ndata_dir = "{tmp_path}"\n[directory]\ndomain = "corp.test"\n'
        f'servers = ["{CONTROLLER}"]\nkeytab = "{domain.keytab}"\ntimeout = 30\n'
    )
    return path


def test_doctor_goes_the_steps_too(domain: Domain, file: Path) -> None:
    command = [sys.executable, "-m", "rpcqm", "doctor", "--json", "--config", str(file)]
    found = json.loads(domain.namespace.run(command, env=domain.variables()).stdout)
    told = [each for each in found if each["subject"] == "directory"]
    assert [each["level"] for each in told][:2] == ["ok", "ok"]
    assert any("rpcqm directory join" in each["text"] for each in told)


def order(domain: Domain, file: Path, *words: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "rpcqm", "directory", *words, "--config", str(file)]
    done = domain.namespace.run(command, env=domain.variables())
    return done.returncode, done.stdout, done.stderr


def test_each_step_is_told_with_what_may_be_done(domain: Domain, file: Path) -> None:
    status, said, wrong = order(domain, file, "test", "--json")
    assert status == 0, wrong
    steps = {each["step"]: each for each in json.loads(said)}
    assert list(steps) == ["locate", "connect", "clock", "search", "own object"]
    assert "sealed, as QM1$@CORP.TEST" in steps["connect"]["finding"]
    assert "one may be made" in steps["own object"]["finding"]
    assert "rpcqm directory join" in steps["own object"]["remedy"]


def test_a_step_that_fails_says_what_helps(domain: Domain, file: Path) -> None:
    file.write_text(file.read_text().replace(str(domain.keytab), "/nowhere"))
    status, said, _ = order(domain, file, "test")
    assert status == 1
    assert "keytab: Let `directory.keytab` be a file" in said


def test_what_a_controller_has_is_shown_and_exported(domain: Domain, file: Path) -> None:
    status, said, wrong = order(domain, file, "show", "queues", "--from", "server", "--json")
    assert status == 0, wrong
    assert "qm2\\offers" in {each["pathname"] for each in json.loads(said)}
    status, said, wrong = order(domain, file, "export", "--from", "server")
    assert status == 0, wrong
    exported = file.parent / "directory.toml"
    exported.write_text(said)
    read = load_directory(exported)
    assert {"Berlin", "Paris"} <= {each.name for each in read.sites}
    assert read.routing_links[0].actual_cost == 7
    assert {each.name for each in read.distribution_lists} == {"inner", "everybody"}


def test_what_is_not_there_is_said_in_a_sentence(domain: Domain, file: Path) -> None:
    status, _, wrong = order(domain, file, "show")
    assert (status, wrong.count("\n")) == (1, 1)
    assert "--from server asks a controller" in wrong
    status, _, wrong = order(domain, file, "show", "me", "--from", "server")
    assert "no queue manager QM1" in wrong
    file.write_text('name = "QM1"\n')
    status, _, wrong = order(domain, file, "test")
    assert (status, "`directory.domain` is not set" in wrong) == (2, True)
