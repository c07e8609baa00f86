"""A long table a page at a time: which rows it has, and links to the pages around it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rpcqm.console.asked import Asked
from rpcqm.console.forms import link

ROWS = 50
"""Of a page of a table."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Paged(Generic[T]):
    """Some rows of `total`; the links are "" where there is no such page."""

    rows: Sequence[T]
    number: int
    pages: int
    total: int
    first: str
    before: str
    after: str
    last: str


def paged(
    asked: Asked, path: str, rows: Sequence[T], name: str = "page", keep: Sequence[str] = ()
) -> Paged[T]:
    """The page that the field `name` of the query says, or the last one if there are fewer.

    Links keep the fields `keep`, which are those of the page's other tables and of its forms.
    """
    pages = max(1, -(-len(rows) // ROWS))
    number = min(max(1, asked.query.number(name, 1)), pages)
    kept = {each: asked.query.text(each) for each in keep if each != name}

    def to(page: int) -> str:
        return link(path, **kept, **{name: page})

    return Paged(
        rows[(number - 1) * ROWS : number * ROWS],
        number,
        pages,
        len(rows),
        first=to(1) if number > 2 else "",
        before=to(number - 1) if number > 1 else "",
        after=to(number + 1) if number < pages else "",
        last=to(pages) if number < pages - 1 else "",
    )
