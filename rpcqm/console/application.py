"""From a browser's request to a page: names of this host, sessions, forms, and what is refused."""

import ipaddress
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from http import HTTPStatus

from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.base.identity import Identity
from rpcqm.codec.names.written import format_name
from rpcqm.console import logging_on
from rpcqm.console.asked import REFUSALS, Asked, Download, Fields, Outcome, Page, Redirect
from rpcqm.console.changes import Changes
from rpcqm.console.forms import FORM_BYTES, LOGON_BYTES, TYPE, link, read_fields
from rpcqm.console.pages import PAGES
from rpcqm.console.rendering import exactly, render
from rpcqm.console.sessions import Accounts, Place, Session, Sessions
from rpcqm.console.static_files import BASE, assets
from rpcqm.console.texts import text
from rpcqm.http.exchange import HttpRequest, HttpResponse, HttpStream, StreamCutError
from rpcqm.http.origins import host_of, is_local_name, origin_of
from rpcqm.http.statuses import status_of
from rpcqm.operations.audit import HTTP, ORIGIN, Origin
from rpcqm.operations.logons import GuessedTooOftenError
from rpcqm.operations.operations import Operations

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("Content-Security-Policy", POLICY),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    # Without a referrer at all browsers send forms with the origin `null`, as strangers would.
    ("Referrer-Policy", "same-origin"),
)
"""Of every page, beside those of every answer on this port."""
HTML = ("Content-Type", "text/html; charset=utf-8")
HOME = "/console/overview"
LOGON, LOGOFF, ONE_TIME = "/console/logon", "/console/logoff", "/console/one-time"
EVENTS = "/console/events"
LONGEST_FILE_NAME = 100
"""Characters of the name of a file that is downloaded: its end, which has what differs."""
_KEPT_PAGES = 64
"""Pages of errors that are kept for those who have not logged on."""
_WRITTEN = "what-somebody-writes"
"""Stands in the page to log on for what is written into it."""
_UNTIL_ASKED = ("Cache-Control", "private, max-age=31536000, immutable")


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """`instance` is the name of this host in browsers here; `hosts` are further ones."""

    instance: str
    hosts: frozenset[str] = frozenset()
    trusted_proxy: str = ""
    session_hours: int = 12


@dataclass(frozen=True, slots=True)
class _Request:
    """A request at a name of ours; `path` has no query, `fields` are those of the query."""

    http: HttpRequest
    address: str
    place: Place
    path: str
    fields: Fields

    @property
    def from_here(self) -> bool:
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def home(self) -> str:
        """The origin of our own pages."""
        scheme = "https" if self.place.secure else "http"
        return f"{scheme}://{self.place.authority}"


class Refused(Exception):
    """What is not done, with a status; `name` and texts are told on a page."""

    def __init__(self, status: HTTPStatus, name: str, detail: str = "") -> None:
        super().__init__(name)
        self.status, self.name, self.detail = status, name, detail


