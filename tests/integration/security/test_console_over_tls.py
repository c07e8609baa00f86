"""The console and /api/v1 over TLS, behind a proxy, and from elsewhere without either."""

import base64
import http.client
import json
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from rpcqm.testing.private import StartFailedError
from tests.support.certificates import write_tls_files
from tests.support.console.browser import Browser, one_time_token, open_browser
from tests.support.waiting import PATIENCE

CONSOLE = ("--console-port", "0")
BASIC = "Basic " + base64.b64encode(b"boss:secret").decode()
ELSEWHERE = {"X-Forwarded-For": "192.0.2.1"}
PROTECTED = ELSEWHERE | {"X-Forwarded-Proto": "https"}


def add_boss(running: PrivateQueueManager) -> None:
    words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
    running.run(*words, input="secret\n")


def configured(files: tuple[Path, Path]) -> str:
    return f'[console]\ncertificate = "{files[0]}"\nkey = "{files[1]}"\n'


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_tls_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secure(files: tuple[Path, Path]) -> Iterator[PrivateQueueManager]:
    with private_queue_manager(CONSOLE, configured(files)) as queue_manager:
        add_boss(queue_manager)
        yield queue_manager


@pytest.fixture(scope="module")
def behind() -> Iterator[PrivateQueueManager]:
    """One behind a proxy on this machine, which tells from where requests come."""
    settings = '[console]\ntrusted_proxy = "127.0.0.1"\nallow_hosts = ["queues.example.com"]\n'
    with private_queue_manager(CONSOLE, settings) as made:
        add_boss(made)
        yield made


