"""A browser without scripts: cookies, forms and redirects, over http.client."""

import http.client
import json
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit

from rpcqm.testing import PrivateQueueManager
from tests.support.waiting import PATIENCE, until

MOST_REDIRECTS = 5
MOST_LINES = 10


class Answer(NamedTuple):
    """What came back, as text."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def title(self) -> str:
        found = re.search("<h1>(.*?)</h1>", self.text, re.DOTALL)
        return found[1] if found else ""

    @property
    def words(self) -> str:
        """The text that a person reads."""
        reader = _Words()
        reader.feed(self.text)
        return " ".join(" ".join(reader.words).split())

    @property
    def tags(self) -> list[tuple[str, dict[str, str | None]]]:
        """All elements with their attributes."""
        reader = _Words()
        reader.feed(self.text)
        return reader.tags


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


class Browser:
    """Somebody at `home`, the origin of the pages, which is at an address of loopback.

    Over TLS `certificate` is what the server has to show, for `localhost`.
    """

    def __init__(
        self, address: tuple[str, int], home: str, certificate: Path | None = None
    ) -> None:
        self.address, self.home = address, home
        self._certificate = certificate
        self.host = urlsplit(home).netloc
        self.cookies: dict[str, str] = {}
        self.token = ""

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request; redirects are not followed."""
        status, told, octets = self._asked(method, path, body, headers)
        text = octets.decode("utf-8", "replace")
        self._keep(told)
        if found := re.search('name="token" value="([^"]+)"', text):
            self.token = found[1]
        return Answer(status, told, text)

    def _asked(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = self._connect()
        more = {"Host": self.host, **dict(headers or {})}
        if self.cookies and "Cookie" not in more:
            more["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            connection.request(method, path, body or None, more)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def download(
        self, path: str, fields: Mapping[str, str]
    ) -> tuple[bytes, http.client.HTTPMessage]:
        """The file that a form with the token of the last page brings, and its headers."""
        body = urlencode([("token", self.token), *fields.items()]).encode()
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.home}
        status, headers, octets = self._asked("POST", path, body, form)
        assert status == 200, octets[:1000]
        return octets, headers

    def _connect(self) -> http.client.HTTPConnection:
        if self._certificate is None:
            return http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        context = ssl.create_default_context(cafile=self._certificate)
        port = self.address[1]
        return http.client.HTTPSConnection("localhost", port, timeout=PATIENCE, context=context)

    @contextmanager
    def followed(self) -> Iterator[http.client.HTTPResponse]:
        """The stream of what pages that follow changes are told."""
        connection = self._connect()
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request("GET", "/console/events", None, {"Host": self.host, "Cookie": cookies})
        try:
            yield connection.getresponse()
        finally:
            connection.close()

    @contextmanager
    def events(self) -> Iterator[Callable[[], bytes]]:
        """The same: gives the next line that says something."""
        with self.followed() as answer:

            def next_line() -> bytes:
                lines = (answer.readline().strip() for _ in range(MOST_LINES))
                return next(each for each in lines if each not in (b"", b"data:"))

            yield next_line

    def get(self, path: str) -> Answer:
        """A page, behind its redirects."""
        answer = self.ask("GET", path)
        for _ in range(MOST_REDIRECTS):
            if answer.status != 303:
                break
            path = urljoin(self.home + path, answer.headers["Location"]).removeprefix(self.home)
            answer = self.ask("GET", path)
        return answer

    def send(
        self,
        path: str,
        fields: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """A form with the token of the last page; redirects are not followed."""
        pairs = list(fields.items() if isinstance(fields, Mapping) else fields)
        body = urlencode([("token", self.token), *pairs]).encode()
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.home}
        return self.ask("POST", path, body, form | dict(headers or {}))

    def submit(
        self, path: str, fields: Mapping[str, str] | Iterable[tuple[str, str]] = ()
    ) -> Answer:
        """The same, and the page behind it."""
        answer = self.send(path, fields)
        return self.get(answer.headers["Location"]) if answer.status == 303 else answer

    def log_on(self, name: str, password: str = "secret") -> Answer:
        """By the form."""
        return self.submit("/console/logon", {"account": name, "password": password})

    def _keep(self, headers: http.client.HTTPMessage) -> None:
        for line in headers.get_all("Set-Cookie", []):
            name, _, value = line.partition(";")[0].partition("=")
            if value:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)


def open_browser(running: PrivateQueueManager, certificate: Path | None = None) -> Browser:
    """A browser at the pages of a queue manager that runs, not logged on."""
    until(lambda: '"pages"' in running.log)
    ready = next(line for line in running.log.splitlines() if '"pages"' in line)
    return Browser(running.endpoint("console"), json.loads(ready)["pages"], certificate)


def one_time_token(running: PrivateQueueManager) -> str:
    """What `rpcqm console` gives the browser of who runs this."""
    path = Path(running.run("console", "--no-open").stdout.strip())
    found = re.search('name="logon" value="([^"]+)"', path.read_text("utf-8"))
    path.unlink()
    assert found
    return found[1]
