"""All targets, and how inputs are shared out."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import structlog

from tests.fuzz import (
    targets_automation,
    targets_binary,
    targets_calls,
    targets_captures,
    targets_codec,
    targets_directory,
    targets_files,
    targets_http,
    targets_initiator,
    targets_objects,
    targets_replica,
    targets_rpc,
    targets_security,
    targets_sessions,
    targets_shapes,
    targets_srmp,
)
from tests.fuzz.campaign import Campaign, Report
from tests.fuzz.target import Target

CRASHES = Path("var/fuzz")

TARGETS: Mapping[str, Target] = {
    each.name: each
    for each in (
        *targets_rpc.TARGETS,
        *targets_security.TARGETS,
        *targets_codec.TARGETS,
        *targets_files.TARGETS,
        *targets_directory.TARGETS,
        *targets_replica.TARGETS,
        *targets_captures.TARGETS,
        *targets_http.TARGETS,
        *targets_calls.TARGETS,
        *targets_binary.TARGETS,
        *targets_initiator.TARGETS,
        *targets_srmp.TARGETS,
        *targets_automation.TARGETS,
        *targets_objects.TARGETS,
        *targets_sessions.TARGETS,
        *targets_shapes.TARGETS,
    )
}


def inputs_of(names: Sequence[str], inputs: int) -> Mapping[str, int]:
    """How many inputs each target gets, at least `inputs` together."""
    whole = sum(TARGETS[name].share for name in names)
    return {name: -(-inputs * TARGETS[name].share // whole) for name in names}


@contextmanager
def silenced() -> Iterator[None]:
    """Without the logs: nobody reads what thousands of broken connections would write."""
    before = structlog.get_config()
    silent = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=silent, cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)


def fuzz(name: str, seed: int, inputs: int) -> Report:
    """One target to its end, in a process of its own."""
    with silenced():
        return Campaign(TARGETS[name], seed, CRASHES).run(inputs)
