"""`rpcqm doctor`: each check finds what it is there for."""

import dataclasses
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.cli import checks, doctor, name_checks
from rpcqm.cli.certificate_checks import check_certificates
from rpcqm.cli.checks import Check, CheckedMachine, Level
from rpcqm.cli.identity_checks import check_mark
from rpcqm.client.ready import ReadyFile
from rpcqm.config import Configuration
from rpcqm.config.console_section import ConsoleSection
from rpcqm.config.limits_reference import bounds
from rpcqm.config.limits_section import LimitsSection
from rpcqm.config.schema import BinarySection, StorageSection
from rpcqm.store import directory_mark
from tests.support.certificates import write_tls_files

ACCOUNT = f"alice:1000:{'X' * 32}:{'0' * 32}:[U          ]:LCT-00000000\n"


@pytest.fixture
def healthy(tmp_path: Path) -> CheckedMachine:
    """One that does not run, with an account, on a door that is free."""
    (tmp_path / "data").mkdir(mode=0o711)
    (tmp_path / "data").chmod(0o711)
    accounts = tmp_path / "data" / "accounts"
    accounts.write_text(ACCOUNT)
    accounts.chmod(0o600)
    return CheckedMachine(Configuration(data_dir=tmp_path / "data", epm_port=0), None)


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def changed(patient: CheckedMachine, **settings: Any) -> CheckedMachine:
    return CheckedMachine(dataclasses.replace(patient.configuration, **settings), patient.running)


def running(patient: CheckedMachine, **endpoints: tuple[str, int]) -> CheckedMachine:
    ready = ReadyFile(os.getpid(), "here", UUID(int=1), Path("socket"), endpoints)
    return CheckedMachine(patient.configuration, ready)


def levels(check: Check, patient: CheckedMachine) -> set[Level]:
    return {finding.level for finding in check(patient)}


def told(check: Check, patient: CheckedMachine) -> str:
    return " ".join(finding.text for finding in check(patient))


@pytest.mark.parametrize("check", [checks.check_files, checks.check_accounts, checks.check_disk])
def test_what_is_well_is_good(healthy: CheckedMachine, check: Check) -> None:
    assert levels(check, healthy) == {Level.GOOD}


def test_a_directory_that_others_read_is_told(healthy: CheckedMachine) -> None:
    healthy.configuration.data_dir.chmod(0o755)
    assert "`chmod 711" in told(checks.check_files, healthy)
    assert levels(checks.check_files, healthy) == {Level.WARNING}


