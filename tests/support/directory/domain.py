"""A domain of Samba's on loopback, in namespaces of its own: CORP.TEST with one domain controller.

It is made once for a run of tests and packed; each test unpacks a copy, which listens at once.
What speaks with it runs inside: `Domain.namespace` has ``argv``, ``run`` and ``start``.
"""

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from uuid import UUID

import pytest

from tests.support.directory import domain_objects
from tests.support.network.namespace import Namespace, NamespaceError
from tests.support.queue_manager import MEMORY
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]

REALM = "CORP.TEST"
NAME = "CORP"
CONTROLLER = "dc1.corp.test"
ADDRESS = "127.0.0.21"
BASE = domain_objects.BASE
PASSWORD = "of the tests 1!A"
"""Of every account: the administrator, QM1$, alice and bob."""
MACHINE = "QM1$"
SERVICE = "host/qm1.corp.test"
WEB = "HTTP/qm1.corp.test"
PROGRAMS = {
    "samba": "samba-ad-dc",
    "samba-tool": "samba",
    "ldbmodify": "ldb-tools",
    "ldapsearch": "ldap-utils",
    "kinit": "krb5-user",
}
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

_CLIENT = f"""\
[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 rdns = false
 dns_canonicalize_hostname = false
 udp_preference_limit = 1
[realms]
 {REALM} = {{
  kdc = {ADDRESS}
 }}
[domain_realm]
 corp.test = {REALM}
 .corp.test = {REALM}
"""

_HOSTS = f"""\
127.0.0.1 localhost
{ADDRESS} {CONTROLLER} dc1
127.0.0.1 qm1.corp.test qm1
127.0.0.1 qm2.corp.test qm2
127.0.0.1 router1.corp.test router1
"""

_SERVICES = "server services=ldap, cldap, kdc"


def require_domain() -> None:
    """Skip the test, and say why, where no domain controller can run."""
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=_PATH) is None:
            pytest.skip(f"{program} is not installed (Debian package {package})")
    if not Path("/usr/share/samba/setup").is_dir():
        pytest.skip("Samba's schema is not installed (Debian package samba-ad-provision)")
    if os.geteuid() != 0:
        pytest.skip("a domain controller takes root")