def asked(
    running: PrivateQueueManager, path: str, headers: list[tuple[str, str]] | Mapping[str, str]
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """A GET whose headers are sent as they are, also two of one name."""
    connection = http.client.HTTPConnection(*running.endpoint("console"), timeout=PATIENCE)
    connection.putrequest("GET", path)
    for name, value in headers.items() if isinstance(headers, Mapping) else headers:
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    told = answer.status, answer.headers, answer.read()
    connection.close()
    return told


# Over TLS.


def test_the_cookie_is_for_this_name_for_tls_and_for_our_own_pages(
    secure: PrivateQueueManager, files: tuple[Path, Path]
) -> None:
    browser = open_browser(secure, files[0])
    assert browser.home == f"https://localhost:{browser.address[1]}"
    on = browser.send("/console/logon", {"account": "boss", "password": "secret"})
    named, *rest = on.headers["Set-Cookie"].split("; ")
    assert named.startswith(f"__Host-rpcqm-{browser.address[1]}=")
    assert sorted(rest) == ["HttpOnly", "Path=/", "SameSite=Strict", "Secure"]
    assert browser.get("/console/overview").title == "Overview"
    name, value = named.split("=")
    browser.cookies = {name.removeprefix("__Host-"): value}
    assert browser.get("/console/overview").title == "Log on", "it counts under its own name only"
    browser.cookies = {name: value}
    assert browser.submit("/console/logoff").title == "Log on"


def test_a_client_of_others_keeps_the_cookie_under_the_rules_of_its_name(
    secure: PrivateQueueManager, files: tuple[Path, Path], tmp_path: Path
) -> None:
    """curl takes no cookie of such a name that is not Secure, for `/`, and without a domain."""
    home, jar = open_browser(secure, files[0]).home, str(tmp_path / "jar")
    words = ["curl", "--silent", "--cacert", str(files[0]), "--cookie", jar, "--cookie-jar", jar]
    form = ["--header", f"Origin: {home}", "--data", "account=boss&password=secret"]
    subprocess.run([*words, *form, f"{home}/console/logon"], check=True, timeout=PATIENCE)
    overview = [*words, f"{home}/console/overview"]
    shown = subprocess.run(overview, check=True, capture_output=True, text=True, timeout=PATIENCE)
    assert "Logged on as boss" in shown.stdout


def test_the_local_user_comes_to_the_pages_over_tls_without_a_password(
    secure: PrivateQueueManager, files: tuple[Path, Path]
) -> None:
    browser = open_browser(secure, files[0])
    path = Path(secure.run("console", "--no-open").stdout.strip())
    assert f'action="{browser.home}/console/one-time"' in path.read_text("utf-8")
    token = one_time_token(secure)
    on = browser.send("/console/one-time", {"logon": token}, {"Origin": "null"})
    assert (on.status, on.title) == (200, "You are logged on")
    assert on.headers["Set-Cookie"].startswith("__Host-")
    assert browser.get("/console/overview").title == "Overview"


def test_programs_and_tokens_log_on_over_tls(
    secure: PrivateQueueManager, files: tuple[Path, Path]
) -> None:
    browser = open_browser(secure, files[0])
    token = secure.run("token", "create", "t", "--account", "boss").stdout.strip()
    for proof in (BASIC, f"Bearer {token}"):
        told = browser.ask("GET", "/api/v1/queues", headers={"Authorization": proof})
        assert told.status == 200


def test_what_is_not_tls_is_told_nothing(secure: PrivateQueueManager) -> None:
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        asked(secure, "/", {"Authorization": BASIC})


def test_other_ports_of_a_name_are_not_forced_to_tls(
    secure: PrivateQueueManager, files: tuple[Path, Path]
) -> None:
    """HSTS counts for all ports of a name (G306)."""
    browser = open_browser(secure, files[0])
    for path in ("/console/logon", "/api/v1/queues", "/healthz"):
        assert "Strict-Transport-Security" not in browser.ask("GET", path).headers


def test_a_renewed_certificate_holds_for_new_connections_and_sessions_stay(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    mine = write_tls_files(tmp_path, "mine")
    with private_queue_manager(CONSOLE, configured(mine)) as running:
        add_boss(running)
        browser = open_browser(running, mine[0])
        browser.log_on("boss")
        renewed = write_tls_files(tmp_path, "mine")
        assert renewed == mine
        with pytest.raises(ssl.SSLCertVerificationError):
            browser.get("/console/overview")
        said = running.reload(configured(mine))
        assert '"changed": ["console.certificate", "console.key"]' in said
        assert '"changed": []' in running.reload(configured(mine))
        assert browser.get("/console/overview").title == "Overview"
        mine[0].write_text("junk")
        assert "has no certificate in PEM form" in running.reload(configured(mine))
        write_tls_files(tmp_path, "mine")
        running.reload(configured(files))
        browser = Browser(browser.address, browser.home, files[0])
        assert browser.get("/").title == "Log on"


def readied(running: PrivateQueueManager, context: ssl.SSLContext | None) -> bool:
    """Whether it answers, with TLS or without."""
    address = running.endpoint("console")
    try:
        if context is None:
            connection = http.client.HTTPConnection(*address, timeout=PATIENCE)
        else:
            connection = http.client.HTTPSConnection(*address, timeout=PATIENCE, context=context)
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


@pytest.mark.parametrize("is_used", [True, False], ids=["used", "not used yet"])
@pytest.mark.parametrize("first", [True, False], ids=["from TLS", "to TLS"])
def test_tls_begins_and_ends_with_the_process(
    files: tuple[Path, Path], first: bool, is_used: bool
) -> None:
    """What the log says has changed has changed, and `rpcqm console` names the right scheme."""
    trusting = ssl.create_default_context(cafile=files[0])
    trusting.check_hostname = False
    texts = {True: configured(files), False: ""}
    with private_queue_manager(CONSOLE, texts[first]) as running:
        if is_used:
            assert readied(running, trusting if first else None)
        lines = map(json.loads, running.reload(texts[not first]).splitlines())
        (said,) = (line for line in lines if line["event"] == "reloaded")
        assert said["waiting_for_restart"] == ["console.certificate", "console.key"]
        assert said["changed"] == []
        assert readied(running, trusting if first else None)
        assert not readied(running, None if first else trusting)
        running.restart()
        assert readied(running, None if first else trusting)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('certificate = "{c}"\nkey = "{other}"\n', "{other} is not the key of {c}."),
        ('certificate = "{none}"\nkey = "{k}"\n', "{none} cannot be read: No such file"),
    ],
    ids=["another key", "no file"],
)
def test_files_that_cannot_be_used_are_told_and_nothing_is_served(
    files: tuple[Path, Path], tmp_path: Path, text: str, sentence: str
) -> None:
    other = write_tls_files(tmp_path, "other")[1]
    names = {"c": files[0], "k": files[1], "other": other, "none": tmp_path / "none"}
    settings = "[console]\n" + text.format(**names)
    made = PrivateQueueManager(tmp_path / "d", CONSOLE, settings)
    with pytest.raises(StartFailedError, match="exit status 1") as told:
        made.start()
    assert sentence.format(**names) in str(told.value)
    assert "Traceback" not in str(told.value)
    written = tmp_path / "rpcqm.toml"
    written.write_text(settings)
    checked = made.run("config", "check", str(written), check=False)
    assert checked.returncode == 1
    assert sentence.format(**names) in checked.stderr


# From elsewhere without TLS.


