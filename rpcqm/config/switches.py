"""The switches: settings that lower safety for the sake of older peers."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

from rpcqm.config.schema import Configuration, Setting, settings


def switches() -> Iterator[Setting]:
    """Every setting that lowers safety, in the order of the documentation."""
    return (setting for setting in settings() if setting.about.opens)


def switches_on(configuration: Configuration) -> list[Setting]:
    """The switches that are not at their defaults, or at the value that opens something."""
    usual = Configuration()

    def is_on(setting: Setting) -> bool:
        value, opens_at = value_of(configuration, setting), setting.about.opens_at
        return bool(value == opens_at if opens_at else value != value_of(usual, setting))

    return [each for each in switches() if is_on(each)]


def value_of(configuration: Configuration, setting: Setting) -> Any:
    """What a setting is in a configuration."""
    return reduce(getattr, setting.path, configuration)
