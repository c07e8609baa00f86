"""A throwaway MIT KDC on loopback: a realm with alice, mallory and the service's own principal."""

import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import pytest

from tests.support.accounts import PASSWORD
from tests.support.ports import reserved_port
from tests.support.waiting import PATIENCE

PROGRAMS = ("kadmin.local", "kdb5_util", "kinit", "krb5kdc", "kvno")
REALM = "RPCQM.TEST"
HOST = "rpchost"
SERVICE = f"host/{HOST}@{REALM}"
SERVICE_PASSWORD = "a service's"

_CLIENT = """\
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
{keys}
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 {host} = {realm}
 localhost = {realm}
"""

_SERVER = """\
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/acl
{supported}
 }}
[logging]
 kdc = FILE:{directory}/kdc.log
"""


def require_kdc() -> None:
    """Skips the test, naming the program and its packages, when a program is missing."""
    for program in PROGRAMS:
        if shutil.which(program, path="/usr/sbin:/usr/bin") is None:
            pytest.skip(f"{program} is not installed (Debian packages krb5-kdc, krb5-admin-server)")


class Kdc:
    """Runs as long as the ``with`` block lasts; `inside` makes commands run in a namespace.

    `environment` is what its clients need; `keytab` has the keys of SERVICE. All keys are of
    `key_type` if it is given, also of one that nobody should use any more.
    """

    def __init__(
        self,
        directory: Path,
        inside: Callable[[Sequence[object]], list[str]] | None = None,
        key_type: str = "",
    ) -> None:
        self.directory = directory
        self._key_type = key_type
        self.keytab = directory / "keytab"
        self.other_keytab = directory / "other-keytab"
        self._caches: dict[str, str] = {}
        self._argv = inside or (lambda command: list(map(str, command)))
        self.environment = {
            "KRB5_CONFIG": str(directory / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{directory / 'none'}",
            "KRB5RCACHENAME": f"dfl:{directory / 'replays'}",
        }

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._configure()
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        for name in ("alice", "mallory", "alice/admin"):
            self._run("kadmin.local", "-q", f"addprinc -pw {PASSWORD} {name}")
        self._run("kadmin.local", "-q", f"addprinc -randkey host/{HOST}")
        self._run("kadmin.local", "-q", f"ktadd -k {self.keytab} host/{HOST}")
        self._kdc = subprocess.Popen(self._argv(["krb5kdc", "-n"]), env=self._environment())
        if not self._listens():
            raise AssertionError(f"the KDC does not start: {self._said()}")
        return self

    def _configure(self) -> None:
        """Write its files, with a port of its own."""
        values = {
            "directory": self.directory,
            "host": HOST,
            "port": reserved_port(),
            "realm": REALM,
            "keys": "",
            "supported": "",
        }
        if self._key_type:
            values["keys"] = f" permitted_enctypes = {self._key_type}\n allow_rc4 = true"
            values["supported"] = f"  supported_enctypes = {self._key_type}:normal"
        (self.directory / "krb5.conf").write_text(_CLIENT.format(**values))
        (self.directory / "kdc.conf").write_text(_SERVER.format(**values))

    def __exit__(self, *_: object) -> None:
        self._kdc.terminate()
        self._kdc.wait()

    def log_on(self, name: str) -> str:
        """A ticket cache with a ticket-granting ticket."""
        if name not in self._caches:
            self._caches[name] = f"FILE:{self.directory / name.replace('/', '-')}"
            self._run("kinit", "-c", self._caches[name], name, stdin=f"{PASSWORD}\n")
        return self._caches[name]

    def service_ticket(self, name: str) -> str:
        """A ticket cache with a ticket for the service, so that the KDC is not asked again."""
        cache = self.log_on(name)
        self._run("kvno", "-c", cache, SERVICE)
        return cache

    def add_service(self, name: str) -> None:
        """Another service with keys in `keytab`; `other_keytab` stays without them."""
        shutil.copyfile(self.keytab, self.other_keytab)
        self.other_keytab.chmod(0o600)
        self._run("kadmin.local", "-q", f"addprinc -randkey {name}")
        self._run("kadmin.local", "-q", f"ktadd -k {self.keytab} {name}")

    def set_service_password(self) -> None:
        """Give the service keys that are made of SERVICE_PASSWORD; tickets are new from now on."""
        self._run("kadmin.local", "-q", f'cpw -pw "{SERVICE_PASSWORD}" host/{HOST}')
        self._run("kadmin.local", "-q", f"ktadd -norandkey -k {self.keytab} host/{HOST}")
        self._caches.clear()

    def _listens(self) -> bool:
        """Wait until it says that it listens, or has ended."""
        deadline = time.monotonic() + PATIENCE
        while "commencing operation" not in self._said():
            if self._kdc.poll() is not None:
                return False
            if time.monotonic() > deadline:
                self._kdc.kill()
            time.sleep(0.01)
        return True

    def _said(self) -> str:
        log = self.directory / "kdc.log"
        return log.read_text("utf-8", "replace") if log.exists() else ""

    def _environment(self) -> dict[str, str]:
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **self.environment}

    def _run(self, *command: str, stdin: str = "") -> None:
        done = subprocess.run(
            self._argv(command),
            env=self._environment(),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"{command[0]}: {done.stderr}")
