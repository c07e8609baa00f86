"""`rpcqm acl explain`: which entry decides, in words."""

import json

from tests.integration.cli.conftest import Command


def test_each_right_is_told_with_the_entry_that_decides(run: Command, queue: str) -> None:
    run("queue", "acl", "deny", queue, "users", "send")
    told = run("acl", "explain", queue, "users").lines
    assert told[0] == f"users (authenticated, everyone), with `{queue}`:"
    why = {line.split()[0]: line.split(maxsplit=2)[1:] for line in told[3:13]}
    assert why["send"] == ["no", "entry 1 denies it to users"]
    assert why["receive"] == ["yes", "entry 3 allows it to everyone"]
    assert why["delete"] == ["no", "no entry that concerns users allows it"]
    steps = [line.split()[:3] for line in told[15:]]
    assert steps[:3] == [
        ["1", "deny", "users"],
        ["2", "allow", "administrator"],
        ["3", "allow", "everyone"],
    ]
    assert run("queue", "acl", "explain", queue, "users").lines == told


def test_programs_get_the_steps(run: Command, queue: str) -> None:
    told = json.loads(run("acl", "explain", queue, "anonymous", "--json").output)
    assert (told["account"], told["groups"]) == ("ANONYMOUS LOGON", [])
    assert [each["concern"] for each in told["steps"]] == ["others", "others", "counts"]
    machine = json.loads(run("machine", "acl", "explain", "administrators", "--json").output)
    assert all(each["granted"] for each in machine["rights"])


def test_somebody_unknown_is_one_sentence(refused: Command, queue: str) -> None:
    said = refused("acl", "explain", queue, "nobody").errors
    assert said.startswith("rpcqm: There is no account `nobody` here that you may ask for; give an")
    said = refused("acl", "explain", queue, "everyone", "--token", "x").errors
    assert said == "rpcqm: everyone has no token `x`; `rpcqm token list` names all.\n"
    assert "there is no such queue" in refused("acl", "explain", "nowhere", "everyone").errors
