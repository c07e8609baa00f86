"""Columns of text made of columns of numbers and octets."""

import binascii
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpcqm.capture.columnar.record_batch import Array, Buffer, gather

Text = Any
"""A pyarrow array of strings; pyarrow has no types."""

_DIGITS = b"0123456789abcdef"
_HEX = np.array([_DIGITS[n >> 4] | _DIGITS[n & 15] << 8 for n in range(256)], "<u2")
_GUID_ORDER = np.array([3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15])
_GUID_PLACES = np.array([n for n in range(36) if n not in (8, 13, 18, 23)])
_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
"""Odd factors with well mixed bits: rows that differ get equal products improbably."""


def arrow(numbers: Array) -> Any:
    """A column of numbers; pyarrow's own way would load pandas."""
    numbers = np.ascontiguousarray(numbers)
    made = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(made, len(numbers), [None, pa.py_buffer(numbers)])


def truths(values: Array) -> Any:
    """A column of truth values."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def strings(texts: Sequence[str]) -> Text:
    """A column of texts; pyarrow's own way would load pandas."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    data = pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), data)


@functools.lru_cache(maxsize=1024)  # pieces of JSON and names of methods come with every batch
def constant(text: str | None) -> Any:
    """One text for a whole column."""
    return (pa.nulls(1, pa.string()) if text is None else strings([text]))[0]


def codes(values: Array) -> tuple[Array, Any]:
    """For each number its index among the different numbers, and these as a column."""
    encoded = arrow(values).dictionary_encode()
    return np.frombuffer(encoded.indices.buffers()[1], np.int32, len(values)), encoded.dictionary


def octets_at(buffer: Buffer, places: Array, size: int) -> Array:
    """`size` octets at each place, as rows; they must be inside the buffer."""
    if not size:
        return np.zeros((len(places), 0), np.uint8)
    return gather(buffer, places, size).view(np.uint8).reshape(len(places), size)


def fixed(characters: Array) -> Text:
    """Rows of ASCII characters as strings of one length."""
    count, size = characters.shape
    return _of_one_length(pa.py_buffer(np.ascontiguousarray(characters)), count, size)


def _of_one_length(data: Any, count: int, size: int) -> Text:
    if count * size >= 1 << 31:  # Arrow has signed 32-bit offsets here
        raise ValueError(f"{count} strings of {size} characters are too many")
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(size)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), data)


def hexadecimal(octets: Array) -> Text:
    """Rows of octets as bytes.hex() has them."""
    count, size = octets.shape
    text = binascii.hexlify(np.ascontiguousarray(octets).data)
    return _of_one_length(pa.py_buffer(text), count, 2 * size)


def guid_text(octets: Array) -> Text:
    """Rows of 16 octets, in the order of the wire, as str(UUID) has them."""
    text = np.full((len(octets), 36), ord("-"), np.uint8)
    text[:, _GUID_PLACES] = np.ascontiguousarray(_HEX[octets[:, _GUID_ORDER]]).view(np.uint8)
    return fixed(text)


def decimal(numbers: Array) -> Text:
    """Numbers as str() has them."""
    return pc.cast(arrow(numbers), pa.string())


def joined(*parts: Text | str) -> Text:
    """Strings put together, element by element; at least one part is a column."""
    columns = (constant(part) if isinstance(part, str) else part for part in parts)
    return pc.binary_join_element_wise(*columns, constant(""))


def is_empty(texts: Text) -> Text:
    """Which texts are empty."""
    return pc.equal(texts, constant(""))


def instead(mask: Text, one: str | None, other: Text | str) -> Text:
    """`one` where the mask is true, `other` elsewhere."""
    texts = constant(other) if isinstance(other, str) else other
    return pc.if_else(mask, constant(one), texts)


def column(parts: Sequence[Text | str], count: int) -> Text:
    """Join texts as `joined` does, after joining neighbours that are constant."""
    merged: list[Text | str] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif not isinstance(part, str) or part:
            merged.append(part)
    if all(isinstance(part, str) for part in merged):
        return pa.repeat(constant("".join(merged)), count)
    return merged[0] if len(merged) == 1 else joined(*merged)


def named(numbers: Array, name: Callable[[int], str]) -> Text:
    """A text for each number; `name` is called once for each different number."""
    encoded = arrow(numbers).dictionary_encode()
    names = [name(each) for each in encoded.dictionary.to_pylist()]
    return strings(names).take(encoded.indices)


def numbered(*columns: Array) -> tuple[Array, Array]:
    """Numbers for rows that are equal in all columns of integers, and the first row of each.

    Rows of different numbers differ; in the improbable case that equal numbers would hide a
    difference, every row has its own.
    """
    mixed = np.zeros(len(columns[0]), np.uint64)
    for each, factor in zip(columns, _MIX, strict=False):
        mixed = (mixed ^ each.astype(np.uint64)) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(29)
    code, _ = codes(mixed)
    first = np.empty(int(code.max()) + 1 if len(code) else 0, np.int64)
    first[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    if any((each != each[first][code]).any() for each in columns):
        code = first = np.arange(len(code))
    return code, first
