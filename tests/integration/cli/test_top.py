"""`rpcqm top`, in a terminal, in a test's own screen, and as plain text."""

import argparse
import asyncio
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.events import Key
from textual.widgets import DataTable, Input, Static

from rpcqm.cli.main import build_parser
from rpcqm.cli.top_picture import MOST_ROWS, Looks, Picture, View
from rpcqm.cli.top_screen import TopScreen, fitted
from rpcqm.cli.top_tables import Tables
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program

SECONDS = 60
HOSTILE = ("[bold red]x[/bold red]", "[nobody", "[@click=app.quit]quit")
QUEUES = {"orders": 3, "bills": 1, "empty": 0}


@pytest.fixture(scope="module")
def served() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as running:
        for name in (*QUEUES, *HOSTILE):
            running.run("queue", "create", name)
        for name, count in QUEUES.items():
            if count:
                running.run("send", name, "--body", "x", "--count", str(count))
        yield running


def arguments_for(running: PrivateQueueManager, *words: str) -> argparse.Namespace:
    words = ("top", "--interval", "100", "--data-dir", str(running.data_dir), *words)
    return build_parser(words).parse_args(words)


def first_picture(running: PrivateQueueManager) -> Picture:
    with running.client() as client:
        return client.run(Looks(client.wrapped).look())


def screen_of(running: PrivateQueueManager, *words: str) -> TopScreen:
    arguments = arguments_for(running, *words)
    view = View(arguments.sort, arguments.pattern or "", tables=Tables(arguments.table))
    return TopScreen(arguments, first_picture(running), view)


def names(screen: TopScreen) -> list[str]:
    table = screen.table
    shown = [table.get_row_at(number)[0].plain for number in range(table.row_count)]
    return [name for name in shown if "system$" not in name]


def text_of(screen: TopScreen, place: str) -> str:
    return str(screen.query_one(place, Static).content)


