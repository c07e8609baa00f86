"""`rpcqm queue` and `rpcqm purge` against a real server."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


def shown(run: Command, name: str) -> dict[str, Any]:
    found = json.loads(run("queue", "show", name, "--json").output)
    assert isinstance(found, dict)
    return found


def test_a_queue_is_created_listed_shown_and_deleted(
    run: Command, refused: Command, name: str
) -> None:
    assert run("queue", "create", name).text == f".\\private$\\{name}\n"
    table = run("queue", "list").lines
    headings = ["QUEUE", "KIND", "MESSAGES", "SIZE", "JOURNAL", "QUOTA", "TRANSACTIONAL"]
    assert table[0].split() == headings
    (row,) = [line for line in table if line.split()[0].endswith(f"\\{name}")]
    assert row.split()[1:] == ["private", "0", "0", "B", "0", "0", "%", "no"]
    assert run("queue", "show", name).lines[0].startswith("Path name")
    run("queue", "delete", name)
    assert "(MQ_ERROR_QUEUE_NOT_FOUND)" in refused("queue", "show", name).errors


def test_a_queue_and_its_journal_show_how_much_of_their_quotas_is_used(
    run: Command, name: str
) -> None:
    """By commands and, for whoever may count, by the same numbers elsewhere."""
    run("queue", "create", name, "--journal", "--quota", "4", "--journal-quota", "2")
    for _ in range(2):
        run("send", name, "--body", "x" * 300)
    run("receive", name)
    (row,) = [line for line in run("queue", "list", name).lines if name in line]
    told = json.loads(run("queue", "list", name, "--json").output)[0]
    used, journal = told["quota_percent"], told["journal_quota_percent"]
    assert 10 < used < 30
    assert journal in (2 * used, 2 * used + 1)
    assert f" {used} %, journal {journal} % " in row
    assert shown(run, name)["quota_percent"] == used
    assert f"{used} %, journal {journal} %" in run("queue", "show", name).text


def test_a_queue_exists_once(refused: Command, queue: str) -> None:
    outcome = refused("queue", "create", queue.upper())
    assert outcome.errors == (
        f"rpcqm: Cannot create .\\private$\\{queue.upper()}: a queue with this path name is "
        "there already (MQ_ERROR_QUEUE_EXISTS); choose another name, or delete the existing "
        "queue first.\n"
    )


def test_every_property_can_be_given_and_shown(run: Command, name: str) -> None:
    run(
        *("queue", "create", name, "--transactional", "--journal", "--authenticate"),
        *("--quota", "2048", "--journal-quota", "1024", "--label", "Bücher", "--privacy", "none"),
        *("--sddl", "O:SYG:SYD:(A;;0x4;;;WD)(A;;GA;;;BA)"),
    )
    found = shown(run, name)
    assert {
        key: found[key]
        for key in ("transactional", "journal", "authenticate", "quota", "journal_quota", "label")
    } == {
        "transactional": True,
        "journal": True,
        "authenticate": True,
        "quota": 2048,
        "journal_quota": 1024,
        "label": "Bücher",
    }
    assert found["privacy"] == "none"
    assert found["created"].endswith("Z")
    assert "(A;;0x4;;;WD)" in found["sddl"].replace("0x00000004", "0x4")


def test_defaults_are_shown_as_such(run: Command, queue: str) -> None:
    found = shown(run, queue)
    assert found["quota"] == 262_144
    assert found["journal"] is False
    assert found["privacy"] == "optional"
    assert found["messages"] == found["bytes"] == 0
    assert ["Quota", "262,144", "KB"] in [
        line.split() for line in run("queue", "show", queue).lines
    ]


def test_properties_are_changed_one_by_one(run: Command, queue: str) -> None:
    run("queue", "set", queue, "--label", "first", "--quota", "77")
    run("queue", "set", queue, "--journal")
    found = shown(run, queue)
    assert (found["label"], found["quota"], found["journal"]) == ("first", 77, True)
    run("queue", "set", queue, "--no-journal", "--quota", "unlimited")
    found = shown(run, queue)
    assert (found["label"], found["quota"], found["journal"]) == ("first", None, False)


def test_permissions_are_changed(run: Command, queue: str) -> None:
    run("queue", "set", queue, "--sddl", "D:(A;;GA;;;BA)")
    sddl = shown(run, queue)["sddl"]
    assert ";;;BA)" in sddl
    assert ";;;WD)" not in sddl


@pytest.mark.parametrize("word", ["delete", "show"])
def test_a_queue_that_is_not_there_is_refused(refused: Command, word: str, name: str) -> None:
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in refused("queue", word, name).errors
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in refused("queue", "set", name, "--label", "x").errors


def test_the_list_for_programs_is_one_array(run: Command, queue: str) -> None:
    run("send", queue, "--body", "12345")
    (found,) = [
        entry
        for entry in json.loads(run("queue", "list", "--json").output)
        if entry["path_name"].endswith(f"\\{queue}")
    ]
    assert found["messages"] == 1
    assert found["bytes"] > 5
    assert found["type"] == "PRIVATE"
    assert found["location"] == "LOCAL"
    assert found["format_name"].upper().startswith("DIRECT=")


def test_a_queue_has_many_names(run: Command, queue: str) -> None:
    format_name = shown(run, queue)["format_name"]
    for spelling in (
        queue.upper(),
        rf".\private$\{queue}",
        rf"private$\{queue}",
        rf"DIRECT=OS:localhost\private$\{queue}",
        rf"DIRECT=TCP:127.0.0.1\private$\{queue}",
        format_name,
    ):
        assert shown(run, spelling)["path_name"].endswith(f"\\{queue}")


def test_system_queues_can_be_shown(run: Command) -> None:
    for spelling in ("DeadLetter$", "XactDeadLetter$", "Journal$"):
        assert shown(run, spelling)["type"] == "MACHINE"


def test_purging_deletes_every_message(run: Command, queue: str) -> None:
    run("send", queue, "--body", "x", "--count", "3")
    assert run("purge", queue).text == "Purged 3 messages.\n"
    assert shown(run, queue)["messages"] == 0


def test_the_journal_has_copies_and_can_be_purged(run: Command, queue: str) -> None:
    run("queue", "set", queue, "--journal")
    run("send", queue, "--body", "kept")
    run("receive", queue)
    assert shown(run, queue)["journal_messages"] == 1
    assert run("peek", f"{queue};JOURNAL", "--format", "body").output == b"kept"
    assert run("purge", f"{queue};JOURNAL").text == "Purged 1 message.\n"
    assert shown(run, queue)["journal_messages"] == 0


def test_a_journal_that_is_switched_off_has_a_size(run: Command, queue: str) -> None:
    run("queue", "set", queue, "--journal")
    run("send", queue, "--body", "kept")
    run("receive", queue)
    kept = shown(run, queue)["journal_bytes"]
    run("queue", "set", queue, "--no-journal")
    assert shown(run, queue)["journal_bytes"] == kept > 0
    assert "In its journal 1 (0 B)" not in " ".join(run("queue", "show", queue).text.split())


def test_subqueues_are_shown(run: Command, queue: str) -> None:
    run("send", queue, "--body", "x")
    run("move", queue, f"{queue};late")
    assert shown(run, queue)["subqueues"] == ["late"]


def test_permissions_are_shown_and_changed_in_plain_words(run: Command, queue: str) -> None:
    assert [line.rstrip() for line in run("queue", "acl", "show", queue).lines] == [
        "Owner: administrator",
        "WHO            MAY            MAY NOT",
        "administrator  full",
        "everyone       receive, send",
        "anonymous      send",
    ]
    creator = json.loads(run("queue", "acl", "show", queue, "--json").output)["owner"]
    assert creator.startswith("S-1-5-21-")
    assert creator.endswith("-500")
    run("queue", "acl", "grant", queue, "administrators", "full")
    assert run("queue", "acl", "revoke", queue, "everyone").text == "everyone may now: nothing.\n"
    granted = run("queue", "acl", "grant", queue, "S-1-5-21-1-2-3-1000", "receive", "send")
    assert granted.text == "S-1-5-21-1-2-3-1000 may now: receive, send.\n"
    run("queue", "acl", "deny", queue, "anonymous", "send")
    shown = json.loads(run("queue", "acl", "show", queue, "--json").output)
    assert shown["owner"] == creator
    assert {entry["sid"]: (entry["allowed"], entry["denied"]) for entry in shown["entries"]} == {
        creator: (["full"], []),
        "S-1-5-7": (["send"], ["send"]),
        "S-1-5-21-1-2-3-1000": (["receive", "send"], []),
        "S-1-5-32-544": (["full"], []),
    }


def test_nobody_is_locked_out(run: Command, refused: Command, queue: str) -> None:
    creator = json.loads(run("queue", "acl", "show", queue, "--json").output)["owner"]
    for words in (["revoke", queue, creator], ["deny", queue, creator, "full"]):
        assert (
            "Nobody could change the permissions any more" in refused("queue", "acl", *words).errors
        )
    assert "full" in run("queue", "acl", "show", queue).text


def test_a_grant_says_what_everyone_may_besides(run: Command, queue: str) -> None:
    alice = "S-1-5-21-1-2-3-1001"
    told = run("queue", "acl", "grant", queue, alice, "peek").lines
    ends = f"`rpcqm queue acl revoke {queue} everyone` ends that."
    assert told == [f"{alice} may now: peek.", f"everyone may still: receive, send; {ends}"]
    told = run("queue", "acl", "grant", queue, "everyone", "full").lines
    assert told == ["everyone may now: full."]
    assert (
        f"everyone may still: full; {ends}"
        in run("queue", "acl", "grant", queue, alice, "send").lines
    )
    run("queue", "acl", "grant", queue, "administrators", "full")
    run("queue", "acl", "revoke", queue, "everyone")
    assert len(run("queue", "acl", "grant", queue, alice, "send").lines) == 1


def test_quotas_and_times_take_units(run: Command, queue: str, attempt: Command) -> None:
    run("queue", "set", queue, "--quota", "5MB", "--journal-quota", "512KB")
    found = json.loads(run("queue", "show", queue, "--json").output)
    assert (found["quota"], found["journal_quota"]) == (5120, 512)
    run("send", queue, "--body", "x", "--ttbr", "2min", "--ttrq", "1min")
    assert json.loads(run("peek", queue, "--timeout", "5s", "--json").output)["ttbr"] == 120
    mistake = attempt("send", queue, "--body", "x", "--ttbr", "1500ms")
    assert (mistake.status, "`1500ms` is not a whole number of seconds" in mistake.errors) == (
        2,
        True,
    )


def test_denying_everyone_says_what_anonymous_still_may(run: Command, queue: str) -> None:
    """Anonymous is not in Everyone (G83)."""
    still = "anonymous is not in everyone, and may still: send."
    run("queue", "acl", "grant", queue, "administrators", "full")
    assert run("queue", "acl", "deny", queue, "everyone", "receive", "send").lines == [
        "everyone may now: nothing, and is denied: receive, send.",
        still,
    ]
    assert still not in run("queue", "acl", "deny", queue, "everyone", "receive").text
    assert still not in run("queue", "acl", "deny", queue, "users", "send").text
    assert still not in run("queue", "acl", "grant", queue, "everyone", "send").text
    run("queue", "acl", "deny", queue, "anonymous", "full")
    assert len(run("queue", "acl", "deny", queue, "everyone", "send").lines) == 1


def test_permissions_of_nobody_known_are_refused(refused: Command, queue: str) -> None:
    outcome = refused("queue", "acl", "grant", queue, "nobody-here", "send")
    assert "There is no account `nobody-here` here" in outcome.errors
    assert "not a valid SID" in refused("queue", "acl", "grant", queue, "S-1-x", "send").errors


def test_a_queue_gets_another_owner(run: Command, refused: Command, queue: str) -> None:
    told = run("queue", "acl", "owner", queue, "administrators").text
    assert told == f"The owner of `{queue}` is administrators now.\n"
    lines = run("queue", "acl", "show", queue).lines
    assert lines[0] == "Owner: administrators"
    assert lines[2].split() == ["administrator", "full"]
    assert (
        "There is no account `nobody`" in refused("queue", "acl", "owner", queue, "nobody").errors
    )


def test_a_queue_is_made_with_its_trail_and_its_limit_of_deliveries(
    run: Command, name: str
) -> None:
    run("queue", "create", name, "--trail", "--max-deliveries", "5", "--poison", "bad")
    shown = json.loads(run("queue", "show", name, "--json").output)
    assert (shown["trail"], shown["max_deliveries"], shown["poison"]) == (True, 5, "bad")


def test_a_queue_with_messages_is_deleted_after_a_question(
    run: Command, refused: Command, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal; a script asks by an option that the queue is empty."""
    run("queue", "create", name, "--journal")
    run("send", name, "--count", "3", "--body", "x")
    run("receive", name)
    there = "2 messages, and 1 in its journal"
    refusal = refused("queue", "delete", name, "--if-empty").errors
    assert refusal == f"rpcqm: Cannot delete `{name}`: it has {there}.\n"
    asked = []

    def answer(question: str) -> str:
        asked.append(question)
        return "no"

    monkeypatch.setattr("rpcqm.cli.queue_delete._on_a_terminal", lambda: True)
    monkeypatch.setattr("rpcqm.cli.queue_delete._answer", answer)
    assert refused("queue", "delete", name).errors == f"rpcqm: `{name}` stays.\n"
    assert asked == [f"`{name}` has {there}. Delete it with them? [y/N] "]
    run("queue", "delete", name, "--yes")
    assert len(asked) == 1


def test_an_empty_queue_is_deleted_without_a_question(run: Command, name: str) -> None:
    run("queue", "create", name)
    run("queue", "delete", name, "--if-empty")
