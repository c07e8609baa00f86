"""Texts in buffers whose lengths count UTF-16 characters."""


def fitted(text: str, size: int) -> str:
    """The text cut, or filled up with null characters, to `size` UTF-16 characters."""
    if text.isascii():
        return text[:size].ljust(size, "\0")
    raw = text.encode("utf-16-le", "surrogatepass")[: 2 * size].ljust(2 * size, b"\0")
    return raw.decode("utf-16-le", "surrogatepass")


def until_null(text: str) -> str:
    """The text before its first null character."""
    return text.partition("\0")[0]
