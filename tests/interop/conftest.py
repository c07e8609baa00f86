"""Independent clients: what they need, and where they run."""

import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.support.accounts import PASSWORD
from tests.support.network.namespace import Namespace, NamespaceError
from tests.support.rpc.kdc import PROGRAMS as KDC_PROGRAMS
from tests.support.rpc.kdc import Kdc
from tests.support.served import ServedQueueManager

PACKAGES = {
    "chromedriver": "chromium-driver",
    "chromium": "chromium",
    "capinfos": "wireshark-common",
    "curl": "curl",
    "dumpcap": "wireshark-common",
    "gcc": "gcc",
    "haproxy": "haproxy",
    "java": "default-jdk-headless",
    "javac": "default-jdk-headless",
    "kadmin.local": "krb5-admin-server",
    "kdb5_util": "krb5-kdc",
    "kinit": "krb5-user",
    "krb5kdc": "krb5-kdc",
    "kvno": "krb5-user",
    "mcs": "mono-mcs",
    "mono": "mono-runtime",
    "ndrdump": "samba-testsuite",
    "nginx": "nginx-light",
    "node": "nodejs",
    "ntlm_auth": "winbind",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "pidl": "source package samba, by scripts/install-peers",
    "rpcclient": "smbclient",
    "smbtorture": "samba-testsuite",
    "squid": "squid",
    "tshark": "tshark",
    "wine": "wine",
    "wineserver": "wine",
    "x86_64-w64-mingw32-gcc": "gcc-mingw-w64-x86-64",
    "x86_64-w64-mingw32-widl": "mingw-w64-tools",
}
"""The Debian package of each program that a test may require."""


@pytest.fixture(scope="session")
def require() -> Callable[..., None]:
    """Skips the test, naming the program and its package, when a program is missing."""

    def require(*programs: str) -> None:
        for program in programs:
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed (Debian package {PACKAGES[program]})")

    return require


@pytest.fixture(scope="module")
def namespace() -> Iterator[Namespace]:
    """A network namespace of the module's own, where port 135 is free."""
    try:
        with Namespace() as made:
            yield made
    except NamespaceError as error:
        pytest.skip(f"no private network namespace can be made here: {error}")


@pytest.fixture(scope="module")
def kdc(
    require: Callable[..., None], namespace: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kdc]:
    """A KDC in the module's namespace."""
    require(*KDC_PROGRAMS)
    pytest.importorskip("gssapi", reason="the package gssapi is not installed (rpcqm[kerberos])")
    with Kdc(tmp_path_factory.mktemp("kdc"), namespace.argv) as made:
        yield made


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest,
    require: Callable[..., None],
    namespace: Namespace,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ServedQueueManager]:
    """A queue manager of the module's own with an account for alice.

    It is set up by the module's CONFIGURATION, once the module's PROGRAMS are there. With
    KERBEROS it has the keys of the module's KDC.
    """
    require(*getattr(request.module, "PROGRAMS", ()))
    configuration = getattr(request.module, "CONFIGURATION", "")
    if getattr(request.module, "KERBEROS", False):
        keytab = request.getfixturevalue("kdc").keytab
        configuration += f'\n[security]\nkeytab = "{keytab}"\n'
    with ServedQueueManager(namespace, tmp_path_factory.mktemp("server"), configuration) as served:
        served.command("user", "add", "alice", "--password-stdin", stdin=PASSWORD + "\n")
        yield served
