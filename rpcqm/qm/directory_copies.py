"""Copies of directory objects, and changes of their attributes."""

from collections.abc import Iterable
from typing import TypeVar

from rpcqm.adm.directory import DIRECTORY_ATTRIBUTES, AttributeSortOrder
from rpcqm.adm.directory_object import DirectoryObject, Site
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.text import folded

T = TypeVar("T", bound=DirectoryObject)


def kind_of(element: DirectoryObject) -> type[DirectoryObject]:
    return next(kind for kind in DIRECTORY_ATTRIBUTES if isinstance(element, kind))


def copied(element: T) -> T:
    """A copy that may be changed."""
    return copied_with(element, None)


def copied_with(element: T, attributes: Iterable[str] | None) -> T:
    """A copy with the attributes listed, which the reader may change."""
    kind = kind_of(element)
    copy = type(element)()
    for name in DIRECTORY_ATTRIBUTES[kind] if attributes is None else attributes:
        value = getattr(element, name)
        setattr(copy, name, list(value) if isinstance(value, list) else value)
    copy.unsaid = element.unsaid
    if isinstance(copy, QueueManager) and isinstance(element, QueueManager):
        copy.addresses = list(element.addresses)
    if isinstance(copy, Queue) and isinstance(element, Queue):
        copy.queue_manager = element.queue_manager
    if isinstance(copy, Site) and isinstance(element, Site):
        copy.site_gate_collection = list(element.site_gate_collection)
    return copy


def with_changes(element: T, values: dict[str, object]) -> T:
    for name, value in values.items():
        setattr(element, name, value)
    element.unsaid -= values.keys()
    return element


def update_from(
    element: DirectoryObject, read: DirectoryObject, kept: frozenset[str] = frozenset()
) -> None:
    """Take over the directory's values of an object's attributes, in place (G139)."""
    for name in DIRECTORY_ATTRIBUTES[kind_of(read)]:
        if name not in kept and name not in read.unsaid:
            setattr(element, name, getattr(read, name))


def sort_key(order: AttributeSortOrder, element: DirectoryObject) -> tuple[str, object]:
    """Values of one attribute are of one type, but may be missing."""
    value = getattr(element, order.attribute)
    if isinstance(value, str):
        value = folded(value)
    return ("", "") if value is None else (type(value).__name__, value)
