"""Settings that are lists: of texts, or of tables with `from` and `to`."""

from typing import Protocol

from rpcqm.config.schema import Setting
from rpcqm.config.urls import check_pattern
from rpcqm.config.values import Mistake, closest, shown, unknown
from rpcqm.srmp.settings import Redirection

MAXIMUM_ITEMS = 500
"""Items of a list in a configuration file, such as the maps of `[srmp]`.

Each message may be compared with all of them.

Bound `file.list_items` [items]: the file is refused in one sentence.
"""

_FORM = {
    str: "a list of texts",
    Redirection: "a list of tables with `from` and `to`",
}
_ENDS = ("from", "to")


class Place(Protocol):
    """Where a list stands, its item of a number, or a key of that."""

    def __call__(self, *parts: str) -> str: ...


class ListReader:
    """Reads the list of one setting; `mistakes` are those that it has found."""

    def __init__(self, setting: Setting, place: Place) -> None:
        self._setting = setting
        self._place = place
        self.mistakes: list[Mistake] = []

    def read(self, value: object) -> tuple[object, ...]:
        """The items in their final types, without those that are wrong."""
        name, item = self._setting.key, self._setting.item or str
        if not isinstance(value, list):
            self._complain(f"`{name}` is {_FORM[item]}, not {shown(value)}.")
            return ()
        if len(value) > MAXIMUM_ITEMS:
            self._complain(f"`{name}` has more than {MAXIMUM_ITEMS} items.")
            return ()
        if item is str:
            texts = [self._text(name, each, str(at)) for at, each in enumerate(value)]
            return tuple(each for each in texts if each is not None)
        found = [self._redirection(each, str(at)) for at, each in enumerate(value)]
        return tuple(self._once([each for each in found if each is not None]))

    def _text(self, name: str, value: object, *place: str) -> str | None:
        if not isinstance(value, str):
            self._complain(f"`{name}` is a text, not {shown(value)}.", *place)
            return None
        check = self._setting.about.check if self._setting.item is str else check_pattern
        try:
            if check is not None:
                check(value)
        except ValueError as error:
            self._complain(f"`{name}` is {shown(value)}, {error}.", *place)
            return None
        return value

    def _redirection(self, value: object, at: str) -> Redirection | None:
        name = self._setting.key
        if not isinstance(value, dict):
            self._complain(f"`{name}` is a table; write [[{name}]].", at)
            return None
        for key in value:
            if key not in _ENDS:
                known = closest(f"{name}.{key}", (f"{name}.{end}" for end in _ENDS))
                self._complain(unknown("setting", f"{name}.{key}", known), at, key)
        for end in _ENDS:
            if end not in value:
                self._complain(f"`{name}` lacks `{end}`.", at)
        ends = [self._text(f"{name}.{end}", value[end], at, end) for end in _ENDS if end in value]
        if len(ends) < len(_ENDS) or ends[0] is None or ends[1] is None:
            return None
        if ends[1].endswith("*") and not ends[0].endswith("*"):
            self._complain(f"`{name}.to` has a `*`, but its `from` has none.", at, "to")
        return Redirection(ends[0], ends[1])

    def _once(self, found: list[Redirection]) -> list[Redirection]:
        """Complain of what an earlier table makes useless: the first that fits counts."""
        seen: set[str] = set()
        for at, each in enumerate(found):
            key = each.from_url.casefold()
            if key in seen and not self.mistakes:
                name = f"{self._setting.key}.from"
                self._complain(f"`{name}` is there twice: {shown(each.from_url)}.", str(at), "from")
            seen.add(key)
        return found

    def _complain(self, text: str, *place: str) -> None:
        self.mistakes.append(Mistake(self._place(*place), text))