async def until(pilot: Any, is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < give_up
        await pilot.pause(0.01)


def test_the_keys_sort_filter_and_quit(served: PrivateQueueManager) -> None:
    async def walk() -> int | None:
        screen = screen_of(served)
        async with screen.run_test(size=(100, 24)) as pilot:
            assert names(screen)[:2] == ["orders", "bills"]
            await pilot.press("n")
            assert names(screen) == sorted((*QUEUES, *HOSTILE), key=str.casefold)
            await pilot.press("r")
            assert names(screen)[0] == "orders"
            await pilot.press("s")  # after the name it begins again with the messages
            assert names(screen)[:2] == ["orders", "bills"]
            await pilot.press("slash", *"ILL")
            await until(pilot, lambda: names(screen) == ["bills"])
            await pilot.press("enter", "q")
        return screen.return_code

    assert asyncio.run(walk()) == 0


def test_what_is_typed_fast_goes_into_the_filter(served: PrivateQueueManager) -> None:
    async def walk() -> None:
        screen = screen_of(served)
        async with screen.run_test(size=(80, 24)) as pilot:
            screen.action_filter()
            # Before anything else is handled.
            assert isinstance(screen.focused, Input)
            await pilot.press("escape")
            assert isinstance(screen.focused, DataTable)

    asyncio.run(walk())


def test_keys_that_come_in_one_piece_go_into_the_filter(served: PrivateQueueManager) -> None:
    async def walk() -> None:
        screen = screen_of(served)
        async with screen.run_test(size=(80, 24)) as pilot:
            for key in "/bill/":  # as from a slow connection; only the first one is a command
                screen.post_message(Key("slash" if key == "/" else key, key))
            await until(pilot, lambda: screen.query_one(Input).value == "bill/")

    asyncio.run(walk())


def test_long_names_differ_in_a_small_terminal(served: PrivateQueueManager) -> None:
    long = [f"orders-of-the-north-{number:02}" for number in range(2)]
    for name in long:
        served.run("queue", "create", name)

    async def walk() -> list[str]:
        screen = screen_of(served, "orders-of*")
        async with screen.run_test(size=(80, 24)):
            return names(screen)

    shown = asyncio.run(walk())
    for name in long:
        served.run("queue", "delete", name)
    assert shown == ["orders-of…-north-00", "orders-of…-north-01"]


def test_a_long_name_is_as_wide_as_its_place() -> None:
    assert fitted("待ち行列の名前", 14) == "待ち行列の名前"
    assert fitted("待ち行列の名前", 13) == "待ち行…の名前"
    assert fitted("待ち行列の名前", 10) == "待ち…名前"
    assert max(cell_len(fitted("行x" * 20, width)) - width for width in range(3, 60)) <= 0


def test_queues_that_are_not_shown_are_counted(served: PrivateQueueManager) -> None:
    async def walk() -> list[str]:
        screen = screen_of(served)
        async with screen.run_test(size=(80, 24)) as pilot:
            await pilot.press("space")
            row = screen.picture.queues[0]
            screen.picture.queues[:] = [row] * (MOST_ROWS + 1234)
            await pilot.press("n")
            return names(screen)

    assert asyncio.run(walk())[MOST_ROWS:] == ["… and 1,234 more: /"]


def test_escape_shows_all_queues_again(served: PrivateQueueManager) -> None:
    async def walk() -> None:
        screen = screen_of(served, "bill*")
        async with screen.run_test(size=(80, 24)) as pilot:
            assert names(screen) == ["bills"]
            await pilot.press("slash", *"quiz")  # letters there, no key that ends it
            await until(pilot, lambda: names(screen) == [])
            await pilot.press("escape")
            await until(pilot, lambda: len(names(screen)) == len(QUEUES) + len(HOSTILE))
            assert not screen.query_one(Input).display

    asyncio.run(walk())


def test_what_looks_like_markup_is_shown_as_it_is(served: PrivateQueueManager) -> None:
    async def walk() -> None:
        screen = screen_of(served)
        async with screen.run_test(size=(100, 24)) as pilot:
            await pilot.pause()
            assert set(HOSTILE) <= set(names(screen))

    asyncio.run(walk())


def test_the_picture_is_live_and_stops_while_the_user_reads(served: PrivateQueueManager) -> None:
    async def walk() -> None:
        screen = screen_of(served, "--sort", "name")
        async with screen.run_test(size=(80, 24)) as pilot:
            table = screen.table

            def count() -> str:
                rows = [table.get_row_at(number) for number in range(table.row_count)]
                return next(str(cells[1]) for cells in rows if cells[0].plain == "empty")

            assert count() == "0"
            await asyncio.to_thread(served.run, "send", "empty", "--body", "x")
            await until(pilot, lambda: count() == "1")
            assert "5 in " in text_of(screen, "#summary")
            await pilot.press("space")
            assert "stopped" in text_of(screen, "#summary")
            await asyncio.to_thread(served.run, "receive", "empty")
            looks = screen.looks
            await until(pilot, lambda: screen.looks > looks + 1)
            assert count() == "1"
            await pilot.press("space")
            await until(pilot, lambda: count() == "0")

    asyncio.run(walk())


def test_it_goes_on_when_the_queue_manager_has_been_started_again() -> None:
    async def walk(running: PrivateQueueManager) -> None:
        screen = screen_of(running)
        async with screen.run_test(size=(80, 24)) as pilot:
            await asyncio.to_thread(running.kill)
            await until(pilot, lambda: "No queue manager answers" in text_of(screen, "#trouble"))
            assert names(screen) == ["orders"]
            await asyncio.to_thread(running.start)
            await asyncio.to_thread(running.run, "queue", "create", "later")
            await until(pilot, lambda: "later" in names(screen))
            assert not screen.query_one("#trouble").display

    with private_queue_manager() as running:
        running.run("queue", "create", "orders")
        asyncio.run(walk(running))


def test_it_fits_a_small_terminal_with_many_troubles(served: PrivateQueueManager) -> None:
    async def walk() -> None:
        screen = screen_of(served)
        trouble = {"text": "Something is wrong. " * 9, "urgent": True, "code": "x", "target": "/"}
        async with screen.run_test(size=(80, 24)) as pilot:
            await pilot.press("space")  # so that no answer takes the troubles away
            screen.picture.overview["attention"] = [trouble] * 9
            await pilot.press("n")
            assert text_of(screen, "#attention").count("\n") == 3
            assert "… and 6 more" in text_of(screen, "#attention")
            table = screen.query_one(DataTable)
            assert table.size.height >= 10
            assert table.virtual_size.width <= 80

    asyncio.run(walk())


@pytest.fixture(scope="module")
def ann(served: PrivateQueueManager) -> str:
    words = ("user", "add", "ann", "--group", "administrators", "--password-stdin")
    served.run(*words, input="secret\n")
    return "ann"


@pytest.fixture
def holder(served: PrivateQueueManager, ann: str) -> Iterator[Program]:
    """Somebody who holds a message of each of two queues."""
    program = Program(served.endpoint("console"), ann)
    for name in ("held", "taken"):
        program.ask("POST", "/queues", {"name": name})
        program.ask("POST", f"/queues/{name}/messages", b"x")
        answer = program.ask("POST", f"/queues/{name}/receive?lease=600")
        assert len(answer.value["messages"]) == 1
    yield program
    program.ask("DELETE", "/queues/held")
    program.ask("DELETE", "/queues/taken")
    program.close()


def rows(screen: TopScreen) -> list[list[str]]:
    table = screen.table
    return [[str(cell) for cell in table.get_row_at(number)] for number in range(table.row_count)]


def test_keys_show_who_holds_what(served: PrivateQueueManager, holder: Program) -> None:
    async def walk() -> None:
        screen = screen_of(served)
        async with screen.run_test(size=(80, 24)) as pilot:
            assert "[1 queues" in text_of(screen, "#tables")
            await pilot.press("2")
            await until(pilot, lambda: [row[:2] for row in rows(screen)] != [])
            assert sorted(row[0] for row in rows(screen)) == ["held", "taken"]
            assert {row[1] for row in rows(screen)} == {"ann"}
            assert "[2 leases (2)]" in text_of(screen, "#tables")
            assert screen.table.virtual_size.width <= 80
            await pilot.press("slash", *"tak", "enter")
            await until(pilot, lambda: [row[0] for row in rows(screen)] == ["taken"])
            await pilot.press("escape")
            await pilot.press("s", "s", "s")  # past the ends and the deliveries to the queues
            await until(pilot, lambda: [row[0] for row in rows(screen)] == ["held", "taken"])
            await pilot.press("r")
            await until(pilot, lambda: [row[0] for row in rows(screen)] == ["taken", "held"])
            await pilot.press("3")
            await until(pilot, lambda: rows(screen) == [])
            await pilot.press("t", "t")
            await until(pilot, lambda: "held" in names(screen))

    asyncio.run(walk())


def test_a_table_is_plain_text(served: PrivateQueueManager, holder: Program) -> None:
    said = served.run("top", "--once", "--interval", "100", "--table", "leases").stdout
    assert re.search(r"(?m)^QUEUE .*\n(held|taken) +ann ", said)
    assert "\x1b" not in said


def test_an_answer_that_comes_while_the_screen_is_taken_down_does_no_harm(
    served: PrivateQueueManager,
) -> None:
    async def walk() -> int | None:
        screen = screen_of(served)
        async with screen.run_test(size=(80, 24)) as pilot:
            await screen.screen.remove_children()
            looks = screen.looks
            await until(pilot, lambda: screen.looks > looks + 1)
            await pilot.press("q")
        return screen.return_code

    assert asyncio.run(walk()) == 0


# In a terminal, and without one


@contextlib.contextmanager
def in_terminal(*words: str) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """A command whose terminal has 24 lines of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "rpcqm", *words]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as process:
        os.close(theirs)
        try:
            yield ours, process
        finally:
            process.kill()
            os.close(ours)


def read_until(terminal: int, wanted: bytes) -> bytes:
    """What a terminal has got when it has got `wanted`, or when the command has ended."""
    got, give_up = b"", time.monotonic() + SECONDS
    while wanted not in got:
        assert time.monotonic() < give_up, got
        if select.select([terminal], [], [], 1)[0]:
            try:
                got += os.read(terminal, 65536)
            except OSError:
                return got
    return got


def test_it_takes_a_terminal_and_gives_it_back(served: PrivateQueueManager) -> None:
    with in_terminal("top", "--data-dir", str(served.data_dir)) as (terminal, process):
        seen = read_until(terminal, b"orders")
        assert b"\x1b[?1049h" in seen
        os.write(terminal, b"q")
        assert b"\x1b[?1049l" in read_until(terminal, b"\x1b[?1049l")
        assert process.wait(SECONDS) == 0


def test_a_signal_that_ends_it_gives_the_terminal_back(served: PrivateQueueManager) -> None:
    with in_terminal("top", "--data-dir", str(served.data_dir)) as (terminal, process):
        read_until(terminal, b"orders")
        process.terminate()
        assert b"\x1b[?1049l" in read_until(terminal, b"\x1b[?1049l")
        process.wait(SECONDS)


def test_without_a_queue_manager_it_is_one_sentence(tmp_path: Path) -> None:
    with in_terminal("top", "--data-dir", str(tmp_path)) as (terminal, process):
        said = read_until(terminal, b"\n")
        assert process.wait(SECONDS) == 3
    assert b"No queue manager runs on" in said
    assert b"\x1b[" not in said


@pytest.mark.parametrize("words", [(), ("--once",)], ids=["pipe", "once"])
def test_one_picture_is_plain_text(served: PrivateQueueManager, words: tuple[str, ...]) -> None:
    said = served.run("top", "--interval", "100", *words).stdout
    assert "\x1b" not in said
    assert re.search(r"(?m)^Messages +4 in 6 queues", said)
    assert re.search(r"(?m)^QUEUE .*\n\S*\\private\$\\orders +3 ", said)


def test_textual_is_loaded_for_a_terminal_only() -> None:
    program = (
        "import sys, rpcqm.cli.main as m; m.build_parser(['top']); print('textual' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
