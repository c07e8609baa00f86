"""The table [replica]: what a log is, and what a node needs to use it."""

from pathlib import Path
from typing import Any

import pytest

from rpcqm.config import ConfigurationError, load
from rpcqm.config.checking import check_file
from rpcqm.config.replica_files import read_access
from rpcqm.config.replica_section import ReplicaSection

HERE = "log = ['nats://127.0.0.1:4222']\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rpcqm.toml"


def mistakes(file: Path, table: str, name: str = "name = 'queues'\n") -> list[str]:
    file.write_text(f"{name}[replica]\n{table}")
    with pytest.raises(ConfigurationError) as caught:
        check_file(file)
    return [str(each).removeprefix(f"{file}:") for each in caught.value.mistakes]


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://h", "which is no URL that begins with tls://, nats:// or postgresql://"),
        ("tls://", "which is no URL: its host or its port is wrong"),
        ("tls://h:0", "which is no URL: its host or its port is wrong"),
        ("tls://h:99999", "which is no URL: its host or its port is wrong"),
        ("tls://h h", "which has characters that a URL cannot have"),
        ("tls://u:secret@h", "which has a user name: that belongs in `credentials_file`"),
        ("tls://h/x", "which names more than a host and a port"),
        ("postgresql://h", "which names no database: postgresql://HOST:PORT/DATABASE"),
        (
            "postgresql://h/d?sslmode=disable",
            "which has options: leave out what follows `?` or `#`",
        ),
    ],
)
def test_what_is_no_server_of_a_log_is_a_mistake(file: Path, address: str, reason: str) -> None:
    (told,) = mistakes(file, f"log = ['{address}']\n")
    assert told == f"3: `replica.log` is '{address}', {reason}."


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("node = 'a b'", "`replica.node` has characters that it cannot have: 'a b'."),
        ("name = 'A'", "`replica.name` has characters that it cannot have: 'A'."),
        ("takeover = 'never'", "`replica.takeover` is one of automatic, manual, not 'never'."),
        ("lease_milliseconds = 10", "`replica.lease_milliseconds` is from 500 to 600000, not 10."),
        (
            'on_promote = ["a\\u0000"]',
            "`replica.on_promote` is 'a\\x00', which no program can be given.",
        ),
    ],
)
def test_other_nonsense_is_a_mistake(file: Path, line: str, reason: str) -> None:
    (told,) = mistakes(file, f"{line}\n")
    assert told == f"3: {reason}"


def test_every_node_is_the_same_computer(file: Path) -> None:
    (told,) = mistakes(file, HERE, name="")
    assert told == "2: `replica.log` needs `name`, the same on every node of the cluster."


def test_a_log_elsewhere_needs_tls_and_an_account(file: Path) -> None:
    told = mistakes(file, "log = ['nats://192.0.2.1:4222', 'nats://127.0.0.1:4222']\n")
    assert told == [
        "replica.log: needs TLS, because nats://192.0.2.1:4222 is not on this machine: write "
        "tls://.",
        "replica.log: nats://192.0.2.1:4222 is not on this machine, so "
        "`replica.credentials_file` is needed.",
    ]


def test_a_log_in_a_database_elsewhere_needs_an_account(file: Path) -> None:
    (told,) = mistakes(file, "log = ['postgresql://192.0.2.1/queues']\n")
    assert "`replica.credentials_file` is needed" in told


def test_servers_are_of_one_kind(file: Path) -> None:
    (told,) = mistakes(file, "log = ['nats://127.0.0.1', 'postgresql://127.0.0.1/d']\n")
    assert told == "replica.log: has servers of several kinds: nats, postgresql."


def test_what_the_log_keeps_has_room_in_it(file: Path) -> None:
    (told,) = mistakes(file, HERE + "keep_bytes = '1GB'\nmaximum_bytes = '1GB'\n")
    assert told.startswith("replica.keep_bytes: is not less than `replica.maximum_bytes`")


def test_a_program_that_is_not_there_is_a_mistake(file: Path) -> None:
    (told,) = mistakes(file, HERE + "on_demote = ['/not/there', 'x']\n")
    assert told == "replica.on_demote: names '/not/there', which is no program that can be run."


def test_the_extra_is_needed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rpcqm.config.replica_files.find_spec", lambda name: None)
    (told,) = mistakes(file, HERE)
    assert told.startswith("replica.log: needs the extra replica, which is not installed")


def test_files_that_cannot_be_used_are_mistakes(file: Path, tmp_path: Path) -> None:
    account = tmp_path / "account"
    account.write_text("user = 'u'\npassword = 'geheim'\n")
    account.chmod(0o644)
    told = mistakes(file, HERE + f"credentials_file = '{account}'\nca_file = '{tmp_path}/no'\n")
    assert told == [
        f"{account}: others may read it (mode 0644): `chmod 600 {account}`.",
        f"replica.ca_file: {tmp_path}/no cannot be read: No such file or directory.",
    ]
    assert "geheim" not in "".join(told)


def test_without_a_log_nothing_is_asked(file: Path) -> None:
    file.write_text("[replica]\non_promote = ['/not/there']\n")
    assert check_file(file) is not None


def section(**values: Any) -> ReplicaSection:
    return ReplicaSection(log=values.pop("log", ("tls://h:4222",)), **values)


def test_an_account_is_a_user_or_a_file_of_nats(tmp_path: Path) -> None:
    file = tmp_path / "account"
    file.write_text("user = 'u'\npassword = 'p'\n")
    file.chmod(0o600)
    access = read_access(section(credentials_file=file))
    assert (access.user, access.password, access.credentials) == ("u", "p", None)
    assert "p'" not in repr(access)
    file.write_text("-----BEGIN NATS USER JWT-----\n")
    access = read_access(section(credentials_file=file))
    assert (access.user, access.credentials) == ("", file)


@pytest.mark.parametrize(
    ("address", "is_there"),
    [
        ("tls://h:4222", True),
        ("nats://127.0.0.1:4222", False),
        ("tls://127.0.0.1:4222", True),
        ("postgresql://h/d", True),
        ("postgresql://[::1]/d", False),
        ("postgresql://localhost/d", False),
    ],
)
def test_names_are_verified_wherever_there_is_a_network(address: str, is_there: bool) -> None:
    context = read_access(section(log=(address,))).context
    assert (context is not None) is is_there
    assert context is None or context.check_hostname


def test_only_one_server_on_this_machine_is_for_trying_out() -> None:
    assert section(log=("nats://127.0.0.1:1",)).tries_out
    assert not section(log=("nats://127.0.0.1:1", "nats://127.0.0.1:2")).tries_out
    assert not section(log=("tls://192.0.2.1:1",)).tries_out


def test_amounts_have_units(file: Path) -> None:
    file.write_text("[replica]\nlease_milliseconds = '2s'\nkeep_bytes = '2GiB'\n")
    replica = load({}, file, {}).replica
    assert (replica.lease_milliseconds, replica.keep_bytes) == (2000, 2 << 30)
