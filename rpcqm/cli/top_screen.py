"""The screen of `rpcqm top`."""

import argparse
import asyncio
import contextlib
import signal
from typing import ClassVar, Literal

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.widgets import DataTable, Footer, Input, Static

from rpcqm.base.errors import DecodeError, MQError, RpcFault
from rpcqm.cli.errors import NoServer, explain
from rpcqm.cli.options import target
from rpcqm.cli.top_picture import MOST_ROWS, Looks, Picture, View, attention, cells, summary
from rpcqm.cli.top_tables import NAMES, TABLES, Flight, cells_of, tabs
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import ServerUnreachableError

COLUMNS = (
    ("name", "QUEUE", 0),
    ("messages", "MESSAGES", 11),
    ("size", "SIZE", 11),
    ("in", "IN/s", 9),
    ("out", "OUT/s", 9),
    ("oldest", "OLDEST", 12),
    ("waiting", "WAIT", 6),
)
"""Order, heading and width of each column; the first one has the rest of the screen."""
SORT_KEYS = {
    "m": "messages",
    "z": "size",
    "i": "in",
    "o": "out",
    "a": "oldest",
    "w": "waiting",
    "n": "name",
}
"""The keys that sort at once."""
NARROWEST_NAME = 16
ATTENTION_LINES = 4