def test_a_directory_that_cannot_be_written_is_a_problem(
    healthy: CheckedMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert levels(checks.check_files, healthy) == {Level.PROBLEM}


@pytest.mark.parametrize(
    ("text", "mode", "level", "words"),
    [
        (ACCOUNT, 0o644, Level.PROBLEM, "chmod 600"),
        (ACCOUNT + "nonsense\n", 0o600, Level.PROBLEM, "accounts:2: is no line of an account"),
        ("", 0o600, Level.WARNING, "There is no account"),
    ],
)
def test_a_wrong_account_file_is_told(
    healthy: CheckedMachine, text: str, mode: int, level: Level, words: str
) -> None:
    path = healthy.configuration.data_dir / "accounts"
    path.write_text(text)
    path.chmod(mode)
    assert level in levels(checks.check_accounts, healthy)
    assert words in told(checks.check_accounts, healthy)


def test_a_full_disk_is_a_problem(healthy: CheckedMachine) -> None:
    full = changed(healthy, storage=StorageSection(reserve=1 << 30))
    assert levels(checks.check_disk, full) == {Level.PROBLEM, Level.GOOD}


def test_a_slow_disk_is_told(healthy: CheckedMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SLOW_SYNC", 0.0)
    assert Level.WARNING in levels(checks.check_disk, healthy)


def test_a_clock_that_was_set_back_is_a_problem(healthy: CheckedMachine) -> None:
    later = 4_000_000_000
    os.utime(healthy.configuration.data_dir / "accounts", (later, later))
    assert "it was set back" in told(checks.check_clock, healthy)


@pytest.mark.parametrize(
    ("said", "level"), [(True, Level.GOOD), (False, Level.WARNING), (None, Level.WARNING)]
)
def test_a_clock_that_nothing_keeps_right_is_told(
    healthy: CheckedMachine, monkeypatch: pytest.MonkeyPatch, said: bool | None, level: Level
) -> None:
    monkeypatch.setattr(checks, "_synchronized", lambda: said)
    assert levels(checks.check_clock, healthy) == {level}


def test_too_few_open_files_are_told(healthy: CheckedMachine) -> None:
    many = changed(healthy, limits=LimitsSection(connections=1 << 20))
    few = changed(healthy, limits=LimitsSection(connections=1))
    assert levels(checks.check_limits, few) == {Level.GOOD}
    assert levels(checks.check_limits, many) <= {Level.WARNING, Level.GOOD}


def test_every_bound_is_told_with_what_is_in_force(healthy: CheckedMachine) -> None:
    text = told(checks.check_bounds, changed(healthy, limits=LimitsSection(contexts=77)))
    assert "limits.contexts 77," in text
    assert all(f"{bound.name} " in text for bound in bounds())


def test_a_name_without_an_address_is_told(healthy: CheckedMachine) -> None:
    nowhere = changed(healthy, name="no-such-host.invalid")
    assert "has no address here" in told(checks.check_name, nowhere)
    assert "see that clients" in told(checks.check_name, changed(healthy, name="localhost"))


def test_a_port_that_is_taken_is_a_problem(healthy: CheckedMachine, listening: int) -> None:
    taken = changed(healthy, epm_port=listening)
    assert f"Port {listening} of 127.0.0.1 cannot be had" in told(checks.check_ports, taken)


def test_a_door_that_does_not_answer_is_a_problem(healthy: CheckedMachine, listening: int) -> None:
    there = running(healthy, rpc=("127.0.0.1", listening))
    assert levels(checks.check_ports, there) == {Level.GOOD}
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        gone = running(healthy, rpc=("127.0.0.1", reserved.getsockname()[1]))
        assert levels(checks.check_ports, gone) == {Level.PROBLEM}


def test_a_windows_client_needs_the_endpoint_mapper(
    healthy: CheckedMachine, listening: int
) -> None:
    without = running(healthy, rpc=("127.0.0.1", listening))
    assert "It would find nothing" in told(checks.check_windows, without)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        gone = ("127.0.0.1", reserved.getsockname()[1])
        text = told(checks.check_windows, running(healthy, epm=gone, rpc=gone))
    assert "which is this machine's own" in text
    assert "It would ask at port 135" in text
    assert "leads to no RemoteRead" in text


@pytest.mark.parametrize(
    ("alias", "addresses", "level", "words"),
    [
        ("q.example", ["192.0.2.7"], Level.GOOD, "`q.example` is 192.0.2.7."),
        ("q.example:80", ["192.0.2.2"], Level.GOOD, "`q.example:80` is 192.0.2.2."),
        ("q.example", [], Level.WARNING, "`q.example` has no address here"),
        ("q.example", ["192.0.2.2"], Level.PROBLEM, "where b is by `binary.peers`"),
    ],
)
def test_further_names_without_an_address_or_with_that_of_a_peer_are_told(
    healthy: CheckedMachine,
    monkeypatch: pytest.MonkeyPatch,
    alias: str,
    addresses: list[str],
    level: Level,
    words: str,
) -> None:
    def found(host: str, port: None) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        assert (host, port) == ("q.example", None)
        if not addresses:
            raise socket.gaierror
        return [(2, 1, 6, "", (each, 0)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    patient = changed(healthy, aliases=(alias,), binary=BinarySection(peers="b=192.0.2.2"))
    assert levels(name_checks.check_aliases, patient) == {level}
    assert words in told(name_checks.check_aliases, patient)


@pytest.mark.parametrize(
    ("identifier", "level", "text"),
    [
        ("id:0000000100000000", Level.GOOD, "no copy"),
        ("id:0000000200000000", Level.PROBLEM, "was copied"),
        ("", Level.WARNING, "has no identifier that stays"),
    ],
)
def test_the_mark_of_the_data_directory_is_compared(
    healthy: CheckedMachine,
    monkeypatch: pytest.MonkeyPatch,
    identifier: str,
    level: Level,
    text: str,
) -> None:
    path = healthy.configuration.data_dir
    assert levels(check_mark, healthy) == set()
    monkeypatch.setattr(directory_mark, "file_system_of", lambda _: "id:0000000100000000")
    directory_mark.write_mark(path)
    monkeypatch.setattr(directory_mark, "file_system_of", lambda _: identifier)
    assert levels(check_mark, healthy) == {level}
    assert f"{path}" in told(check_mark, healthy)
    assert text in told(check_mark, healthy)


def test_only_what_is_good_of_bounds_is_hidden() -> None:
    for level in Level:
        found = checks.CheckResult(checks.BOUNDS, level, "Something.")
        assert doctor._is_bound(found) is (level is Level.GOOD)
    assert not doctor._is_bound(checks.CheckResult("disk", Level.GOOD, "Something."))


@pytest.mark.parametrize(
    ("days", "level", "sentence"),
    [
        (400, Level.GOOD, "That of console.certificate is valid until 2"),
        (20, Level.WARNING, " only."),
        (-1, Level.PROBLEM, ": others refuse it."),
    ],
)
def test_the_end_of_a_certificate_is_told_before_a_start(
    healthy: CheckedMachine, tmp_path: Path, days: int, level: Level, sentence: str
) -> None:
    file = tmp_path / "tls.pem"
    named = changed(healthy, console=ConsoleSection(certificate=file))
    assert levels(check_certificates, named) == {Level.PROBLEM}
    assert "cannot be read, or " in told(check_certificates, named)
    write_tls_files(tmp_path, end=datetime.now(UTC) + timedelta(days=days))
    assert levels(check_certificates, named) == {level}
    assert sentence in told(check_certificates, named)
    assert not told(check_certificates, running(named)), "it tells of them itself"
    assert not told(check_certificates, healthy)
