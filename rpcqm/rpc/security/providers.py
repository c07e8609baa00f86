"""A server's table of security providers ([MS-RPCE] 3.1.3.1.1), made from accounts and a keytab."""

import socket
from pathlib import Path

from rpcqm.rpc.constants import AuthenticationType
from rpcqm.rpc.security import logon
from rpcqm.rpc.security.context import AuthenticationError, SecurityProvider
from rpcqm.rpc.security.logon import LogonThrottle
from rpcqm.rpc.security.ntlm import AccountDirectory, NtlmProvider, NtlmSettings
from rpcqm.rpc.security.spnego import KERBEROS, MS_KERBEROS, NTLM, MechanismProvider, SpnegoProvider


def security_providers(
    accounts: AccountDirectory,
    *,
    ntlm: bool = True,
    keytab: Path | None = None,
    principal: str = "",
    throttle: LogonThrottle | None = None,
    ntlm_settings: NtlmSettings | None = None,
) -> dict[int, SecurityProvider]:
    """The providers by authentication type: NTLM, Kerberos where there is a keytab, and SPNEGO.

    A `throttle` is asked around every attempt to prove a password. Without a `principal` the
    server's name is the first in the keytab, else that of the host. Raises AuthenticationError
    when the keytab cannot be used.
    """
    throttle = throttle or logon.throttle_of(accounts)
    name = principal or f"host/{socket.gethostname()}"
    providers: dict[int, SecurityProvider] = {}
    mechanisms: dict[str, MechanismProvider] = {}
    if keytab is not None:
        kerberos = _kerberos(accounts, keytab, principal)
        providers[AuthenticationType.RPC_C_AUTHN_GSS_KERBEROS] = kerberos
        mechanisms |= {MS_KERBEROS: kerberos, KERBEROS: kerberos}
        name = kerberos.principal_name
    if ntlm:
        provider = NtlmProvider(accounts, name, throttle, ntlm_settings)
        providers[AuthenticationType.RPC_C_AUTHN_WINNT] = mechanisms[NTLM] = provider
    if mechanisms:
        providers[AuthenticationType.RPC_C_AUTHN_GSS_NEGOTIATE] = SpnegoProvider(mechanisms)
    return providers


def check_private(keytab: Path) -> None:
    """Raise AuthenticationError if others than its owner may read a file of keys."""
    try:
        mode = keytab.stat().st_mode
    except OSError:
        return  # the library tells what is wrong with the file
    if mode & 0o077:
        raise AuthenticationError("others than its owner may use the file; chmod 600 helps")


def _kerberos(accounts: AccountDirectory, keytab: Path, principal: str) -> MechanismProvider:
    try:
        from rpcqm.rpc.security.kerberos import KerberosProvider
    except ImportError as error:
        text = "Kerberos needs the package gssapi: install rpcqm[kerberos]"
        raise AuthenticationError(text) from error
    check_private(keytab)
    return KerberosProvider(accounts, keytab, principal)
