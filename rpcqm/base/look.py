"""The common look of pages in a browser: the console's pages and the jobs' reports."""

from pathlib import Path

LOOK = Path(__file__).parent / "look.css"
ICON = Path(__file__).parent / "icon.svg"


def style() -> str:
    """The style sheet; it loads nothing from elsewhere."""
    return LOOK.read_text("utf-8")
