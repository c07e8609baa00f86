"""Queues and messages on the pages, as a person uses them."""

import base64
import html
import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest

from rpcqm.console.bodies import LONGEST_BODY
from rpcqm.testing import PrivateQueueManager
from tests.support.api.programs import Program
from tests.support.console.browser import Answer, Browser, open_browser


@pytest.fixture
def boss(running: PrivateQueueManager) -> Browser:
    browser = open_browser(running)
    browser.log_on("boss")
    return browser


@pytest.fixture
def queue(boss: Browser, request: pytest.FixtureRequest) -> str:
    name = f"q{abs(hash(request.node.name)) % 10**9}"
    boss.get("/console/queues/new")
    assert boss.submit("/console/queues/new", {"name": name}).title == name
    return name


def send(boss: Browser, queue: str, **fields: str) -> Answer:
    given = {"queue": queue, "kind": "text", "body": "hello", "priority": "3", "recoverable": "1"}
    return boss.submit("/console/queue/send", given | fields)


def keys(page: Answer) -> list[str]:
    return re.findall('name="key" value="([0-9]+)"', page.text)


def pages(page: Answer) -> dict[str, str]:
    """Where the buttons to other pages of the table lead, by what is said of them."""
    queue = re.findall('name="queue" value="([^"]+)"', page.text)[0]
    buttons = re.findall('value="([^"]+)" data-rel="(first|prev|next|last)"', page.text)
    places = {rel: then.partition(":") for then, rel in buttons}
    return {
        rel: f"/console/queue?queue={html.unescape(queue)}&{where}={key}"
        for rel, (where, _, key) in places.items()
    }


def give(running: PrivateQueueManager, queue: str, account: str, denied: int, allowed: int) -> None:
    """Let an account do what `allowed` says with a queue, and not what `denied` says."""
    program = Program(running.endpoint("console"), "boss")
    permissions = f"/queues/{queue}/permissions"
    sddl = program.ask("GET", permissions).value["sddl"].partition("D:")[2].partition("(")
    accounts = program.ask("GET", "/accounts").value["accounts"]
    (sid,) = [each["sid"] for each in accounts if each["name"] == account]
    entries = f"(D;;{denied:#x};;;{sid})(A;;{allowed:#x};;;{sid})({sddl[2]}"
    changed = program.ask("PUT", permissions, {"sddl": f"D:{sddl[0]}{entries}"})
    program.close()
    assert changed.status == 204, changed


def links(page: Answer) -> set[str]:
    """Where the links and forms of a page lead, without their queries."""
    to = [each.get("href") or each.get("action") or each.get("formaction") for _, each in page.tags]
    return {each.partition("?")[0] for each in to if each}


def test_a_queue_is_made_changed_and_deleted(boss: Browser, queue: str) -> None:
    shown = boss.get(f"/console/queue/change?queue={queue}")
    assert f"Change {queue}" in shown.title
    changed = boss.submit(
        "/console/queue/change",
        {"queue": queue, "label": "Orders", "quota": "100", "journal": "1"}
        | {"privacy": "optional", "max_deliveries": "3", "poison": "bad"},
    )
    assert "The properties were changed." in changed.words
    assert "Quota (KiB) 100 KiB" in changed.words
    assert "3, then to the subqueue bad" in changed.words
    assert "Copies that the journal keeps" not in changed.words
    found = boss.get("/console/queues?find=" + queue)
    assert "1 queue " in found.words
    assert "Orders" in found.words
    asked = boss.get(f"/console/queue/delete?queue={queue}")
    assert f"The queue {queue} will be deleted for good, with its messages (0)" in asked.words
    wrong = boss.send("/console/queue/delete", {"queue": queue, "repeat": "other"})
    assert (wrong.status, "nothing was deleted" in wrong.text) == (400, True)
    gone = boss.submit("/console/queue/delete", {"queue": queue, "repeat": queue})
    assert f"The queue {queue} was deleted." in gone.words
    assert boss.get(f"/console/queue?queue={queue}").status == 404


