"""scripts/windows-check: its questions, the script that asks them, and what is said of a file."""

import datetime
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from rpcqm.codec.bodies.formatters import encode_body
from rpcqm.codec.bodies.xml_writing import encode_xml
from tests.support.project.windows_check import FOLDER, module, table

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted((FOLDER / "windows").glob("*.ps1"))
DECISIONS = (ROOT / "docs" / "decisions.md").read_text("utf-8")
PAGE = ROOT / "docs" / "windows-check.md"

# What is asked


def asked() -> set[tuple[str, str]]:
    """Each question with its place, as the scripts and the other side have them."""
    found: set[tuple[str, str]] = set()
    for path in SCRIPTS:
        for name, place in re.findall(r"\bAsk '([A-Z]\d\d)' ('\w+'|\$of)", path.read_text("ascii")):
            places = ("windows", "rpcqm") if place == "$of" else (place.strip("'"),)
            found.update((name, each) for each in places)
    text = (FOLDER / "serving.py").read_text("utf-8")
    found.update(re.findall(r'f"([A-Z]\d\d) (windows|rpcqm) ', text))
    return found | {(name, "windows") for name, _, _ in module("serving").REVERSE}


def test_every_question_is_asked_and_every_answer_has_a_question() -> None:
    assert asked() == {(name, of) for name, each in table().items() for of in each.of}


def test_a_question_has_one_answer_of_ours() -> None:
    for each in table().values():
        assert bool(each.here) != bool(each.json), each.id
        assert each.asks, each.id
        if each.json:
            json.loads(each.json)


def test_a_question_is_replayed_by_a_test_or_says_why_not() -> None:
    for each in table().values():
        assert bool(each.replayed) != bool(each.not_replayed), each.id
        for place in each.replayed:
            path, _, name = place.partition("::")
            assert f"\ndef {name}(" in (ROOT / "tests" / path).read_text("utf-8"), place


def test_the_decisions_that_a_question_names_are_there() -> None:
    for each in table().values():
        for number in each.why:
            assert f"| {number} |" in DECISIONS or f"{number}," in DECISIONS, (each.id, number)


def test_the_page_tells_the_form_and_the_groups() -> None:
    page = PAGE.read_text("utf-8")
    header = f"{module('questions').HEADER} {module('questions').VERSION}"
    assert f"\n{header}\n" in page
    for letter in {name[0] for name in table()}:
        assert f"| {letter} |" in page
    count = sum("rpcqm" in each.of and each.id[0] == "A" for each in table().values())
    assert f"; {count} questions to Windows' own queues" in page


# What the script is written in: a small part of PowerShell 5.1, since it cannot be run here

KEYWORDS = {
    *("function", "param", "if", "else", "foreach", "for", "in", "while", "try", "catch"),
    *("return", "throw"),
}
CMDLETS = {
    *("Add-Type", "Get-ItemProperty", "Get-MsmqQueue", "Get-MsmqQueueACL", "Get-WmiObject"),
    *("Join-Path", "New-Object", "Set-Content", "Sort-Object", "Start-Sleep", "Test-Path"),
    *("Where-Object", "Write-Host", "Write-Verbose"),
}
AUTOMATIC = {"_", "args", "false", "matches", "null", "psscriptroot", "psversiontable", "true"}
_TOKEN = re.compile(r"'(?:[^']|'')*'|(?<!\S)#[^\n]*")
_PARAMETER = re.compile(r"\[Parameter\([^)]*\)\]")
_COMMAND = re.compile(r"(?:^|[;{(|=&]|\breturn\b)[ \t]*([A-Za-z][\w-]*)(?![\w.:(-])", re.M)


def code(path: Path) -> str:
    """A script without comments, attributes, and what its texts say."""
    text = _TOKEN.sub(
        lambda match: "''" if match[0].startswith("'") else "", path.read_text("ascii")
    )
    return _PARAMETER.sub("", text)