class TopScreen(App[None]):
    """Looks again and again, and draws what it sees; it ends with the key `q`.

    `looks` counts the answers that came, `picture` is the last one that is shown.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #summary, #attention, #tables { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    #trouble { height: auto; color: $text-error; }
    #queues { height: 1fr; }
    #filter { display: none; height: 1; border: none; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "Quit", key_display="q"),
        # Before the table has it: keys that come with it in one piece belong to the filter.
        Binding("slash", "filter", "Filter", key_display="/", priority=True),
        Binding("escape", "unfilter", "All", key_display="Esc"),
        Binding("s", "sort_next", "Sort"),
        Binding("r", "reverse", "Reverse"),
        Binding("t", "next_table", "Table"),
        Binding("space", "hold", "Stop", key_display="space"),
        *(
            Binding(str(number), f"table('{name}')", show=False)
            for number, name in enumerate(NAMES, 1)
        ),
        *(Binding(key, f"sort('{order}')", show=False) for key, order in SORT_KEYS.items()),
    ]

    def __init__(self, arguments: argparse.Namespace, picture: Picture, view: View) -> None:
        super().__init__()
        self._arguments = arguments
        self._interval = arguments.interval / 1000
        self.picture = picture
        self._view = view
        self._held = False
        self._wanted = asyncio.Event()
        self.looks = 0

    def compose(self) -> ComposeResult:
        """The parts of the screen, from top to bottom."""
        yield Static(id="summary")
        yield Static(id="attention")
        yield Static(id="trouble")
        yield Static(id="tables")
        yield DataTable(id="queues", cursor_type="none", cell_padding=0)
        yield Input(self._view.pattern, placeholder="part of a queue's name", id="filter")
        yield Footer()

    def on_mount(self) -> None:
        """Draw what was seen first, and begin to look."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            # So that the terminal is given back; in a thread of a test there are no signals.
            with contextlib.suppress(RuntimeError, ValueError):
                loop.add_signal_handler(number, self.exit)
        self.table.focus()
        self._draw()
        self.run_worker(self._watch(), exit_on_error=True)

    def on_resize(self) -> None:
        """Let the names have the width that is there now."""
        self.call_after_refresh(self._draw_if_there)

    @property
    def table(self) -> "DataTable[Text]":
        """The table of queues."""
        return self.query_one(DataTable)

    async def _watch(self) -> None:
        """Look until the program ends; each connection lasts as long as it can."""
        while True:
            try:
                async with QueueManagerClient(target(self._arguments)) as client:
                    await self._look_on(client)
            except (ServerUnreachableError, NoServer):
                self._tell("No queue manager answers: this is the last picture. Trying again.")
            except (MQError, RpcFault, DecodeError) as error:
                self._tell(explain(error, "It cannot be told what happens"))
            await asyncio.sleep(self._interval)

    async def _look_on(self, client: QueueManagerClient) -> None:
        looks = Looks(client, self.picture.status)
        while True:
            self._wanted.clear()
            picture = await looks.look(self._view.tables.shown != "queues")
            self.looks += 1
            if not self._held:
                self.picture = picture
                self._tell("")
                self._draw_if_there()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._interval)

    def _tell(self, trouble: str) -> None:
        with contextlib.suppress(NoMatches):  # as below
            place = self.query_one("#trouble", Static)
            place.update(Text(trouble))
            place.display = bool(trouble)

    def _draw_if_there(self) -> None:
        # An answer may come while the screen is taken down, which has no parts any more.
        with contextlib.suppress(NoMatches):
            self._draw()

    def _draw(self) -> None:
        lines = summary(self.picture)
        if self._held:
            lines[0] += " (stopped: the space bar goes on)"
        self.query_one("#summary", Static).update(_lines([(line, "") for line in lines]))
        urgent = attention(self.picture, ATTENTION_LINES)
        shown = [
            (f"{'!' if bad else '-'} {text}", "bold red" if bad else "") for text, bad in urgent
        ]
        place = self.query_one("#attention", Static)
        place.update(_lines(shown))
        place.display = bool(shown)
        line = tabs(self.picture.flight, self.picture.overview, self._view.tables.shown)
        self.query_one("#tables", Static).update(_lines([(line, "bold")]))
        self._draw_table()

    def _draw_table(self) -> None:
        """Put the rows into the table; it stays where it was scrolled to."""
        table = self.table
        left, top = table.scroll_offset
        table.clear(columns=True)
        if self._view.tables.shown == "queues":
            self._draw_queues()
        elif self.picture.flight is not None:
            self._draw_flight(self.picture.flight)
        table.scroll_to(left, top, animate=False)

    def _name_width(self, others: int) -> int:
        """What is left for the names beside the other columns."""
        return max(self.size.width - others - 2, NARROWEST_NAME)

    def _draw_flight(self, flight: Flight) -> None:
        table, tables = self.table, self._view.tables
        columns, order = TABLES[tables.shown], tables.orders[tables.shown]
        width = self._name_width(sum(each.width for each in columns))
        for number, column in enumerate(columns):
            mark = ("▼" if order.reverse else "▲") if number == order.column else ""
            heading = Text(f"{column.heading}{mark}", justify=_side(column.is_number))
            table.add_column(heading, width=column.width or width)
        for row in cells_of(flight, tables, self._view.pattern):
            cells_and_columns = zip(row, columns, strict=True)
            table.add_row(
                *(
                    Text(text, justify="right")
                    if each.is_number
                    else Text(fitted(text, (each.width or width) - 1))
                    for text, each in cells_and_columns
                )
            )

    def _draw_queues(self) -> None:
        table = self.table
        width = self._name_width(sum(each for _, _, each in COLUMNS))
        for order, heading, columns in COLUMNS:
            table.add_column(self._heading(order, heading), width=columns or width)
        chosen = self._view.chosen(self.picture)
        for row in chosen[:MOST_ROWS]:
            name, *numbers = cells(self.picture, row)
            shown = Text(fitted(name, width - 1))
            table.add_row(shown, *(Text(text, justify="right") for text in numbers))
        if len(chosen) > MOST_ROWS:
            table.add_row(Text(f"… and {len(chosen) - MOST_ROWS:,} more: /"))

    def _heading(self, order: str, heading: str) -> Text:
        mark = ("▲" if self._view.reverse else "▼") if order == self._view.order else ""
        return Text(f"{heading}{mark}", justify="left" if order == "name" else "right")

    @property
    def _shows_queues(self) -> bool:
        return self._view.tables.shown == "queues"

    def action_table(self, name: str) -> None:
        """Show another table; what is not known yet is asked for at once."""
        self._view.tables.shown = name
        self._wanted.set()
        self.table.scroll_to(0, 0, animate=False)
        self._draw()

    def action_next_table(self) -> None:
        """Show the table after this one."""
        self.action_table(NAMES[(NAMES.index(self._view.tables.shown) + 1) % len(NAMES)])

    def action_sort(self, order: str) -> None:
        """Sort the queues by another column."""
        if self._shows_queues:
            self._view.sort_by(order)
            self._draw()

    def action_sort_next(self) -> None:
        """Sort by the next column."""
        if self._shows_queues:
            self._view.sort_by_next()
        else:
            self._view.tables.sort_by_next()
        self._draw()

    def action_reverse(self) -> None:
        """Turn the order round."""
        if self._shows_queues:
            self._view.reverse = not self._view.reverse
        else:
            self._view.tables.turn_round()
        self._draw()

    def action_hold(self) -> None:
        """Keep the picture as it is, or go on."""
        self._held = not self._held
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Whether a key does something now: `/` belongs to the filter while that is written."""
        return action != "filter" or not isinstance(self.focused, Input)

    def action_filter(self) -> None:
        """Ask which queues are wanted."""
        asked = self.query_one(Input)
        asked.display = True
        # At once: `focus` would let keys that come meanwhile sort the table.
        self.screen.set_focus(asked)

    def action_unfilter(self) -> None:
        """Show all queues again."""
        self.query_one(Input).value = ""
        self._leave_filter()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        self._view.pattern = event.value
        self._draw()

    def on_input_submitted(self) -> None:
        """Keep the filter."""
        self._leave_filter()

    def _leave_filter(self) -> None:
        self.query_one(Input).display = False
        self.screen.set_focus(self.table)


def fitted(text: str, width: int) -> str:
    """The text in so many cells: of a longer one its ends, by which long names differ."""
    if cell_len(text) <= width:
        return text
    end = (width - 1) // 2
    first, last = set_cell_size(text, width - 1 - end), set_cell_size(text[::-1], end)[::-1]
    return f"{first.rstrip()}…{last.lstrip()}"


def _side(is_number: bool) -> Literal["left", "right"]:
    return "right" if is_number else "left"


def _lines(lines: list[tuple[str, str]]) -> Text:
    """Lines with their styles, each cut where the screen ends; nothing in them is markup."""
    text = Text()
    for number, (line, style) in enumerate(lines):
        text.append("\n" if number else "").append(line, style or None)
    return text