@pytest.mark.parametrize("proof", [None, BASIC, "Bearer rpcqm_0_x", "Negotiate YII="])
@pytest.mark.parametrize("path", ["/api/v1/queues", "/metrics"])
def test_programs_from_elsewhere_do_not_log_on_without_tls(
    behind: PrivateQueueManager, path: str, proof: str | None
) -> None:
    """Nor are they asked for a password, which they would send."""
    given = {} if proof is None else {"Authorization": proof}
    status, headers, body = asked(behind, path, ELSEWHERE | given)
    assert status == 403
    assert json.loads(body)["detail"] == "logging on from elsewhere needs TLS"
    assert "WWW-Authenticate" not in headers
    assert asked(behind, path, PROTECTED | {"Authorization": BASIC})[0] in (200, 403)


def test_people_from_elsewhere_do_not_log_on_without_tls(behind: PrivateQueueManager) -> None:
    browser = open_browser(behind)
    fields = {"account": "boss", "password": "secret"}
    assert browser.ask("GET", "/console/logon", headers=ELSEWHERE).status == 403
    for path, form in (
        ("/console/logon", fields),
        ("/console/one-time", {"logon": one_time_token(behind)}),
    ):
        answer = browser.send(path, form, ELSEWHERE)
        assert (answer.status, browser.cookies) == (403, {})
        assert "need TLS" in answer.words


# Behind a proxy.


def test_a_proxy_says_from_where_a_request_comes_and_whether_by_tls(
    behind: PrivateQueueManager,
) -> None:
    home = f"https://queues.localhost:{behind.endpoint('console')[1]}"
    browser = Browser(behind.endpoint("console"), home)
    fields = {"account": "boss", "password": "secret"}
    on = browser.send("/console/logon", fields, PROTECTED)
    assert on.headers["Set-Cookie"].startswith("__Host-")
    assert "Secure" in on.headers["Set-Cookie"].split("; ")
    assert browser.ask("GET", "/console/overview", headers=PROTECTED).title == "Overview"
    acts = [line for line in behind.log.splitlines() if "an operator acts" in line]
    assert any('"action": "log on"' in line and "192.0.2.1" in line for line in acts)
    assert asked(behind, "/api/v1/queues", PROTECTED | {"Authorization": BASIC})[0] == 200


def test_guesses_behind_a_proxy_slow_down_the_address_that_they_come_from(
    behind: PrivateQueueManager,
) -> None:
    wrong = {"Authorization": "Basic " + base64.b64encode(b"boss:wrong").decode()}
    guesser = PROTECTED | {"X-Forwarded-For": "192.0.2.7"}
    statuses = [asked(behind, "/api/v1/queues", guesser | wrong)[0] for _ in range(7)]
    assert (statuses[0], statuses[-1]) == (401, 429)
    right = {"Authorization": BASIC}
    assert asked(behind, "/api/v1/queues", guesser | right)[0] == 429
    assert asked(behind, "/api/v1/queues", PROTECTED | right)[0] == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://queues.example.com", 200),
        ("https://queues.example.com:8443", 403),
        ("http://queues.example.com", 403),
        ("https://evil.example.com", 403),
    ],
)
def test_pages_of_the_name_that_the_proxy_has_for_us_may_ask(
    behind: PrivateQueueManager, origin: str, status: int
) -> None:
    """The proxy calls us by an address, so that only the standard port of its name is ours."""
    headers = PROTECTED | {"Authorization": BASIC, "Origin": origin}
    assert asked(behind, "/api/v1/queues", headers)[0] == status


FORGED = [
    [("X-Forwarded-For", "127.0.0.1, 192.0.2.1")],
    [("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-For", "192.0.2.1")],
    [("x-forwarded-for", "127.0.0.1"), ("X-Forwarded-For", "::1,192.0.2.1")],
    [*ELSEWHERE.items(), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Proto", "http")],
    [*ELSEWHERE.items(), ("X-Forwarded-Proto", "https, http")],
]


@pytest.mark.parametrize("headers", FORGED, ids=range(len(FORGED)))
def test_what_a_client_forwards_itself_does_not_count(
    behind: PrivateQueueManager, headers: list[tuple[str, str]]
) -> None:
    """The proxy's own word stands last, whether it goes on with a header or adds another one."""
    assert asked(behind, "/api/v1/queues", [*headers, ("Authorization", BASIC)])[0] == 403


@pytest.mark.parametrize("address", ["", "unknown", "192.0.2.1:80", "127.0.0.1.evil", "999.1.1.1"])
def test_a_proxy_that_tells_no_address_is_refused(
    behind: PrivateQueueManager, address: str
) -> None:
    headers = {"X-Forwarded-For": address, "X-Forwarded-Proto": "https", "Authorization": BASIC}
    assert asked(behind, "/api/v1/queues", headers)[0] == 400
    assert asked(behind, "/console/logon", headers)[0] == 400
