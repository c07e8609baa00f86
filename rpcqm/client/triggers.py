"""Rules of triggers, through the administration interface of a queue manager."""

import json
from typing import Any

from rpcqm.client.connection import Connections
from rpcqm.codec.trigger_report import Answer, Report, encode_report, read_answer
from rpcqm.codec.trigger_rule import TriggerRule, encode_rule
from rpcqm.codec.types import rpcqm_admin

REPORT_LIMIT = 5.0
"""Seconds after which a queue manager that does not answer a report counts as absent."""


class TriggersClient:
    """What is to be done for messages; for administrators on the same machine."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def add(self, rule: TriggerRule) -> None:
        """Make a rule."""
        await self._connections.call(rpcqm_admin.R_AddTriggerRequest(pwszRule=_text(rule)))

    async def set(self, rule: TriggerRule, version: str = "") -> None:
        """Change the rule of that name, if it still has the `version` that `list` has shown.

        Raises MQError(MQ_ERROR_SHARING_VIOLATION) if somebody has changed it meanwhile.
        """
        members = encode_rule(rule) | ({"version": version} if version else {})
        request = rpcqm_admin.R_SetTriggerRequest(pwszRule=json.dumps(members))
        await self._connections.call(request)

    async def remove(self, name: str) -> None:
        """Forget a rule; what runs for it goes on to its end."""
        await self._connections.call(rpcqm_admin.R_RemoveTriggerRequest(pwszName=name))

    async def list(self) -> dict[str, Any]:
        """The rules with how they do under `triggers`, and who runs them under `service`."""
        response = await self._connections.call(rpcqm_admin.R_ListTriggersRequest())
        told: dict[str, Any] = json.loads(response.ppwszTriggers or "{}")
        return told

    async def report(self, report: Report) -> Answer:
        """Tell how the rules do, as the service that runs them, and get them if they changed."""
        request = rpcqm_admin.R_ReportTriggersRequest(pwszReport=encode_report(report))
        response = await self._connections.call(request, REPORT_LIMIT)
        return read_answer(response.ppwszAnswer or "")


def _text(rule: TriggerRule) -> str:
    return json.dumps(encode_rule(rule))