class Domain:
    """A domain controller that runs as long as the ``with`` block lasts.

    `environment` is what its clients need, `keytab` has the keys of MACHINE, SERVICE and WEB.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.keytab = directory / "qm1.keytab"
        self.environment = {
            "KRB5_CONFIG": str(directory / "krb5.conf"),
            "KRB5CCNAME": f"FILE:{directory / 'nobody'}",
            "KRB5RCACHENAME": f"dfl:{directory / 'replays'}",
            # The working directory is another one inside, and observers of tests are imported.
            "PYTHONPATH": str(ROOT),
        }
        self.namespace = Namespace(own_files=True)

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("krb5.conf", _CLIENT),
            ("hosts", _HOSTS),
            ("resolv.conf", f"nameserver {ADDRESS}\n"),
        ):
            (self.directory / name).write_text(text)
        self.namespace.__enter__()
        self.run("mount", "--make-rprivate", "/")
        self.run("hostname", "dc1")
        Path("/run/samba").mkdir(exist_ok=True)  # where several would find each other's numbers
        self.run("mount", "-t", "tmpfs", "none", "/run/samba")
        for name in ("hosts", "resolv.conf"):
            self.run("mount", "--bind", self.directory / name, f"/etc/{name}")
        return self

    def __exit__(self, *_: object) -> None:
        self.namespace.__exit__()

    # The controller

    @property
    def database(self) -> str:
        return str(self.directory / "dc/private/sam.ldb")

    @property
    def configuration(self) -> str:
        return str(self.directory / "dc/etc/smb.conf")

    @contextmanager
    def serving(self, *options: str) -> Iterator[Self]:
        """Run the controller until the end of the block."""
        self.start(*options)
        try:
            yield self
        finally:
            self.stop()

    def start(self, *options: str) -> None:
        """Start the controller, and wait until it listens; `options` are settings of Samba."""
        self._log = (self.directory / "log").open("ab")
        command = ["samba", "-i", "-M", "single", "-s", self.configuration]
        command += ["--debug-stdout", "-d", "1"]
        for each in (_SERVICES, "dns forwarder=", *options):
            command.append(f"--option={each}")
        inside = self.namespace.argv(command)
        self._controller = subprocess.Popen(
            inside, env=self.variables(), stdin=subprocess.PIPE, stdout=self._log, stderr=self._log
        )
        until(self._listens)

    def _listens(self) -> bool:
        assert self._controller.poll() is None, (self.directory / "log").read_text()[-3000:]
        done = self.namespace.run(["ss", "-Hltn", f"src {ADDRESS}"])
        return {f"{ADDRESS}:{port}" for port in (88, 389, 3268)} <= set(done.stdout.split())

    def stop(self) -> None:
        """End the controller by its process, frozen or not."""
        for each in (signal.SIGCONT, signal.SIGTERM):
            self._controller.send_signal(each)
        self._controller.communicate()
        self._log.close()

    def freeze(self) -> None:
        """Let the controller, which is the KDC, too, stand still."""
        self._controller.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._controller.send_signal(signal.SIGCONT)

    # What is asked of it, and changed in it

    def variables(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{_PATH}", **self.environment}

    def run(self, *command: object, stdin: str = "", cache: str = "", timeout: float = 120) -> str:
        """What a program inside writes; `cache` has its tickets. AssertionError if it fails."""
        environment = self.variables()
        if cache:
            environment["KRB5CCNAME"] = cache
        done = self.namespace.run(command, timeout, env=environment, input=stdin)
        assert done.returncode == 0, f"{command}: {done.stderr}{done.stdout}"
        return done.stdout

    def samba_tool(self, *arguments: str) -> str:
        """An order of samba-tool, on the database itself."""
        at = [] if arguments[0] in ("spn", "domain") else ["-H", self.database]
        return self.run("samba-tool", *arguments, "-s", self.configuration, *at)

    def change(self, ldif: str) -> None:
        """Changes as LDIF, on the database itself, as its administrator may make them."""
        self.run("ldbmodify", "-H", self.database, stdin=ldif)

    def add(self, ldif: str) -> None:
        """Objects as LDIF."""
        self.run("ldbadd", "-H", self.database, stdin=ldif)

    def delete(self, *names: str) -> None:
        self.run("ldbdel", "-H", self.database, *names)

    def identifier(self, name: str) -> UUID:
        """The objectGUID of a distinguished name."""
        search = ("-b", name, "-s", "base", "objectGUID")
        found = self.run("ldbsearch", "-H", self.database, *search)
        match = re.search(r"^objectGUID: (\S+)$", found, re.MULTILINE)
        assert match is not None, found
        return UUID(match[1])

    def log_on(self, name: str, cache: str = "") -> str:
        """A ticket cache with a new ticket-granting ticket of an account."""
        cache = cache or f"FILE:{self.directory / ('tickets-' + name)}"
        self.run("kinit", "-c", cache, name, stdin=f"{PASSWORD}\n")
        return cache

    def export_keytab(self, path: Path, *principals: str) -> None:
        """Write the present keys of principals into a keytab."""
        for each in principals:
            self.samba_tool("domain", "exportkeytab", str(path), f"--principal={each}")
        path.chmod(0o600)


@contextmanager
def unpacked_domain(cache: Path) -> Iterator[Domain]:
    """A copy of the packed domain, whose controller does not run yet."""
    require_domain()
    packed = _packed(cache)
    with tempfile.TemporaryDirectory(prefix="domain-", dir=MEMORY) as name:
        directory = Path(name)
        subprocess.run(["tar", "-xzf", packed, "-C", directory], check=True)
        place = (directory / "place").read_text()
        settings = directory / "dc/etc/smb.conf"
        settings.write_text(settings.read_text().replace(place, name))
        try:
            with Domain(directory) as domain:
                yield domain
        except NamespaceError as error:
            pytest.skip(f"no private namespace can be made here: {error}")


def _packed(cache: Path) -> Path:
    """The domain that this recipe makes, made by whichever process needs it first."""
    recipe = b"".join(Path(each).read_bytes() for each in (__file__, domain_objects.__file__))
    version = subprocess.run(["samba", "--version"], capture_output=True, check=True).stdout
    packed = cache / f"domain-{hashlib.sha256(recipe + version).hexdigest()[:16]}.tar.gz"
    with (cache / "domain.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not packed.exists():
            _pack(packed)
    return packed


def _pack(packed: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="domain-", dir=MEMORY) as name:
        try:
            with Domain(Path(name)) as domain:
                _provision(domain)
        except NamespaceError as error:
            pytest.skip(f"no private namespace can be made here: {error}")
        (Path(name) / "place").write_text(name)
        part = packed.with_suffix(".part")
        content = ("dc", "place", "qm1.keytab")
        subprocess.run(["tar", "-czf", part, "-C", name, *content], check=True)
        part.rename(packed)


def _provision(domain: Domain) -> None:
    domain.run(
        *("samba-tool", "domain", "provision", f"--targetdir={domain.directory / 'dc'}"),
        *(f"--realm={REALM}", f"--domain={NAME}", "--server-role=dc", "--dns-backend=NONE"),
        *(f"--adminpass={PASSWORD}", "--host-name=dc1", f"--host-ip={ADDRESS}"),
        *("--function-level=2008_R2", f"--option=interfaces={ADDRESS}/8"),
        *("--option=bind interfaces only=yes", "--option=vfs objects = acl_xattr"),
    )
    domain.samba_tool("spn", "add", f"ldap/{CONTROLLER}", "DC1$")
    domain.samba_tool("spn", "add", f"ldap/{CONTROLLER}/corp.test", "DC1$")
    _add_accounts(domain)
    domain.add(domain_objects.PLACES)
    domain.add(domain_objects.the_rest(domain.identifier))
    domain.export_keytab(domain.keytab, MACHINE, SERVICE, WEB)
    with domain.serving():  # which makes its key for TLS
        pass


def _add_accounts(domain: Domain) -> None:
    domain.samba_tool("ou", "create", domain_objects.BRANCH)
    domain.samba_tool("computer", "create", "QM1")
    domain.samba_tool("computer", "create", "QM2")
    domain.samba_tool("computer", "create", "ROUTER1", "--computerou=OU=Branch")
    domain.samba_tool("user", "setpassword", MACHINE, f"--newpassword={PASSWORD}")
    for each in (SERVICE, WEB):
        domain.samba_tool("spn", "add", each, MACHINE)
    for name in ("alice", "bob"):
        domain.samba_tool("user", "create", name, PASSWORD)
    domain.samba_tool("group", "add", "clerks")
    domain.samba_tool("group", "addmembers", "clerks", "alice")
    machines = {
        "QM1": domain_objects.OWN_COMPUTER,
        "QM2": f"CN=QM2,CN=Computers,{BASE}",
        "ROUTER1": f"CN=ROUTER1,{domain_objects.BRANCH}",
    }
    for name, place in machines.items():
        domain.change(_machine(place, f"{name.lower()}.corp.test"))


def _machine(place: str, name: str) -> str:
    return f"""\
dn: {place}
changetype: modify
replace: msDS-SupportedEncryptionTypes
msDS-SupportedEncryptionTypes: 24
-
replace: dNSHostName
dNSHostName: {name}
"""
