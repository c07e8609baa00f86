"""What administrators see of the way to a next hop ([MS-MQMQ] 2.3.12.12, 2.3.12.25)."""

from rpcqm.adm.enums import ConnectionStatus
from rpcqm.binary.connection.line import Hop
from rpcqm.binary.session import SessionState

PROGRESS = {
    SessionState.WAITING_ECR_MSG: ConnectionStatus.IN_PROCESS,
    SessionState.WAITING_CPR_MSG: ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
    SessionState.OPEN: ConnectionStatus.ESTABLISHED,
}


def hop_text(hop: Hop) -> str:
    """A next hop as administrators see it."""
    return f"IP={hop.address}"
