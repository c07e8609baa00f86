"""Wrong usage: one clear sentence on standard error, exit status 2, no traceback."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rpcqm.cli.main import COMMANDS, build_parser, main


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server, no configuration, no password from around the tests."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("RPCQM_"):
            monkeypatch.delenv(name)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(list(words))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["recieve"], "There is no command `recieve`; did you mean `receive`?"),
        (
            ["frobnicate"],
            "There is no command `frobnicate`; there are serve, queue, machine, acl, open, user,",
        ),
        (["queue"], "COMMAND is missing; see `rpcqm queue --help`."),
        (["queue", "lst"], "There is no command `lst`; did you mean `list`?"),
        (["queue", "create"], "NAME is missing; see `rpcqm queue create --help`."),
        (["queue", "create", "a", "b"], "`b` is one argument too many; see"),
        (["queue", "create", "a", "--quota"], "--quota needs a value; see"),
        (["queue", "create", "a", "--quota", "big"], "--quota: `big` is not a number of KB from"),
        (["queue", "create", "a", "--quota", "-1"], "--quota: `-1` is not a number of KB from 0"),
        (["queue", "create", "a", "--privacy", "bdy"], "did you mean `body`?"),
        (["queue", "create", "a", "--sddl", "nonsense"], "--sddl: "),
        (["queue", "create", "a", "--label", "x" * 125], "a label has at most 124 characters"),
        (["queue", "create", "a,b"], "`a,b` does not name a queue"),
        (["queue", "create", "a;late"], "a subqueue comes into being by `rpcqm move`"),
        (["explain", r"{x}\1"], r"`{x}\1` is no identifier of a message; those are like"),
        (["queue", "create", r"DIRECT=OS:.\private$\a"], "A queue is created by its path name"),
        (["queue", "set", "a"], "Nothing to set was given; see"),
        (["queue", "set", "a", "--transactional"], "There is no option --transactional"),
        (["queue", "acl", "grant", "q", "everyone"], "RIGHT is missing"),
        (["queue", "acl", "grant", "q", "everyone", "read"], "`read` is no right; there are full"),
        (["queue", "show", "DIRECT=XX:nothing"], "(MQ_ERROR_ILLEGAL_FORMATNAME)"),
        (["queue", "list", "--jsn"], "There is no option --jsn; did you mean --json?"),
        (["send", "a", "--lines", "f", "--not-before", "1h"], "--lines does not go together with"),
        (["send", "a", "--lines-as", "csv"], "--lines-as says how a file is read: name it with"),
        (["trigger", "add", "t", "q", "--mode", "pek"], "cannot be `pek`; did you mean `peek`?"),
        (["trigger", "add", "t", "q", "--mode", "x"], "; there are peek, receive, transaction"),
        (["user", "add"], "NAME is missing; see"),
        (["user", "add", "a", "--group", "wheel"], "--group cannot be `wheel`; there are admin"),
        (["user", "add", "a", "--server", "h"], "There is no option --server"),
        (["send"], "QUEUE is missing; see"),
        (["send", "q", "--priority", "8"], "--priority: `8` is not a priority from 0 to 7; see"),
        (["send", "q", "--body", "a", "--file", "b"], "--file and --body do not go together; see"),
        (["send", "q", "-", "--body", "a"], "--body and - do not go together; see"),
        (["send", "q", "--express", "--transactional"], "messages of a transaction are recov"),
        (["send", "q", "--ack", "receive"], "--ack needs --admin-queue"),
        (["send", "q", "--ack", "maybe", "--admin-queue", "a"], "`maybe` is no acknowledgement"),
        (["send", "q", "--ttbr", "-1"], "--ttbr: `-1` is not a number of seconds"),
        (["send", "q", "--count", "0"], "--count: `0` is not a number from 1"),
        (["send", "q", "--correlation-id", "7"], "`7` is neither a message identifier"),
        (["send", "q", "--correlation-id", "g" * 40], "is neither a message identifier"),
        (["send", "q", "--response-queue", "a,b"], "`a,b` does not name a queue"),
        (["send", "q", "--body"], "--body needs a value; see"),
        (["receive", "q", "--all", "--count", "2"], "--count and --all do not go together; see"),
        (["receive", "q", "--lookup-id", "x"], "`x` is not a lookup identifier from 1"),
        (["receive", "q", "--lookup-id", "1", "--timeout", "5"], "--timeout and --lookup-id do"),
        (["receive", "q", "--timeout", "soon"], "--timeout: `soon` is not a number of milli"),
        (["receive", "q", "--format", "yaml"], "`yaml` is no format; there are table, json"),
        (["peek"], "QUEUE is missing; see"),
        (["move", "a"], "TO is missing; see"),
        (["move"], "FROM and TO are missing; see"),
        (["move", "a", "a;b", "--all", "--lookup-id", "1"], "--lookup-id and --all do not go"),
        (["purge"], "QUEUE is missing; see"),
        (["fsck"], "D is missing; see"),
        (["config"], "COMMAND is missing; see"),
        (["config", "check"], "F is missing; see"),
        (["serve", "--epm-prot", "1"], "There is no option --epm-prot; did you mean --epm-port?"),
        (["serve", "--epm-port", "65536"], "`65536` is not a port from -1 to 65535; see"),
        (["serve", "--rpc-port", "9", "--epm-port", "9"], "is 9, which `epm_port` has already."),
        (["serve", "now"], "`now` is one argument too many; see"),
        (["receive", "q", "--server", "h", "--data-dir", "d"], "--server and --data-dir do not"),
        (["receive", "q", "--server", "h:p"], "--server: `h:p` is not HOST or HOST:PORT; see"),
        (["receive", "q", "--server", "[::x]:1"], "`[::x]:1` is not HOST or HOST:PORT; see"),
        (["receive", "q", "--user", "u"], "--user needs --server"),
        (["receive", "q", "--server", "h", "--password-stdin"], "--password-stdin needs --user."),
        (["send", "q", "-", "--server", "h", "--user", "u", "--password-stdin"], "cannot hold the"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    status, out, err = run(capsys, *words)
    assert status == 2
    assert sentence in err
    assert err.startswith("rpcqm: ")
    assert err.count("\n") == 1
    assert not re.search(r"[.?] [A-Z]", err)
    assert out == ""


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys)
    assert status == 2
    assert "rpcqm send orders --body hello" in out


@pytest.mark.parametrize(
    "words",
    [
        ["queue", "list"],
        ["queue", "create", "a"],
        ["send", "a", "--body", "x"],
        ["receive", "a"],
        ["peek", "a", "--all"],
        ["move", "a", "a;b"],
        ["purge", "a"],
        ["user", "list"],
    ],
    ids=" ".join,
)
def test_without_a_server_the_exit_status_is_3(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    status, out, err = run(capsys, *words)
    assert (status, out) == (3, "")
    assert err.startswith("rpcqm: No queue manager runs on var; start one with `rpcqm serve")
    assert err.count("\n") == 1


def test_a_data_directory_without_a_server_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RPCQM_DATA_DIR", "/somewhere")
    status, _, err = run(capsys, "queue", "list")
    assert status == 3
    assert "No queue manager runs on /somewhere" in err


def test_a_wrong_configuration_is_explained(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "rpcqm.toml"
    file.write_text("epm_port = 1\nepm_prot = 2\n")
    status, _, err = run(capsys, "queue", "list", "--config", str(file))
    assert status == 2
    assert f"{file}:2: there is no setting `epm_prot`; did you mean `epm_port`?" in err


def test_the_check_of_a_configuration_tells_every_mistake(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "rpcqm.toml"
    file.write_text("epm_prot = 2\n[security]\ndebug_rpc = 1\n")
    status, out, err = run(capsys, "config", "check", str(file))
    assert (status, out) == (1, "")
    assert f"{file}:1: there is no setting `epm_prot`" in err
    assert f"{file}:3: `security.debug_rpc` is true or false, not 1." in err
    assert err.startswith(f"rpcqm: {file} has 2 mistakes:\n")


def test_one_mistake_of_a_configuration_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "rpcqm.toml"
    file.write_text("epm_port = 'x'\n")
    sentence = f"{file}:1: `epm_port` is a whole number, not 'x'.\n"
    assert run(capsys, "config", "check", str(file)) == (1, "", f"rpcqm: {sentence}")
    status, _, err = run(capsys, "serve", "--config", str(file))
    assert (status, err) == (2, f"rpcqm: The configuration cannot be used: {sentence}")


@pytest.mark.parametrize("words", [["fsck"], ["queue", "list", "--config"]], ids=" ".join)
def test_a_path_that_the_system_refuses_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    status, out, err = run(capsys, *words, "x" * 300)
    assert status in (1, 2)
    assert out == ""
    assert "File name too long" in err
    assert "should not happen" not in err
    assert err.count("\n") == 1


def test_a_port_where_nobody_listens_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{reserved.getsockname()[1]}"
        status, _, err = run(capsys, "peek", "a", "--server", where)
    assert status == 3
    assert err == f"rpcqm: No queue manager can be reached at {where}: connection refused.\n"


def test_the_check_of_a_good_configuration_succeeds(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "rpcqm.toml"
    file.write_text("[security]\ndebug_rpc = true\n")
    assert run(capsys, "config", "check", str(file)) == (0, f"{file} is good.\n", "")


@pytest.mark.parametrize(
    "words", [["--help"], ["queue", "set", "--help"], ["receive", "--help"], ["--version"]]
)
def test_help_is_no_mistake(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 0
    assert "rpcqm" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "send", "q", "--file", "nowhere.txt")
    assert status == 1
    assert err == "rpcqm: nowhere.txt cannot be read: No such file or directory.\n"


def test_a_password_needs_a_terminal_or_an_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    status, _, err = run(capsys, "user", "add", "alice")
    assert status == 2
    assert "There is no terminal to ask for the password; use --password-stdin." in err


def test_a_mistake_of_ours_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rpcqm.cli.explain.find_codes", lambda subject: 1 / 0)
    status, _, err = run(capsys, "explain", "x")
    assert status == 1
    assert "division by zero" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rpcqm qu", ["queue"]),
        (
            "rpcqm queue ",
            ["create", "list", "show", "set", "rename", "delete", "export", "import", "acl"],
        ),
        ("rpcqm receive q --fo", ["--format"]),
    ],
)
def test_the_shell_completes_commands_and_options(
    tmp_path: Path, line: str, words: list[str]
) -> None:
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "words"),
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run(
        [sys.executable, "-m", "rpcqm"], env=os.environ | environment, timeout=60, check=True
    )
    completed = [word.strip() for word in (tmp_path / "words").read_text().splitlines()]
    assert [word for word in completed if word not in ("-h", "--help")] == words


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_the_same_without_the_other_ones(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for words in ([name], []):
        with pytest.raises(SystemExit, match="0"):
            build_parser(words).parse_args([name, "--help"])
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert f"rpcqm {name}" in shown[0]


def test_a_command_imports_none_of_the_other_ones() -> None:
    code = (
        "import sys; from rpcqm.cli.main import build_parser; build_parser(['purge']); "
        "print([each for each in ('send', 'queue') if f'rpcqm.cli.{each}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
