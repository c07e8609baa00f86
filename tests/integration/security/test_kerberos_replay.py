"""Somebody recorded a Kerberos log-on and sends it again; and the file of keys lies open."""

from pathlib import Path
from typing import Any

import pytest

from rpcqm.rpc.security.context import PKT_PRIVACY, AuthenticationError
from rpcqm.rpc.security.providers import security_providers
from tests.support.accounts import TestAccounts
from tests.support.rpc.kdc import SERVICE, Kdc

kerberos = pytest.importorskip("rpcqm.rpc.security.kerberos", exc_type=ImportError)


def request(kdc: Kdc) -> tuple[Any, bytes]:
    credentials = kerberos.KerberosCredentials(SERVICE, ccache=kdc.log_on("alice"))
    client = kerberos.KerberosInitiator(credentials, SERVICE)
    return client, client.step(b"")


def test_a_request_is_answered_once(kdc: Kdc, tmp_path: Path) -> None:
    """Whoever repeats it does not even get to the third leg, whatever the environment says."""
    _, token = request(kdc)
    provider = kerberos.KerberosProvider(TestAccounts(tmp_path), kdc.keytab)
    assert provider.accept(PKT_PRIVACY).step(token)
    with pytest.raises(AuthenticationError, match="replay"):
        provider.accept(PKT_PRIVACY).step(token)


@pytest.mark.parametrize("variable", ["KRB5RCACHETYPE", "KRB5RCACHENAME"])
def test_the_environment_does_not_turn_the_record_off(
    kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "none" if variable.endswith("TYPE") else "none:")
    _, token = request(kdc)
    provider = kerberos.KerberosProvider(TestAccounts(tmp_path), kdc.keytab)
    provider.accept(PKT_PRIVACY).step(token)
    with pytest.raises(AuthenticationError, match="replay"):
        provider.accept(PKT_PRIVACY).step(token)


def test_the_record_outlives_the_provider(kdc: Kdc, tmp_path: Path) -> None:
    _, token = request(kdc)
    accounts = TestAccounts(tmp_path)
    kerberos.KerberosProvider(accounts, kdc.keytab).accept(PKT_PRIVACY).step(token)
    with pytest.raises(AuthenticationError, match="replay"):
        kerberos.KerberosProvider(accounts, kdc.keytab).accept(PKT_PRIVACY).step(token)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_keys_that_others_may_read_are_refused(kdc: Kdc, tmp_path: Path, mode: int) -> None:
    keytab = tmp_path / "keytab"
    keytab.write_bytes(kdc.keytab.read_bytes())
    keytab.chmod(0o600)
    security_providers(TestAccounts(tmp_path), keytab=keytab)
    keytab.chmod(mode)
    with pytest.raises(AuthenticationError, match="others than its owner"):
        security_providers(TestAccounts(tmp_path), keytab=keytab)


def test_a_request_that_was_used_over_http_is_worth_nothing_at_rpc(
    kdc: Kdc, tmp_path: Path
) -> None:
    """G307: with its frame and without it."""
    gssapi = pytest.importorskip("gssapi")
    kdc.add_service("HTTP/localhost")
    accounts = TestAccounts(tmp_path)
    credentials = gssapi.Credentials(usage="initiate", store={"ccache": kdc.log_on("alice")})
    name = gssapi.Name("HTTP@localhost", gssapi.NameType.hostbased_service)
    mech = gssapi.MechType.kerberos
    client = gssapi.SecurityContext(name=name, creds=credentials, mech=mech, usage="initiate")
    token = bytes(client.step() or b"")
    kerberos.HttpKerberosProvider(accounts, kdc.keytab).accept(None).step(token)
    provider = kerberos.KerberosProvider(accounts, kdc.keytab)
    for request in (token, token[token.index(b"\x6e\x82") :]):
        with pytest.raises(AuthenticationError):
            provider.accept(PKT_PRIVACY).step(request)
