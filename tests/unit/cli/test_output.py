"""What commands print: tables, sizes, times, progress."""

import io

import pytest

from rpcqm.base.text import iso_time, visible
from rpcqm.cli import output
from rpcqm.cli.output import ProgressDisplay, Table, cut, display_width, size_text
from tests.support.clock import SimulatedClock


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_columns_are_aligned_and_numbers_to_the_right() -> None:
    stream = io.StringIO()
    table = Table(["NAME", ">SIZE", "NOTE"], stream)
    table.add("a", 1, "first")
    table.add("longer", 1234, "")
    table.print()
    assert stream.getvalue() == ("NAME    SIZE  NOTE\na          1  first\nlonger  1234\n")


def test_wide_characters_take_two_columns() -> None:
    stream = io.StringIO()
    table = Table(["A", "B"], stream)
    table.add("日本", "x")
    table.add("ab", "y")
    table.print()
    assert stream.getvalue().splitlines()[1:] == ["日本  x", "ab    y"]
    assert display_width("e\u0301") == 1


def test_a_line_is_cut_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    monkeypatch.setenv("LINES", "10")
    for stream, expected in ((Terminal(), "x" * 9 + "…"), (io.StringIO(), "x" * 30)):
        table = Table(["H"], stream)
        table.add("x" * 30)
        table.print()
        assert stream.getvalue().splitlines()[1] == expected


def test_a_wide_character_is_not_cut_in_half() -> None:
    assert cut("日本語", 6) == "日本語"
    assert cut("日本語", 5) == "日本…"
    assert cut("日本語", 4) == "日…"


def test_what_moves_the_cursor_is_not_printed() -> None:
    assert visible("a\x1b[2Jb\nc\u202e") == r"a\x1b[2Jb\nc\u202e"
    assert visible("a\nb", keep="\n") == "a\nb"


def test_fields_with_several_lines_stay_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_fields({"A": "x", "Longer": "one\ntwo"})
    assert capsys.readouterr().out == "A       x\nLonger  one\n        two\n"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (5 << 20, "5.0 MiB"),
        (3 << 50, "3072.0 TiB"),
    ],
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert size_text(size) == text


def test_times_for_programs_are_utc() -> None:
    assert iso_time(1_700_000_000) == "2023-11-14T22:13:20Z"
    assert iso_time(0) is None


def test_progress_shows_itself_after_a_while_and_wipes_itself_out() -> None:
    clock, stream = SimulatedClock(), Terminal()
    with ProgressDisplay("Sent", 10, stream, clock) as progress:
        progress.advance()
        assert stream.getvalue() == ""
        clock.advance(1000)
        progress.advance(4)
        assert "Sent 5 of 10 (50%), 5/s" in stream.getvalue()
        shown = stream.getvalue()
        progress.advance()
        assert stream.getvalue() == shown
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("stream", "scrolls"), [(io.StringIO(), False), (Terminal(), True)])
def test_progress_is_silent_where_it_would_only_disturb(stream: io.StringIO, scrolls: bool) -> None:
    clock = SimulatedClock()
    with ProgressDisplay("Sent", None, stream, clock, scrolls) as progress:
        clock.advance(5000)
        progress.advance()
    assert stream.getvalue() == ""


def test_progress_can_jump_and_begin_anew() -> None:
    clock, stream = SimulatedClock(), Terminal()
    with ProgressDisplay("Checked", None, stream, clock) as progress:
        clock.advance(1000)
        progress.advance_to(10_000)
        assert "Checked 10,000, " in stream.getvalue()
        clock.advance(1000)
        progress.advance_to(5)
        assert "Checked 5, " in stream.getvalue()
