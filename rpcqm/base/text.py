"""Texts from outside, made fit to be shown to people."""

SHOWN_CHARACTERS = 256
"""As much of a text as a line of the log or an error tells."""


def cut(text: str) -> str:
    """The beginning of a long text, with its length; a short one as it is."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}… ({len(text):,} characters)"


def visible(text: str) -> str:
    """The text with an escape for each character that moves the cursor, hides or reorders others.

    These are the controls (C0, C1), the separators of lines and paragraphs, and the marks that
    change the direction of writing, as well as everything else that Unicode does not print.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def wide_length(text: str) -> int:
    """How many UTF-16 characters a text takes, without a null character."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
