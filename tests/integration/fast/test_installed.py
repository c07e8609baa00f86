"""The service gives each door what the fast room has for it."""

import asyncio
from pathlib import Path
from typing import Any

from rpcqm.config import Configuration
from rpcqm.config.dcom_section import DcomSection
from rpcqm.config.schema import StorageSection
from rpcqm.fast.doors import com
from rpcqm.fast.doors.session_arrivals import ArrivalBatches
from rpcqm.fast.doors.session_outgoing_runs import OutgoingRuns
from rpcqm.fast.doors.srmp import RepeatedPosts, RepeatedWriter
from rpcqm.service.queue_manager_service import QueueManagerService


def test_each_door_has_its_seams_set(tmp_path: Path) -> None:
    configuration = Configuration(
        data_dir=tmp_path / "data",
        epm_port=0,
        rpc_port=0,
        qm2qm_port=-1,
        binary_port=0,
        http_port=0,
        dcom_port=0,
        dcom=DcomSection(enabled=True),
        storage=StorageSection(reserve=1),
    )
    service: Any = QueueManagerService(configuration)
    asyncio.run(_looked_at(service))


async def _looked_at(service: Any) -> None:
    await service.start()
    try:
        sessions, posts = service._binary.protocol, service._srmp.protocol
        assert isinstance(sessions.take_together.__self__, ArrivalBatches)
        assert isinstance(sessions.sending.together, OutgoingRuns)
        assert isinstance(posts.receiver.read_envelope.__self__, RepeatedPosts)
        assert isinstance(posts.receiver.packet_of.__self__, RepeatedPosts)
        assert isinstance(posts.posting.writer().__self__, RepeatedWriter)
        assert service._dcom.calls.shorten is com.shorten
    finally:
        await service.stop()
