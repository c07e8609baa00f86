"""Who we log on as at other queue managers: the file, the settings, and what comes of them."""

from pathlib import Path

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.target import RemoteServer
from rpcqm.config import ConfigurationError, RemoteSection
from rpcqm.config.checking import check_file
from rpcqm.config.remote_accounts import RemoteAccount, load_remote_accounts
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.spnego import SpnegoCredentials
from rpcqm.service.remote_targets import RemoteTargets

BOTH = "user = 'CORP\\reader'\npassword = 'one'\n[Server2]\nuser = 'other'\npassword = 'two'\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "remote.toml"
    path.touch(0o600)
    return path


def mistakes(path: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_remote_accounts(path)
    return [str(mistake).removeprefix(f"{path}:") for mistake in caught.value.mistakes]


def test_an_account_is_found_by_the_machine_or_is_that_of_all_others(file: Path) -> None:
    file.write_text(BOTH)
    accounts = load_remote_accounts(file)
    assert accounts.find("SERVER2") == RemoteAccount("other", "two")
    assert accounts.find("server3") is None
    assert accounts.default == RemoteAccount("reader", "one", "CORP")


def test_a_machine_without_an_account_has_none(file: Path) -> None:
    file.write_text("[server2]\nuser = 'other'\npassword = 'two'\n")
    assert load_remote_accounts(file).find("server3") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_read_is_refused_unread(file: Path, mode: int) -> None:
    file.write_text("not even TOML")
    file.chmod(mode)
    assert mistakes(file) == [f" others may read it (mode {mode:04o}): `chmod 600 {file}`."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [" holds no account; it needs `user` and `password`."]),
        ("user = 'a'\n", [" the `password` is missing."]),
        ("\n[b]\npassword = 'x'\n", ["2: the `user` of [b] is missing."]),
        ("user = 1\npassword = ''\n", ["1: `user` is a text that is not empty."]),
        ("user = 'a'\npassword = 'b'\npasword = 'c'\n", ["3: there is no setting `pasword`"]),
        ("[b]\nuser = 'a'\npassword = 'b'\n[c]\nhost = 'x'\n", ["5: there is no setting `host`"]),
        ("user = 'a\n", ["1: "]),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(
    file: Path, text: str, expected: list[str]
) -> None:
    file.write_text(text)
    found = mistakes(file)
    assert [said[: len(start)] for said, start in zip(found, expected, strict=False)] == expected
    assert all(said.endswith(".") for said in found)


def test_no_mistake_tells_a_password(file: Path) -> None:
    file.write_text("user = 5\npassword = ['secret']\n")
    assert not any("secret" in said for said in mistakes(file))
    assert "secret" not in repr(RemoteAccount("a", "secret"))


def test_a_file_that_is_missing_or_no_text_is_one_sentence(file: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    assert mistakes(file) == [" is not UTF-8 text."]
    file.unlink()
    assert mistakes(file) == [" cannot be read: No such file or directory."]


def test_the_check_of_a_configuration_looks_into_the_file(file: Path, tmp_path: Path) -> None:
    configuration = tmp_path / "rpcqm.toml"
    configuration.write_text(f"[remote]\ncredentials_file = '{file}'\n")
    file.write_text("user = 'a'\n")
    with pytest.raises(ConfigurationError, match="the `password` is missing"):
        check_file(configuration)
    file.write_text(BOTH)
    check_file(configuration)


@pytest.mark.parametrize("peers", ["other", "other=", "other=a:b", "other=[::1", "a=b, ,c=d"])
def test_a_wrong_list_of_peers_is_a_mistake(tmp_path: Path, peers: str) -> None:
    configuration = tmp_path / "rpcqm.toml"
    configuration.write_text(f"[remote]\npeers = '{peers}'\n")
    with pytest.raises(ConfigurationError, match=r"2: `remote\.peers` has characters"):
        check_file(configuration)


def test_a_port_that_is_none_is_told_at_the_start() -> None:
    with pytest.raises(ConfigurationError, match=r"remote\.peers: `host:99999` is not HOST"):
        RemoteTargets(RemoteSection(peers="other=host:99999"))


def test_a_peer_is_where_the_configuration_says() -> None:
    peers = "Other=192.0.2.1:1135, third=[2001:db8::1]:135, fourth=[2001:db8::2]"
    targets = RemoteTargets(RemoteSection(allow_unauthenticated=True, peers=peers))
    assert targets("OTHER") == RemoteServer("192.0.2.1", 1135)
    assert targets("third") == RemoteServer("2001:db8::1", 135)
    assert targets("fourth") == RemoteServer("2001:db8::2", 135)
    assert targets("fifth.example.org") == RemoteServer("fifth.example.org", 135)


def test_nobody_is_asked_without_an_account_unless_that_is_allowed() -> None:
    with pytest.raises(MQError, match="no account for other") as caught:
        RemoteTargets(RemoteSection())("other")
    assert caught.value.status is HResult.MQ_ERROR_ACCESS_DENIED


def test_an_account_logs_on_by_ntlm(file: Path) -> None:
    file.write_text(BOTH)
    remote = RemoteSection(credentials_file=file)
    assert RemoteTargets(remote)("server2").credentials == NtlmCredentials("other", "two")


def test_the_default_account_goes_to_known_hosts_only(file: Path) -> None:
    """Clients may name any host (G86)."""
    file.write_text(BOTH)
    default = NtlmCredentials("reader", "one", "CORP")
    remote = RemoteSection(credentials_file=file, peers="third=192.0.2.3")
    targets = RemoteTargets(remote)
    assert targets("Third").credentials == default
    assert targets("listed", True).credentials == default
    with pytest.raises(MQError, match="no account for stranger"):
        targets("stranger")
    open_to_all = RemoteTargets(RemoteSection(credentials_file=file, default_account=True))
    assert open_to_all("stranger").credentials == default


def test_reading_without_a_logon_sends_no_account_to_a_stranger(file: Path) -> None:
    """The switch opens other hosts to clients, but does not make the account theirs."""
    file.write_text(BOTH)
    targets = RemoteTargets(RemoteSection(credentials_file=file, allow_unauthenticated=True))
    assert targets("stranger") == RemoteServer("stranger", 135, None)
    assert targets("server2").credentials == NtlmCredentials("other", "two")
    assert targets("listed", True).credentials == NtlmCredentials("reader", "one", "CORP")
    unprotected = RemoteTargets(RemoteSection(credentials_file=file, allow_unauthenticated=True))
    assert unprotected("stranger").credentials is None


def test_kerberos_comes_before_an_account(file: Path) -> None:
    kerberos = pytest.importorskip("rpcqm.rpc.security.kerberos", exc_type=ImportError)
    assert RemoteTargets(RemoteSection(kerberos=True))("other").credentials == (
        kerberos.KerberosCredentials("host/other")
    )
    file.write_text(BOTH)
    both = RemoteTargets(RemoteSection(kerberos=True, credentials_file=file))("server2").credentials
    assert both == SpnegoCredentials(
        (kerberos.KerberosCredentials("host/server2"), NtlmCredentials("other", "two"))
    )


def test_an_address_that_has_called_gets_only_an_account_of_its_own(file: Path) -> None:
    file.write_text(f"{BOTH}['192.0.2.7']\nuser = 'sink'\npassword = 'three'\n")
    peers = "server2=192.0.2.9,server3=192.0.2.8:1135"
    targets = RemoteTargets(RemoteSection(credentials_file=file, peers=peers, default_account=True))
    by_address, by_peer = targets.at_address("192.0.2.7"), targets.at_address("192.0.2.9")
    assert isinstance(by_address, NtlmCredentials)
    assert isinstance(by_peer, NtlmCredentials)
    assert (by_address.username, by_peer.username) == ("sink", "other")
    assert targets.at_address("192.0.2.8") is None
    assert targets.at_address("192.0.2.10") is None
    assert RemoteTargets(RemoteSection()).at_address("192.0.2.7") is None