def functions() -> set[str]:
    return {
        name for path in SCRIPTS for name in re.findall(r"^function ([\w-]+)", code(path), re.M)
    }


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
class TestScript:
    def test_it_is_plain_ascii_in_lines_of_ordinary_length(self, path: Path) -> None:
        text = path.read_text("ascii")
        assert "\t" not in text
        assert "\r" not in text
        assert text.endswith("\n")
        assert [
            line for line in text.splitlines() if len(line) > 110 or line != line.rstrip()
        ] == []
        assert len(text.splitlines()) < 600

    def test_it_has_none_of_what_is_easy_to_get_wrong(self, path: Path) -> None:
        """Variables within texts, lines that go on, here-strings, classes."""
        found = code(path)
        for odd in ('"', "`", "@'", "&&", "||", "?.", "??", "<#", "Invoke-Expression"):
            assert odd not in found, odd
        assert not re.search(r"^\s*(?:class|enum|using|filter|workflow)\b", found, re.M)

    def test_its_brackets_are_closed(self, path: Path) -> None:
        opened: list[str] = []
        for sign in re.findall(r"[()\[\]{}]", code(path)):
            if sign in "([{":
                opened.append(sign)
            else:
                assert opened.pop() + sign in ("()", "[]", "{}")
        assert opened == []

    def test_it_calls_what_there_is_and_no_alias(self, path: Path) -> None:
        commands = {name for name in _COMMAND.findall(code(path)) if "-" in name or name.islower()}
        assert commands - KEYWORDS <= CMDLETS | functions() | {"Ask"}

    def test_its_variables_are_set_before_they_are_read(self, path: Path) -> None:
        everywhere = "\n".join(map(code, SCRIPTS))
        heads = re.findall(
            r"^(?:function [\w-]+)?(?:param)?\(([^{]*?)\)(?: \{|$)", everywhere, re.M
        )
        given = {name for head in heads for name in re.findall(r"\$(\w+)", head)}
        given |= set(re.findall(r"\$(?:script:)?(\w+) = ", everywhere))
        given |= set(re.findall(r"foreach \(\$(\w+) in ", everywhere))
        used = re.findall(r"\$(?:script:)?(\w+)(?!\w*:)", re.sub(r"\$env:\w+", "", code(path)))
        known = {name.lower() for name in given} | AUTOMATIC
        assert {name.lower() for name in used} - known == set()


def test_what_is_private_is_taken_out_by_its_patterns() -> None:
    """Those of Hide-Names, which mean the same to Python."""
    text = (FOLDER / "windows" / "check.ps1").read_text("ascii")
    patterns = re.findall(r"Replace\(\$text, '(.*)', '(\w+|\?)'\)", text)
    private = "S-1-5-21-1-2-3-1001 192.0.2.7 fe80::1:2:3%4 1:2:3:4:5:6:7:8 \xe4"
    private += " {b612fe70-822d-4a0a-bb8c-fa25e3950d10}"
    for pattern, word in patterns:
        private = re.sub(pattern, word, private)
    assert private == "SID ADDRESS ADDRESS ADDRESS ? {GUID}"
    kept = "0xC00E0003 10.0.20348 2026-05-26T20:00:00,Utc B01 windows class 0x8000"
    for pattern, word in patterns:
        assert re.sub(pattern, word, kept) == kept


# Bodies of ours that the script has as texts and numbers

WRITTEN: dict[str, tuple[object, str | None]] = {
    "E50": ("two apples", None),
    "E51": (42, "int"),
    "E52": (42, None),
    "E53": (42, None),
    "E55": (Decimal("12.50"), None),
    "E56": (b"\0\1\xff", None),
    "E58": ("a\x1db", None),
    "E60": ("  ", None),
}


def local_steps(function: str) -> dict[str, str]:
    text = (FOLDER / "windows" / "local.ps1").read_text("ascii")
    found = re.findall(rf"Ask '(E\d\d)' 'windows' \{{ {function} (.*) \}}", text)
    return dict(found)


