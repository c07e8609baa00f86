"""Other people's HTTP clients, each posting the requests of a directory over one connection.

`srmp_text.posts_in` writes the directory. All give the statuses in order.
"""

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

Client = Callable[[str, Path], list[int]]

PLACE = Path(__file__).parents[2] / "interop" / "srmp"
NODE_CLIENTS = ("axios", "undici")
_PATIENCE = 60


def _requests(directory: Path) -> list[tuple[str, list[str], Path]]:
    """Target, headers and the file of the body of each request."""
    found = []
    for path in sorted(directory.glob("*.headers")):
        target, *headers = path.read_text("ascii").splitlines()
        found.append((target, headers, path.with_suffix(".body")))
    return found


def _printed(*argv: str | Path) -> list[int]:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


def curl(base: str, directory: Path, *options: str) -> list[int]:
    """curl; its own headers are those of a form that is posted."""
    words: list[str | Path] = []
    for target, headers, body in _requests(directory):
        words += ["--next"] if words else []
        words += [*options, "--silent", "--show-error", "--output", "/dev/null"]
        words += ["--write-out", "%{http_code}\n", "--data-binary", f"@{body}"]
        for header in headers:
            words += ["--header", header]
        words.append(base + target)
    return _printed("curl", *words)


def python(base: str, directory: Path) -> list[int]:
    """http.client of Python's library."""
    place = urlsplit(base)
    assert place.hostname is not None
    connection = HTTPConnection(place.hostname, place.port, timeout=_PATIENCE)
    statuses = []
    for target, headers, body in _requests(directory):
        named = dict(header.split(": ", 1) for header in headers)
        connection.request("POST", target, body.read_bytes(), named)
        with connection.getresponse() as response:
            response.read()
            statuses.append(response.status)
    connection.close()
    return statuses


def axios(base: str, directory: Path) -> list[int]:
    """The axios package of Node."""
    return _printed("node", PLACE / "node" / "post.js", "axios", base, directory)


def undici(base: str, directory: Path) -> list[int]:
    """The undici package, on which Node's own fetch is built."""
    return _printed("node", PLACE / "node" / "post.js", "undici", base, directory)


def java(base: str, directory: Path) -> list[int]:
    """java.net.http.HttpClient, which first offers to go over to HTTP/2."""
    return _printed("java", *_QUICK_START, "-cp", _compiled(), "Post", base, directory)


_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@cache
def _compiled() -> Path:
    """The directory of the program in Java, compiled once for a test run."""
    place = Path(tempfile.mkdtemp(prefix="rpcqm-java-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    subprocess.run(["javac", "-d", place, PLACE / "Post.java"], check=True, timeout=_PATIENCE)
    return place


CLIENTS: dict[str, tuple[Client, tuple[str, ...]]] = {
    "curl": (curl, ("curl",)),
    "http.client": (python, ()),
    "axios": (axios, ("node",)),
    "undici": (undici, ("node",)),
    "java": (java, ("java", "javac")),
}
"""Each with the programs that it needs."""