class Console:
    """Answers requests for pages; `answer` never raises for what others have sent."""

    def __init__(
        self, operations: Operations, accounts: Accounts, clock: Clock, settings: ConsoleSettings
    ) -> None:
        self._operations, self._accounts = operations, accounts
        self._clock = clock
        self.settings = settings
        self.sessions = Sessions(accounts, clock, settings.session_hours)
        self.changes = Changes(operations.pulse, self.sessions.is_alive)
        self._pages = {page.path: page for page in PAGES}

    def adjust(self, settings: ConsoleSettings) -> None:
        """Go on with other settings; sessions that have begun last as long as they were to."""
        self.settings, self.sessions.hours = settings, settings.session_hours

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request, whatever is wrong with it."""
        session: Session | None = None
        try:
            asked = self._read(request)
            session = self._session(asked)
            return await self._answer(asked, session)
        except Refused as refused:
            if session is None and not refused.detail:
                octets = _plain_refusal(refused.status, refused.name)
                return HttpResponse(int(refused.status), octets, (HTML, *HEADERS))
            return self._page(refused.status, "error.html", session, _told(refused))
        except MQError as error:
            if session is None:
                octets = _plain_error(error.status, error.detail)
                return HttpResponse(int(status_of(error)), octets, (HTML, *HEADERS))
            told = _explained(error) | _advice(error, request, session)
            told |= self._renamed(error, request, session)
            return self._page(status_of(error), "error.html", session, told)

    def _renamed(self, error: MQError, request: HttpRequest, session: Session) -> dict[str, object]:
        """Where a queue is that has another name now, for a page that names it as before."""
        if error.status is not HResult.MQ_ERROR_QUEUE_NOT_FOUND:
            return {}
        before = _queue_in(request)
        try:
            name = format_name(before)
            now = self._operations.queues.renamed_to(session.identity, name)
        except MQError:  # no name of one queue
            return {}
        if not now:
            return {}
        page = (link("/console/queue", queue=now), now)
        return {"detail": text("error.renamed", name=before, now=now), "remedy": "", "go_on": page}

    def end_sessions(self, sid: str) -> None:
        """Log an account off; what pages of it follow ends at once."""
        self.sessions.end_all(sid)
        self.changes.look()

    # Reading.

    def _read(self, request: HttpRequest) -> _Request:
        """Pages of strangers cannot have their names resolved to this address (DNS rebinding)."""
        hosts = [value for name, value in request.headers if name.lower() == "host"]
        if len(hosts) != 1 or not is_local_name(hosts[0], self.settings.hosts):
            raise Refused(HTTPStatus.FORBIDDEN, "refused.host")
        try:
            address, secure = origin_of(request, self.settings.trusted_proxy)
        except ValueError:
            raise Refused(HTTPStatus.BAD_REQUEST, "refused.proxy") from None
        path, _, query = request.target.partition("?")
        place = Place(hosts[0].lower(), request.port, secure)
        return _Request(request, address, place, path, read_fields(query.encode("latin-1")))

    def _session(self, asked: _Request) -> Session | None:
        secret = logging_on.secret_of(asked.http, asked.place)
        return None if secret is None else self.sessions.find(secret, asked.place)

    async def _answer(self, asked: _Request, session: Session | None) -> HttpResponse:
        method, path = asked.http.method, asked.path
        if path.startswith(BASE):
            return _asset(method, path)
        _check_fetched(asked)
        if (elsewhere := self._better_name(asked)) is not None:
            return _go_to(elsewhere)
        if not asked.place.secure and not asked.from_here:
            raise Refused(HTTPStatus.FORBIDDEN, "refused.plain")
        if method == "POST":
            return await self._post(asked, session)
        if method != "GET":
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "refused.method")
        return await self._get(asked, session)

    def _better_name(self, asked: _Request) -> str | None:
        """This host by a name that no other program here has, without TLS (G354)."""
        if asked.place.secure or not asked.from_here or asked.http.peer != asked.address:
            return None
        authority = asked.place.authority
        if host_of(authority) == self.settings.instance:
            return None
        if asked.http.method != "GET":
            raise Refused(HTTPStatus.FORBIDDEN, "refused.host")
        port = authority.rpartition(":")[2]
        suffix = f":{port}" if port.isdigit() and not authority.endswith("]") else ""
        return f"http://{self.settings.instance}{suffix}{_local(asked.http.target)}"

    # Looking.

    async def _get(self, asked: _Request, session: Session | None) -> HttpResponse:
        if asked.path == LOGON and session is None:
            return self._logon_page(HTTPStatus.OK, asked)
        if session is None:
            return self._to_logon(asked)
        if asked.path in ("/", "/console", "/console/", LOGON):
            return _go_to(HOME)
        if asked.path == EVENTS:
            return self._events(session)
        page = self._found(asked)
        with _origin(asked):
            return self._show(page, session, await page.show(self._asked(asked, session)))

    def _to_logon(self, asked: _Request) -> HttpResponse:
        if asked.path == EVENTS:
            raise Refused(HTTPStatus.UNAUTHORIZED, "refused.session")
        to = asked.http.target if asked.path in self._pages else None
        return _go_to(link(LOGON, to=to))

    def _events(self, session: Session) -> HttpResponse:
        parts = self.changes.listen(session)
        if parts is None:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "refused.listeners")
        headers = (("Content-Type", "text/event-stream"), *HEADERS)
        return HttpResponse(200, b"", headers, parts)

    def _found(self, asked: _Request) -> Page:
        page = self._pages.get(asked.path)
        if page is None:
            raise Refused(HTTPStatus.NOT_FOUND, "refused.path")
        return page

    # Doing.

    async def _post(self, asked: _Request, session: Session | None) -> HttpResponse:
        _check_form(asked, FORM_BYTES if session is not None else LOGON_BYTES)
        form = read_fields(asked.http.body)
        if asked.path == ONE_TIME:
            return self._one_time(asked, form)
        _check_origin(asked)
        if asked.path == LOGON:
            return self._log_on(asked, form, session)
        if session is None:
            raise Refused(HTTPStatus.UNAUTHORIZED, "refused.session")
        if not session.has_token(form.text("token")):
            raise Refused(HTTPStatus.FORBIDDEN, "refused.token")
        if asked.path == LOGOFF:
            return self._log_off(asked, session)
        page = self._found(asked)
        if page.act is None:
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "refused.method")
        with _origin(asked):
            return self._show(page, session, await page.act(self._asked(asked, session, form)))

    def _log_on(self, asked: _Request, form: Fields, session: Session | None) -> HttpResponse:
        name, password = form.text("account"), form.text("password")
        try:
            identity = self._accounts.log_on(name, password, asked.address)
        except GuessedTooOftenError:
            return self._logon_page(HTTPStatus.TOO_MANY_REQUESTS, asked, form, "logon.slowed")
        if identity is None:
            return self._logon_page(HTTPStatus.UNAUTHORIZED, asked, form, "logon.wrong")
        to = form.text("to")
        to = to if to.partition("?")[0] in self._pages else HOME
        return _go_to(_local(to), self._begin(asked, identity, session))

    def _one_time(self, asked: _Request, form: Fields) -> HttpResponse:
        """The answer is a page that goes on by itself.

        Browsers send a cookie that is meant for this site alone not with a redirect from a file.
        """
        try:
            identity = self._accounts.show_logon(form.text("logon"), asked.address)
        except GuessedTooOftenError:
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "logon.slowed") from None
        if identity is None:
            raise Refused(HTTPStatus.UNAUTHORIZED, "refused.one_time")
        cookie = self._begin(asked, identity, self._session(asked))
        return self._page(HTTPStatus.OK, "welcome.html", None, {"to": HOME}, cookie)

    def _begin(
        self, asked: _Request, identity: Identity, before: Session | None
    ) -> tuple[str, str]:
        """The cookie of a new session, which takes the place of the one before."""
        if before is not None:
            self.sessions.end(before)
        begun = self.sessions.begin(identity, asked.place)
        if begun is None:
            raise Refused(HTTPStatus.UNAUTHORIZED, "refused.session")
        with _origin(asked):
            self._operations.logons.logged_on(identity)
        return logging_on.cookie(begun[0], asked.place)

    def _log_off(self, asked: _Request, session: Session) -> HttpResponse:
        self.sessions.end(session)
        self.changes.look()
        with _origin(asked):
            self._operations.logons.logged_off(session.identity)
        return _go_to(LOGON, logging_on.cookie("", asked.place))

    # Answers.

    def _asked(self, asked: _Request, session: Session, form: Fields | None = None) -> Asked:
        now = self._clock.now()
        return Asked(self._operations, session.identity, now, asked.fields, form or Fields())

    def _show(self, page: Page, session: Session, outcome: Outcome) -> HttpResponse:
        if isinstance(outcome, Redirect):
            session.said = outcome.said
            return _go_to(outcome.to)
        if isinstance(outcome, Download):
            return self._download(outcome, session)
        values = {"path": page.path, "title": text(page.title), **outcome.values}
        return self._page(HTTPStatus.OK, outcome.template or page.template, session, values)

    def _download(self, wanted: Download, session: Session) -> HttpResponse:
        disposition = ("Content-Disposition", f'attachment; filename="{_file_name(wanted.name)}"')
        headers = (("Content-Type", wanted.content_type), disposition, *HEADERS)
        if wanted.stream is None:
            return HttpResponse(200, wanted.octets, headers)
        stream = _WhileLoggedOn(wanted.stream, partial(self.sessions.is_alive, session))
        return HttpResponse(200, b"", headers, stream)

    def _logon_page(
        self, status: HTTPStatus, asked: _Request, form: Fields | None = None, problem: str = ""
    ) -> HttpResponse:
        given = form or asked.fields
        octets = _logon_page_for(given.text("account"), given.text("to"), problem)
        return HttpResponse(int(status), octets, (HTML, *HEADERS))

    def _page(
        self,
        status: HTTPStatus,
        template: str,
        session: Session | None,
        values: Mapping[str, object],
        *headers: tuple[str, str],
    ) -> HttpResponse:
        said = ""
        if session is not None:
            said, session.said = session.said, ""
        octets = render(template, {**_common(session, said), **values})
        return HttpResponse(int(status), octets, (HTML, *HEADERS, *headers))


def _common(session: Session | None, said: str) -> dict[str, object]:
    """What all pages take."""
    return {
        "path": "",
        "title": text("title"),
        "said": said,
        "account_name": "" if session is None else session.identity.name,
        "token": "" if session is None else session.token,
        "entries": _entries(session),
    }


@cache
def _plain_refusal(status: HTTPStatus, name: str) -> bytes:
    """The page of a refusal, as it is for everybody who has not logged on."""
    return render("error.html", {**_common(None, ""), **_told(Refused(status, name))})


@lru_cache(maxsize=_KEPT_PAGES)
def _plain_error(error: HResult | NtStatus, detail: str) -> bytes:
    """The page of an error, as it is for everybody who has not logged on."""
    return render("error.html", {**_common(None, ""), **_explained(MQError(error, detail))})


def _logon_page_for(account: str, to: str, problem: str) -> bytes:
    """The page to log on: what others write into it is put into one that was made before."""
    before, between, after = _logon_pieces(bool(account), problem)
    written = [exactly(each).encode("utf-8", "replace") for each in (to, account)]
    return b"".join((before, written[0], between, written[1], after))


@cache
def _logon_pieces(named: bool, problem: str) -> tuple[bytes, bytes, bytes]:
    """The page to log on without the place to go on to, and without the account if it is named."""
    values = {
        "title": text("logon.title"),
        "account": _WRITTEN if named else "",
        "to": _WRITTEN,
        "problem": text(problem) if problem else "",
    }
    page = render("logon.html", {**_common(None, ""), **values})
    before, between, *after = page.split(_WRITTEN.encode())
    return before, between, after[0] if named else b""


def _entries(session: Session | None) -> list[tuple[str, str]]:
    """The pages of the navigation, as far as somebody may see them."""
    administers = session is not None and session.identity.may_look
    return [
        (page.path, text(page.entry))
        for page in PAGES
        if page.entry and (administers or not page.administrators)
    ]


def _local(target: str) -> str:
    """A path of ours and nothing else, whatever was asked for."""
    return f"/{target.lstrip('/')}" if target.isascii() and target.isprintable() else "/"


def _check_fetched(asked: _Request) -> None:
    """Browsers say which pages of other sites, or of other ports, make them ask."""
    site = asked.http.header("Sec-Fetch-Site") or "none"
    mode = asked.http.header("Sec-Fetch-Mode") or "navigate"
    if site not in ("same-origin", "none") and mode != "navigate":
        raise Refused(HTTPStatus.FORBIDDEN, "refused.origin")


def _check_origin(asked: _Request) -> None:
    """Only our own pages send our forms."""
    site = asked.http.header("Sec-Fetch-Site") or "same-origin"
    if asked.http.header("Origin") != asked.home or site != "same-origin":
        raise Refused(HTTPStatus.FORBIDDEN, "refused.origin")


def _check_form(asked: _Request, longest: int) -> None:
    if len(asked.http.body) > longest:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "refused.size")
    kind = (asked.http.header("Content-Type") or "").partition(";")[0].strip().lower()
    if kind != TYPE:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "refused.type")


@contextmanager
def _origin(asked: _Request) -> Iterator[None]:
    """From where the changes come that are made meanwhile, for the log."""
    before = ORIGIN.set(Origin(asked.address, HTTP))
    try:
        yield
    finally:
        ORIGIN.reset(before)


def _asset(method: str, path: str) -> HttpResponse:
    found = assets().get(path)
    if found is None or method != "GET":
        raise Refused(HTTPStatus.NOT_FOUND, "refused.path")
    octets, kind = found
    return HttpResponse(200, octets, (("Content-Type", kind), _UNTIL_ASKED, *HEADERS))


def _go_to(to: str, *headers: tuple[str, str]) -> HttpResponse:
    return HttpResponse(HTTPStatus.SEE_OTHER, b"", (("Location", to), *HEADERS, *headers))


class _WhileLoggedOn:
    """A file that is cut off when its reader is logged on no more."""

    def __init__(self, file: HttpStream, is_alive: Callable[[], bool]) -> None:
        self._file, self._is_alive = file, is_alive
        self.close = file.close

    async def next(self) -> bytes | None:
        """The next octets; raises StreamCutError when the session or the queue has ended."""
        if not self._is_alive():
            raise StreamCutError(text("refused.session"))
        try:
            return await self._file.next()
        except MQError as error:
            raise StreamCutError(str(error)) from error


def _file_name(name: str) -> str:
    """A name that no browser and no system takes for a path, a hidden file or an escape."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-._") else "_" for c in name)
    return plain.lstrip(".")[-LONGEST_FILE_NAME:] or "file"


