"""Other people's proxies on loopback, as the user who runs the tests: nginx, squid and haproxy."""

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.waiting import PATIENCE

_POLL = 0.02

NGINX = """\
worker_processes 1;
error_log {directory}/error.log;
pid {directory}/nginx.pid;
events {{ worker_connections 256; }}
http {{
    access_log {directory}/access.log;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    client_max_body_size 8m;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $http_host;
{servers}
}}
"""
NGINX_SERVER = """
    upstream to{port} {{ server {target}; keepalive 4; }}
    server {{
        listen 127.0.0.1:{port}{tls};
        location /msmq/ {{ proxy_pass {scheme}://to{port}; }}
    }}
"""
"""What README's operators write: nothing changes the target, so `%2F` and `$` stay as they are."""

SQUID = """\
http_port 127.0.0.1:{port}
http_access allow all
cache deny all
pid_filename {directory}/squid.pid
cache_log {directory}/cache.log
access_log stdio:{directory}/access.log
logfile_rotate 0
coredump_dir {directory}
shutdown_lifetime 0 seconds
"""

HAPROXY = """\
defaults
    mode {mode}
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend in
    bind 127.0.0.1:{port}
    {rules}
    default_backend out
backend out
    {answers}
    server one {target}
"""


@contextmanager
def running(argv: Sequence[str], port: int, log: Path) -> Iterator[None]:
    """A program that listens at a port of loopback until the block ends."""
    with log.open("ab") as said:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        _await_listener(process, port, log)
        yield
    finally:
        # None of them has anything to lose, and squid takes two seconds to end by itself.
        process.kill()
        process.wait()


def _await_listener(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), PATIENCE):
            return
        if process.poll() is not None or time.monotonic() > end:
            raise AssertionError(f"it does not listen: {log.read_text('utf-8', 'replace')}")
        time.sleep(_POLL)


@contextmanager
def _directory() -> Iterator[Path]:
    """One that a proxy may also write to when it gives up being root."""
    with tempfile.TemporaryDirectory(prefix="rpcqm-proxy-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def nginx_server(port: int, target: str, scheme: str = "http", tls: "Tls | None" = None) -> str:
    """A reverse proxy before a queue manager; with `tls` it ends TLS itself."""
    ends = "" if tls is None else f" ssl; ssl_certificate {tls.certificate}"
    ends += "" if tls is None else f"; ssl_certificate_key {tls.key}"
    return NGINX_SERVER.format(port=port, target=target, scheme=scheme, tls=ends)


@contextmanager
def nginx(port: int, *servers: str) -> Iterator[Path]:
    """nginx in one process, whose servers are all there when it listens at the port."""
    with _directory() as directory:
        file = directory / "nginx.conf"
        file.write_text(NGINX.format(directory=directory, servers="".join(servers)))
        once = "daemon off; master_process off;"
        argv = ["nginx", "-p", str(directory), "-c", str(file), "-g", once]
        with running(argv, port, directory / "output"):
            yield directory / "access.log"


@contextmanager
def squid(port: int) -> Iterator[Path]:
    """A forward proxy; the path of its access log."""
    with _directory() as directory:
        file = directory / "squid.conf"
        file.write_text(SQUID.format(port=port, directory=directory))
        with running(["squid", "-N", "-f", str(file)], port, directory / "output"):
            yield directory / "access.log"


@contextmanager
def haproxy(
    port: int, target: str, rules: str = "", answers: str = "", mode: str = "http"
) -> Iterator[None]:
    """A proxy with rules for what comes and for what is answered."""
    with _directory() as directory:
        file = directory / "haproxy.cfg"
        places = {"port": port, "target": target, "mode": mode}
        file.write_text(HAPROXY.format(rules=rules, answers=answers, **places))
        with running(["haproxy", "-db", "-f", str(file)], port, directory / "output"):
            yield


class Tls:
    """A certificate for loopback that signs itself, with its key, as files of a directory."""

    def __init__(self, directory: Path) -> None:
        self.certificate = directory / "certificate.pem"
        self.key = directory / "key.pem"
        key = ec.generate_private_key(ec.SECP256R1())
        self.certificate.write_bytes(_certificate(key))
        self.key.touch(0o600)
        self.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )


def _certificate(key: ec.EllipticCurvePrivateKey) -> bytes:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(True, 0), critical=True)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