def test_a_queue_gets_another_name(boss: Browser, queue: str) -> None:
    send(boss, queue, label="stays")
    assert "/console/queue/rename" in links(boss.get(f"/console/queue?queue={queue}"))
    assert f"{queue} leads nowhere then" in boss.get(f"/console/queue/rename?queue={queue}").words
    for wrong, sentence in (("a;b", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"), ("", "is no path name")):
        refused = boss.send("/console/queue/rename", {"queue": queue, "to": wrong})
        assert (refused.status, sentence in refused.text) == (400, True)
    done = boss.submit("/console/queue/rename", {"queue": queue, "to": f"{queue}-new"})
    assert f"{queue} is called {queue}-new now." in done.words
    assert "stays" in done.words
    gone = boss.get(f"/console/queue?queue={queue}")
    assert (gone.status, f"{queue} was renamed to {queue}-new." in gone.words) == (404, True)
    assert f'href="/console/queue?queue={queue}-new"' in gone.text
    assert "renamed" not in boss.get("/console/queue?queue=nowhere").words


def test_a_journal_gets_its_bounds(boss: Browser, queue: str) -> None:
    rest = {"queue": queue, "journal": "1", "privacy": "optional"}
    rest |= {"max_deliveries": "0", "poison": "poison"}
    bounds = {"journal_quota": "50", "journal_max_age": "30d", "journal_max_messages": "1000"}
    changed = boss.submit("/console/queue/change", rest | bounds)
    assert "Quota of the journal (KiB) 50 KiB, 0 %" in changed.words
    assert "Copies in the journal are removed after 30 d" in changed.words
    assert "Copies that the journal keeps at most 1,000" in changed.words
    form = boss.get(f"/console/queue/change?queue={queue}").text
    for name, value in bounds.items():
        assert re.search(f'name="{name}"[^>]* value="{value}"', form), name
    kept = boss.submit("/console/queue/change", rest)
    for bound in ("journal (KiB) 50 KiB", "removed after 30 d", "keeps at most 1,000"):
        assert bound in kept.words, "an old page knows no bounds, and takes none away"
    wrong = boss.send("/console/queue/change", rest | {"journal_max_age": "soon"})
    assert wrong.status == 400
    assert "Copies in the journal are removed after: `soon` is no number" in wrong.words
    ended = boss.submit("/console/queue/change", rest | dict.fromkeys(bounds, "0"))
    assert "removed after" not in ended.words
    assert "keeps at most" not in ended.words


def test_a_message_is_sent_and_looked_at_and_stays(boss: Browser, queue: str) -> None:
    page = send(boss, queue, label="First", body="<b>héllo</b>", kind="xml", priority="6")
    assert "The message was sent" in page.words
    assert "boss ordered: send message" in boss.get("/console/trail?kind=operator-acts").words
    (key,) = keys(page)
    for _ in range(2):
        message = boss.get(f"/console/message?queue={queue}&id={key}")
        assert message.title == "First"
        assert "<b>héllo</b>" in message.words
        assert "Priority 6" in message.words
        assert re.search(r"Arrived 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", message.words)
    body = boss.ask("GET", f"/console/message/body?queue={queue}&id={key}")
    assert body.text == "<b>héllo</b>"
    assert body.headers["Content-Type"] == "application/octet-stream"
    assert body.headers["Content-Disposition"].startswith("attachment;")
    packet = boss.ask("GET", f"/console/message/export?queue={queue}&id={key}")
    assert packet.status == 200


@pytest.mark.parametrize(
    ("kind", "body", "shown"),
    [
        ("int", "7", "Read as int"),
        ("json", '{"a": [1]}', "{"),
        ("date", "2026-11-22T12:30:00", "2026"),
    ],
)
def test_bodies_are_decoded(boss: Browser, queue: str, kind: str, body: str, shown: str) -> None:
    (key,) = keys(send(boss, queue, body=body, kind=kind))
    assert shown in boss.get(f"/console/message?queue={queue}&id={key}").words


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (bytes(range(256)), "00000010 10 11 12 13"),
        (b"\0\1\2\3" * 8, "00000010 00 01 02 03"),
        (b"", "It has no body"),
        ("grüße".encode(), "grüße"),
    ],
)
def test_octets_that_are_no_text_are_shown_as_octets(
    running: PrivateQueueManager, boss: Browser, queue: str, tmp_path: Path, body: bytes, shown: str
) -> None:
    (tmp_path / "body").write_bytes(body)
    running.run("send", queue, "--file", str(tmp_path / "body"))
    (key,) = keys(boss.get(f"/console/queue?queue={queue}"))
    assert shown in boss.get(f"/console/message?queue={queue}&id={key}").words


