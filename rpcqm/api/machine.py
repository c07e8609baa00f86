"""The queue manager itself: its state, permissions and data, what it counts, what its codes mean."""

from dataclasses import asdict
from http import HTTPStatus

from rpcqm.api import models
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.problems import Refusal, bad_request
from rpcqm.base.errors import HResult
from rpcqm.base.text import iso_time
from rpcqm.codec.security.descriptor import SecurityDescriptor, SecurityInformation, parts_of
from rpcqm.codec.security.sddl import format_sddl, parse_sddl
from rpcqm.operations.codes import find_codes
from rpcqm.operations.shapes import described_happening
from rpcqm.operations.trail import EventKind
from rpcqm.qm.queue_status import QueueStatus

_PARTS = (
    SecurityInformation.OWNER_SECURITY_INFORMATION
    | SecurityInformation.GROUP_SECURITY_INFORMATION
    | SecurityInformation.DACL_SECURITY_INFORMATION
)
