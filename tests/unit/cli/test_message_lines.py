"""Tables and files of definitions that somebody hostile has written end in one sentence."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.cli import message_lines
from rpcqm.cli.definitions_file import _lines, read
from rpcqm.cli.errors import UsageMistake
from rpcqm.client.outgoing import OutgoingMessage


@pytest.fixture
def _short_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = csv.field_size_limit()
    monkeypatch.setattr(message_lines, "LONGEST_LINE", 1_000)
    yield
    csv.field_size_limit(before)


@pytest.mark.usefixtures("_short_rows")
@pytest.mark.parametrize(
    "row",
    ["x" * 1_001, '"a\n",' * 400, "," * 1_001],
    ids=["one line", "many lines", "many cells"],
)
def test_a_row_without_an_end_is_not_read_to_its_end(tmp_path: Path, row: str) -> None:
    """A pipe need not end, either."""
    file = tmp_path / "table"
    file.write_text(f"body\nfirst\n{row}")
    found = message_lines.messages_of(
        str(file), "csv", OutgoingMessage(), lambda octets: (octets, 0)
    )
    assert next(found).body == "first".encode("utf-16-le")
    with pytest.raises(UsageMistake, match=r"\d: the row is longer than 1,000 octets"):
        list(found)


@pytest.mark.usefixtures("_short_rows")
def test_a_table_may_have_as_many_rows_as_it_likes(tmp_path: Path) -> None:
    file = tmp_path / "table"
    file.write_text("body\n" + '"two\nlines"\n' * 500)
    found = message_lines.messages_of(str(file), "csv", OutgoingMessage(), lambda octets: (b"", 0))
    assert len(list(found)) == 500


@pytest.mark.parametrize("line", ["a." + " " * 200_000, '"' + "a" * 200_000, "[" + " " * 200_000])
def test_a_long_line_of_definitions_takes_as_long_as_its_length(line: str) -> None:
    """In a text of several lines any may stand."""
    assert _lines(f"x = 1\n{line}") == {("", 0, "x"): 1}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_is_read_as_spreadsheets_of_any_country_write_it(
    tmp_path: Path, delimiter: str
) -> None:
    """Where numbers have a decimal comma, semicolons stand between the cells."""
    file = tmp_path / "table"
    rows = (('\ufeff"label"', "body", "priority"), ("1,5;x\ty", "a", "3"))
    head = delimiter.join(rows[0])
    cells = delimiter.join([f'"{rows[1][0]}"', *rows[1][1:]])
    file.write_text(f"{head}\r\n{cells}\r\n", encoding="utf-8")
    (found,) = message_lines.messages_of(
        str(file), "csv", OutgoingMessage(), lambda octets: (octets, 0)
    )
    assert (found.label, found.body, found.priority) == ("1,5;x\ty", "a".encode("utf-16-le"), 3)


def test_a_key_of_definitions_with_too_many_parts_is_refused_at_once(tmp_path: Path) -> None:
    """The parser's time and memory are the square of their number: 40,000 end the process."""
    file = tmp_path / "definitions.toml"
    file.write_text(f"version = 1\n{'a.' * 100_000}b = 1\n")
    with pytest.raises(UsageMistake, match="nested too deeply"):
        read(file)
    file.write_text("version = 1\nx = \n")
    with pytest.raises(UsageMistake, match=":2: "):
        read(file)