@pytest.mark.parametrize("question", WRITTEN)
def test_the_script_has_the_xml_that_is_written_here(question: str) -> None:
    value, kind = WRITTEN[question]
    element = local_steps("Get-Xml")[question].partition("'")[2].removesuffix("'")
    assert f'<?xml version="1.0"?>{element}'.encode() == encode_xml(value, kind)


TYPED = {
    "E70": "two",
    "E71": 42,
    "E72": 1.5,
    "E73": True,
    "E74": datetime.datetime(2026, 5, 26, 12),
    "E75": Decimal("12.5"),
}


@pytest.mark.parametrize(("question", "value"), TYPED.items())
def test_the_script_has_the_octets_that_are_written_here(question: str, value: object) -> None:
    step = re.fullmatch(r"(\d+) \(\[byte\[\]\]\((.*)\)\)", local_steps("Get-Typed")[question])
    assert step is not None
    kind, octets = step.groups()
    assert (bytes(map(int, octets.split(", "))), int(kind)) == encode_body(value)


# What is said of a file


def report(*lines: str) -> str:
    whole = ["rpcqm-windows-check 1", "about windows 10.0.20348", *lines]
    return "\r\n".join([*whole, f"end {len(whole)}"]) + "\r\n"


def told(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    path = tmp_path / "answers.txt"
    path.write_bytes(text.encode("latin-1"))
    status = module("check").main(["--read", str(path)])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_answers_like_ours_are_counted_and_differences_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = report(
        "A09 windows 0xC00E0003 COMException",
        "A09 rpcqm 0xC00E0003 COMException",
        "A30 windows nothing",
        "A02 windows 0xC00E0006 COMException",
        "E02 windows octets 0 3C696E743E34323C2F696E743E",
        "E03 windows octets 0 3C696E743E34323C2F696E743E",
        "C10 rpcqm not-asked",
        "# names, rpcqm stopped: 0x800706BA",
        "Z99 windows ok",
    )
    status, out, _ = told(tmp_path, text, capsys)
    lines = out.splitlines()
    assert status == 1
    assert lines[0] == "From windows 10.0.20348"
    assert "  remark: names, rpcqm stopped: 0x800706BA" in lines
    place = lines.index("A02 windows: With which code is a queue refused that is there?")
    assert lines[place + 1 : place + 3] == [
        "  Windows: 0xC00E0006 COMException",
        "  here: 0xC00E0005",
    ]
    assert "E03 windows: XML of a double" in lines
    assert "Z99 windows: ok (no question of ours)" in lines
    assert "C10 rpcqm" in lines[-2]
    assert lines[-1].startswith("3 same; 1 as the pages say; 2 differs; ")


def test_a_file_without_differences_ends_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = told(tmp_path, report("A09 windows 0xC00E0003"), capsys)
    assert status == 0
    assert "A10 windows" in out


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the first line is not `rpcqm-windows-check 1`"),
        ("rpcqm-windows-check 2\nend 1\n", "it has version 2 of the form; this reads version 1"),
        ("rpcqm-windows-check 1\nA09 windows ok\n", "it does not end with `end 1`"),
        (report("A09 linux ok"), "line 3 is no answer: A09 linux ok"),
        (report("A09 windows ok", "A09 windows no"), "line 4 answers A09 of windows again"),
        (report("A09 windows text 192.0.2.7"), "line 3 seems to have an address; take it out"),
        (report("# S-1-5-21-1-2-3"), "line 3 seems to have a SID; take it out first"),
        (report("# alice@example.org"), "line 3 seems to have an address of mail"),
        (report("A09 windows \xe4"), "codec can't decode"),
    ],
)
def test_what_is_no_file_of_answers_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    status, out, err = told(tmp_path, text, capsys)
    assert (status, out) == (2, "")
    assert reason in err
    assert len(err.splitlines()) == 1


def test_octets_of_a_form_that_is_unknown_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = told(tmp_path, report("E31 windows octets 768 FF"), capsys)
    assert status == 1
    assert "E31 windows: Binary of an int" in out