def _told(refused: Refused) -> dict[str, object]:
    return {
        "title": text("error.title"),
        "name": f"{refused.status.value} {refused.status.phrase}",
        "detail": refused.detail,
        "meaning": text(refused.name),
        "remedy": text("error.remedy"),
        "commands": (),
        "go_on": None,
    }


def _advice(error: MQError, request: HttpRequest, session: Session | None) -> dict[str, object]:
    """What to do about a right that is missing: who can give it, and by which command."""
    if session is None or error.status not in REFUSALS:
        return {}
    account = session.identity.name
    if session.identity.read_only:
        return {"remedy": text("denied.read_only", account=account)}
    if queue := _queue_in(request):
        who = "administrator" if session.identity.is_administrator else "other"
        return {
            "remedy": text(f"denied.{who}", account=account),
            "commands": _commands(shlex.quote(queue), shlex.quote(account)),
        }
    if session.identity.is_administrator:
        return {}
    return {"remedy": text("denied.page", account=account)}


def _queue_in(request: HttpRequest) -> str:
    """The queue that a query or a form names; "" if there is no such field."""
    try:
        query = request.target.partition("?")[2].encode("latin-1")
        return read_fields(query).text("queue") or read_fields(request.body).text("queue")
    except (MQError, UnicodeEncodeError):
        return ""


def _commands(queue: str, account: str) -> tuple[tuple[str, str], ...]:
    """What is typed, with what is said in front of it; both names are words of a shell."""
    return (
        ("", text("denied.command", queue=queue, account=account)),
        (text("denied.refused"), text("denied.takeover", queue=queue)),
    )


def _explained(error: MQError) -> dict[str, object]:
    """What `rpcqm explain` tells of an error."""
    status = error.status
    return {
        "title": text("error.title"),
        "name": status.name,
        "detail": error.detail,
        "meaning": status.meaning,
        "remedy": status.remedy,
        "commands": (),
        "go_on": None,
    }
