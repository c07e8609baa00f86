"""A server with accounts that serves the probe over TCP, and a victim who calls it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import PKT_PRIVACY, Credentials
from tests.support.accounts import TestAccounts
from tests.support.rpc.probe import ProbeHandlers, ProbeInterface, ProbeRequest
from tests.support.rpc.rpc_server import RunningServer, serving

PROBE: Any = ProbeInterface()


@pytest.fixture
def handlers() -> ProbeHandlers:
    return ProbeHandlers()


@pytest.fixture
def server(tmp_path: Path, handlers: ProbeHandlers) -> Iterator[RunningServer]:
    with serving((PROBE, handlers), accounts=TestAccounts(tmp_path), epm_port=None) as running:
        yield running


def call(
    server: RunningServer, credentials: Credentials, level: AuthenticationLevel = PKT_PRIVACY
) -> bytes:
    """The answer to a call as the victim."""

    async def main() -> bytes:
        async with (
            asyncio.timeout(20),
            await RpcClient.connect_tcp(
                "127.0.0.1", server.port, credentials=credentials, level=level
            ) as client,
        ):
            binding = await client.bind(PROBE)
            answer = await binding.call("echo", ProbeRequest(octets=b"x"))
            return bytes(answer.octets)

    return asyncio.run(main())