@pytest.mark.bound("console.longest_body")
@pytest.mark.parametrize(("more", "shown"), [(0, "Read as xml"), (1, "Read as bytes")])
def test_a_long_body_is_not_read_as_more_than_text(
    running: PrivateQueueManager, boss: Browser, queue: str, tmp_path: Path, more: int, shown: str
) -> None:
    (tmp_path / "body").write_text(f"<a>{'x' * (LONGEST_BODY - 7 + more)}</a>")
    running.run("send", queue, "--file", str(tmp_path / "body"))
    (key,) = keys(boss.get(f"/console/queue?queue={queue}"))
    message = boss.get(f"/console/message?queue={queue}&id={key}").words
    assert shown in message
    assert "<a>xxx" in message


def test_a_body_that_is_not_what_it_says_is_refused(boss: Browser, queue: str) -> None:
    boss.get("/console/queues/new")
    given = {"queue": queue, "kind": "int", "body": "seven", "priority": "3"}
    answer = boss.send("/console/queue/send", given)
    assert answer.status == 400
    assert "MQ_ERROR_INVALID_PARAMETER" in answer.words


@pytest.mark.parametrize(
    ("extension", "shown"),
    [
        (b'{"rbs2-msg-id": "<7>", "x": null}', ["Headers in its extension", "rbs2-msg-id <7>"]),
        (b"what <b>else</b>", ["Extension", "what <b>else</b>"]),
        (b"\x01\x02\x03", ["Extension", "01 02 03"]),
        (
            b"traceparent: 00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-01",
            ["Context of its trace 00-" + "1" * 32],
        ),
    ],
    ids=["headers", "text", "octets", "trace"],
)
def test_the_extension_of_a_message_is_shown(
    running: PrivateQueueManager, boss: Browser, queue: str, extension: bytes, shown: list[str]
) -> None:
    program = Program(running.endpoint("console"), "boss")
    headers = {"Rpcqm-Extension-Base64": quote(base64.b64encode(extension).decode())}
    assert program.ask("POST", f"/queues/{queue}/messages", b"x", headers).status == 201
    program.close()
    (key,) = keys(boss.get(f"/console/queue?queue={queue}"))
    words = boss.get(f"/console/message?queue={queue}&id={key}").words
    for each in shown:
        assert each in words


def test_messages_are_moved_and_removed_after_a_question(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    for label in ("a", "b", "c"):
        page = send(boss, queue, label=label)
    first, second, _ = keys(page)
    asked = boss.get(f"/console/queue/move?queue={queue}&key={first}&key={second}")
    assert f"Of {queue}, so many messages will be moved: 2." in asked.words
    assert asked.text.count("<li>") >= 2
    chosen = [("queue", queue), ("key", first), ("key", second)]
    moved = boss.submit("/console/queue/move", [*chosen, ("to", "later")])
    assert f"2 messages were moved to {queue};later." in moved.words
    assert f"{queue};later" in moved.words
    later = f"{queue}%3Blater"
    back = boss.submit(
        "/console/queue/move", [("queue", f"{queue};later"), ("key", first), ("to", "")]
    )
    assert f"1 message was moved to {queue}." in back.words
    asked = boss.get(f"/console/queue/remove?queue={later}&key={second}")
    assert "will be removed for good: 1." in asked.words
    gone = boss.submit("/console/queue/remove", [("queue", f"{queue};later"), ("key", second)])
    assert "1 message was removed." in gone.words
    acts = [line for line in running.log.splitlines() if '"who": "boss"' in line]
    assert any('"action": "remove messages"' in line and "127.0.0.1" in line for line in acts)
    assert keys(gone) == []


def test_of_chosen_messages_it_is_told_how_many_were_still_there(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    for label in ("a", "b", "c"):
        page = send(boss, queue, label=label)
    chosen = [("queue", queue), *(("key", each) for each in keys(page))]
    program = Program(running.endpoint("console"), "boss")
    program.ask("POST", f"/queues/{queue}/receive?lease=0")
    moved = boss.submit("/console/queue/move", [*chosen, ("to", "later")])
    assert f"2 messages were moved to {queue};later. 1 had gone meanwhile." in moved.words
    program.ask("POST", f"/queues/{queue}%3Blater/receive?lease=0")
    program.close()
    chosen[0] = ("queue", f"{queue};later")
    gone = boss.submit("/console/queue/remove", chosen)
    assert "1 message was removed. 2 had gone meanwhile." in gone.words
    told = boss.get("/console/trail?kind=operator-acts").words
    assert f"private$\\{queue};later, messages: 2 (from 127.0.0.1)" in told
    send(boss, queue)
    deleted = boss.submit("/console/queue/delete", {"queue": queue, "repeat": queue})
    assert f"The queue {queue} was deleted. It had 1 message." in deleted.words


def test_a_purge_says_how_many_messages_go(boss: Browser, queue: str) -> None:
    for _ in range(3):
        send(boss, queue)
    asked = boss.get(f"/console/queue/purge?queue={queue}")
    assert f"All messages of {queue} will be removed for good: 3 now." in asked.words
    assert len(keys(boss.get(f"/console/queue?queue={queue}"))) == 3, "the question removes none"
    assert "3 messages were removed." in boss.submit("/console/queue/purge", {"queue": queue}).words


def test_many_messages_come_in_pages(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    running.run("send", queue, "--count", "60", "--body", "x")
    first = boss.get(f"/console/queue?queue={queue}")
    assert len(keys(first)) == 50
    assert set(pages(first)) == {"next", "last"}
    last = boss.get(pages(first)["next"])
    assert len(keys(last)) == 10
    assert not set(keys(first)) & set(keys(last))
    assert set(pages(last)) == {"first", "prev"}
    back = boss.get(pages(last)["prev"])
    assert keys(back) == keys(first)
    assert "prev" not in pages(back), "nothing is in front of it"
    at_the_end = boss.get(pages(first)["last"])
    assert keys(at_the_end)[-10:] == keys(last)
    assert len(keys(at_the_end)) == 50
    assert len(keys(boss.get(pages(at_the_end)["prev"]))) == 10


def test_a_page_that_is_not_there_any_more_is_no_error(boss: Browser, queue: str) -> None:
    for page in ("after=5", "before=5", "last=1", f"after={1 << 63}"):
        shown = boss.get(f"/console/queue?queue={queue}&{page}")
        assert (shown.status, "There is no message." in shown.words) == (200, True), page
    assert boss.get(f"/console/queue?queue={queue}&before=-1").status == 400
    assert "of 1" not in boss.get("/console/queues?page=99999").words
    assert boss.get("/console/trail?page=18446744073709551616").status == 400


@pytest.mark.parametrize(("account", "is_administrator"), [("boss", True), ("peeker", False)])
def test_who_lacks_a_right_is_told_who_gives_it(
    running: PrivateQueueManager, account: str, is_administrator: bool
) -> None:
    name = f"kept.{account}"
    running.run("queue", "create", name, "--sddl", "D:(A;;GA;;;SY)")
    browser = open_browser(running)
    browser.log_on(account)
    refused = browser.get(f"/console/queue?queue={name}")
    assert refused.status == 403
    assert ("You are an administrator" in refused.words) is is_administrator
    command = f"rpcqm queue acl grant {name} {account} full"
    assert command in refused.words
    running.run(*command.split()[1:])
    assert browser.get(f"/console/queue?queue={name}").title == name


def test_a_command_that_is_shown_is_one_word_for_each_name(running: PrivateQueueManager) -> None:
    path = r".\private$\a b&reboot'$(x)"
    running.run("queue", "create", path, "--sddl", "D:(A;;GA;;;SY)")
    browser = open_browser(running)
    browser.log_on("boss")
    refused = browser.get(f"/console/queue?queue={quote(path, safe='')}")
    assert refused.status == 403
    shown = re.findall("<pre[^>]*>(.*?)</pre>", refused.text)
    grant, owner = (shlex.split(html.unescape(each)) for each in shown)
    assert grant == ["rpcqm", "queue", "acl", "grant", path, "boss", "full"]
    assert owner == ["rpcqm", "queue", "acl", "owner", path, "administrators"]


def test_who_may_not_look_is_told_so_and_may_do_nothing_else(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    (key,) = keys(send(boss, queue, label="secret label"))
    give(running, queue, "peeker", denied=0xB, allowed=0x20)
    peeker = open_browser(running)
    peeker.log_on("peeker")
    peeker.get("/console/queues")
    forms = {
        "/console/queue/purge": {"queue": queue},
        "/console/queue/delete": {"queue": queue, "repeat": queue},
        "/console/queue/change": {"queue": queue, "label": "mine", "max_deliveries": "0"},
        "/console/queue/rename": {"queue": queue, "to": "mine"},
        "/console/queue/remove": {"queue": queue, "key": key},
        "/console/queue/move": {"queue": queue, "key": key, "to": "x"},
    }
    for path, fields in forms.items():
        answer = peeker.send(path, fields)
        assert answer.status == 403, path
        assert "MQ_ERROR_ACCESS_DENIED" in answer.text
    assert "You may not look" in peeker.get(f"/console/queue?queue={queue}").words
    assert peeker.ask("GET", f"/console/message?queue={queue}&id={key}").status == 403
    assert len(keys(boss.get(f"/console/queue?queue={queue}"))) == 1


def test_who_may_only_peek_sees_messages_and_is_told_what_is_missing(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    (key,) = keys(send(boss, queue, label="for all eyes"))
    boss.get(f"/console/queue/change?queue={queue}")
    boss.submit(
        "/console/queue/change",
        {"queue": queue, "label": "secret label", "privacy": "optional", "max_deliveries": "0"},
    )
    give(running, queue, "peeker", denied=0x1007D, allowed=0x2)
    peeker = open_browser(running)
    peeker.log_on("peeker")
    page = peeker.get(f"/console/queue?queue={queue}")
    assert page.status == 200
    for words in ("for all eyes", "1 message", "not see its properties"):
        assert words in page.words
    assert f"rpcqm queue acl grant {queue} peeker get-properties" in page.words
    assert "secret label" not in page.text
    program = Program(running.endpoint("console"), "boss")
    other = program.ask("GET", f"/queues/{queue}").value["format_name"]
    program.close()
    by_other = peeker.get(f"/console/queue?queue={quote(other, safe='')}")
    assert "for all eyes" in by_other.words
    assert by_other.title == other, "nothing but the name that was asked for"
    shown = peeker.get(f"/console/message?queue={queue}&id={key}")
    assert "for all eyes" in shown.words
    give(running, queue, "peeker", denied=0x1007F, allowed=0x0)
    refused = peeker.get(f"/console/queue?queue={queue}")
    assert (refused.status, "for all eyes" in refused.text) == (403, False)


def test_the_list_is_for_administrators(running: PrivateQueueManager, queue: str) -> None:
    peeker = open_browser(running)
    peeker.log_on("peeker")
    page = peeker.get("/console/queues")
    assert queue not in page.text
    assert "for administrators" in page.words


def test_the_overview_says_what_there_is(boss: Browser, queue: str) -> None:
    send(boss, queue)
    page = boss.get("/console/overview")
    for words in (
        "What needs attention",
        "The last hour",
        "Dead letters",
        "New messages are taken yes",
    ):
        assert words in page.words
    assert [tag for tag, _ in page.tags].count("h1") == 1


def test_every_input_has_a_label_and_every_heading_its_place(boss: Browser, queue: str) -> None:
    (key,) = keys(send(boss, queue))
    paths = ["queues", "queues/new", "overview"] + [
        f"{page}?queue={queue}&key={key}&id={key}"
        for page in ("queue", "message", "queue/send", "queue/change", "queue/move", "queue/delete")
    ]
    for path in paths:
        page = boss.get(f"/console/{path}")
        assert page.status == 200, path
        labels = {attributes.get("for") for tag, attributes in page.tags if tag == "label"}
        for tag, attributes in page.tags:
            hidden = attributes.get("type") == "hidden"
            if tag in ("input", "select", "textarea") and not hidden:
                assert attributes.get("id") in labels or attributes.get("aria-label"), path
            if tag == "th":
                assert attributes.get("scope") in ("col", "row"), path
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


def test_dead_letters_are_sent_again_after_a_question(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    for label in ("one", "two"):
        running.run("send", queue, "--label", label, "--body", "x", "--dead-letter")
    boss.submit("/console/queue/purge", {"queue": queue})
    letters = boss.get("/console/queue?queue=DeadLetter$")
    assert letters.title == "DeadLetter$"
    key, _ = keys(letters)
    asked = boss.get(f"/console/queue/resend?queue=DeadLetter$&key={key}")
    assert "so many messages will be sent again, and are no dead letters then: 1." in asked.words
    sent = boss.submit("/console/queue/resend", {"queue": "DeadLetter$", "key": key})
    assert "1 message was sent again." in sent.words
    assert "2 now" not in boss.get("/console/queue/resend?queue=DeadLetter$").words
    rest = boss.submit("/console/queue/resend", {"queue": "DeadLetter$", "to": queue})
    assert "1 message was sent again." in rest.words
    assert keys(rest) == []
    assert len(keys(boss.get(f"/console/queue?queue={queue}"))) == 2
    acts = [line for line in running.log.splitlines() if "an operator acts" in line]
    assert any('"action": "resend messages"' in line and '"who": "boss"' in line for line in acts)


def test_what_is_meant_for_another_queue_makes_no_subqueue(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    running.run("queue", "create", f"{queue}-other")
    (key,) = keys(send(boss, queue))
    chosen = [("queue", queue), ("key", key)]
    refused = boss.submit("/console/queue/move", [*chosen, ("to", f"{queue}-other")])
    assert refused.status == 400
    assert f"{queue}-other is another queue" in refused.words
    assert f";{queue}-other" not in boss.get(f"/console/queue?queue={queue}").words
    moved = boss.submit("/console/queue/move", [*chosen, ("other", f"{queue}-other")])
    assert f"1 message was moved to {queue}-other." in moved.words
    assert len(keys(boss.get(f"/console/queue?queue={queue}-other"))) == 1


def test_letters_that_died_of_a_short_time_get_another_one(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    running.run("send", queue, "--body", "x", "--dead-letter", "--ttbr", "0")
    running.run("receive", queue, check=False)
    asked = boss.get("/console/queue/resend?queue=DeadLetter$")
    assert "Messages that have died of a short one die again at once." in asked.words
    boss.submit("/console/queue/resend", {"queue": "DeadLetter$", "ttbr": "3600"})
    told = running.run("receive", queue, "--json").stdout
    assert json.loads(told)["ttbr"] == 3600
    for wrong in ("soon", str(1 << 32)):
        form = {"queue": "DeadLetter$", "ttbr": wrong}
        assert boss.submit("/console/queue/resend", form).status == 400, wrong


def test_all_letters_are_sent_again_as_the_page_has_promised(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    """There are more than one request of programs sends, and none of the first can be sent."""
    running.run("send", queue, "--count", "1003", "--body", "x" * 100, "--dead-letter")
    boss.submit("/console/queue/purge", {"queue": queue})
    program = Program(running.endpoint("console"), "boss")
    assert program.ask("PATCH", f"/queues/{queue}", {"quota": 1}).status == 200
    running.run("send", queue, "--body", "x" * 300)
    wanted: dict[str, object] = {"all": True}
    told = program.ask("POST", "/dead-letters/resend", wanted).value
    assert (told["messages"], len(told["failed"]), told["more"]) == (0, 1000, True)
    detail = f"`{queue}` is at its quota of 1 KB"
    reason = {"code": "MQ_ERROR_INSUFFICIENT_RESOURCES", "detail": detail}
    assert told["staying"] == [{"messages": 1000, **reason}]
    rest = {name: told[name] for name in ("after", "until")}
    told = program.ask("POST", "/dead-letters/resend", wanted | rest).value
    assert [told[name] for name in ("messages", "more", "after")] == [0, False, None]
    assert len(told["failed"]) == 3
    assert program.ask("POST", "/dead-letters/resend", {"lookup_ids": ["1"]} | rest).status == 400
    said = boss.submit("/console/queue/resend", {"queue": "DeadLetter$"})
    assert f"1,003 stay: `{queue}` is at its quota of 1 KB (MQ_ERROR" in said.words
    assert program.ask("PATCH", f"/queues/{queue}", {"quota": 10_000}).status == 200
    said = boss.submit("/console/queue/resend", {"queue": "DeadLetter$"})
    assert "1,003 messages were sent again." in said.words
    program.close()


def test_a_queue_is_exported_after_a_question(
    running: PrivateQueueManager, boss: Browser, queue: str, tmp_path: Path
) -> None:
    for label in ("one", "two"):
        send(boss, queue, label=label)
    assert "/console/queue/export" in links(boss.get(f"/console/queue?queue={queue}"))
    asked = boss.get(f"/console/queue/export?queue={queue}")
    assert f"Messages of {queue} will be written to a file, whole: 2 now." in asked.words
    told, headers = boss.download("/console/queue/export", {"queue": queue})
    assert headers["Content-Disposition"] == f'attachment; filename="{queue}.mq"'
    file = tmp_path / "exported.mq"
    file.write_bytes(told)
    running.run("queue", "create", f"{queue}-again")
    running.run("queue", "import", f"{queue}-again", str(file))
    assert running.run("peek", f"{queue}-again", "--all").stdout.count("hello") == 2
    assert len(keys(boss.get(f"/console/queue?queue={queue}"))) == 2, "they stay"
    acts = [line for line in running.log.splitlines() if '"who": "boss"' in line]
    assert any('"action": "export messages"' in line and "127.0.0.1" in line for line in acts)


def test_nobody_is_offered_what_would_be_refused(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    (key,) = keys(send(boss, queue))
    actions = {f"/console/queue/{each}" for each in ("send", "change", "purge", "delete")}
    assert links(boss.get(f"/console/queue?queue={queue}")) >= actions
    give(running, queue, "peeker", denied=0x1001D, allowed=0x22)  # to peek, and see properties
    peeker = open_browser(running)
    peeker.log_on("peeker")
    page = peeker.get(f"/console/queue?queue={queue}")
    assert not links(page) & actions
    assert "/console/queue/export" in links(page)
    offered = set(re.findall('name="then" value="([a-z]+)"', page.text))
    assert offered == {"copy", "all"}, "who may look may copy to elsewhere"
    assert "send messages, receive, move, remove or purge messages" in page.words
    message = peeker.get(f"/console/message?queue={queue}&id={key}")
    assert not links(message) & {"/console/queue/move", "/console/queue/remove", "/console/trace"}
    assert "/console/message/body" in links(message)
    assert not links(page) & {"/console/accounts", "/console/outgoing", "/console/trail"}
    assert links(boss.get("/console/queue?queue=DeadLetter$")) & actions <= {
        "/console/queue/purge",
    }


def test_who_may_not_look_exports_nothing(
    running: PrivateQueueManager, boss: Browser, queue: str
) -> None:
    send(boss, queue, label="secret label")
    give(running, queue, "peeker", denied=0xB, allowed=0x20)
    peeker = open_browser(running)
    peeker.log_on("peeker")
    assert "/console/queue/export" not in links(peeker.get(f"/console/queue?queue={queue}"))
    assert peeker.ask("GET", f"/console/queue/export?queue={queue}").status == 403
    refused = peeker.send("/console/queue/export", {"queue": queue})
    assert (refused.status, "secret" in refused.text) == (403, False)
    told = [line for line in running.log.splitlines() if '"an operator was refused"' in line]
    assert '"who": "peeker"' in told[-1]
    assert '"action": "export messages"' in told[-1]
    assert boss.ask("GET", f"/console/queue/export?queue={queue}").status == 200
    peeker.token = "guessed"
    assert peeker.send("/console/queue/export", {"queue": queue}).status == 403


@pytest.mark.parametrize("name", ["..hidden", "=cmd|' !A0", "a%2f..%2fb", "../../b", "a\u202eb"])
def test_the_name_of_a_file_is_no_path_and_no_header(boss: Browser, name: str) -> None:
    boss.get("/console/queues/new")
    assert boss.submit("/console/queues/new", {"name": name}).status == 200
    _, headers = boss.download("/console/queue/export", {"queue": name})
    found = re.fullmatch('attachment; filename="([^"]*)"', headers["Content-Disposition"])
    assert found
    assert re.fullmatch("[A-Za-z0-9_-][A-Za-z0-9_.-]*[.]mq", found[1])
