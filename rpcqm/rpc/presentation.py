"""Presentation contexts: which interface a p_cont_id means, in which transfer syntax.

The rules are those of [MS-RPCE] 3.3.1.5.3 (bind-time features) and 3.3.1.5.6 (negotiation), with
the answers that Windows gives where the text leaves a choice: NDR64 is preferred where an
interface has it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from rpcqm.rpc.constants import BindTimeFeatures, ContextResult, ProviderReason
from rpcqm.rpc.pdu import ContextAnswer, ContextElement, SyntaxId

NDR = SyntaxId(UUID("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2)
NDR64 = SyntaxId(UUID("71710533-beba-4937-8319-b5dbef9ccc36"), 1)

FEATURE_PREFIX = UUID("6cb71c2c-9812-4540-0000-000000000000").bytes_le[:8]
SUPPORTED_FEATURES = (
    BindTimeFeatures.SecurityContextMultiplexingSupported
    | BindTimeFeatures.KeepConnectionOnOrphanSupported
)


class OfferedInterface(Protocol):
    """An interface that can be bound (`interface_registry.RegisteredInterface`).

    `tables` are its operations by transfer syntax, the preferred syntax first.
    """

    @property
    def syntax(self) -> SyntaxId: ...

    @property
    def tables(self) -> Mapping[SyntaxId, Sequence[Any]]: ...


class OfferedInterfaces(Protocol):
    """The interfaces that can be bound at one endpoint (`interface_registry.InterfaceSet`)."""

    def __iter__(self) -> Iterator[OfferedInterface]: ...

    def find(self, abstract_syntax: SyntaxId) -> OfferedInterface | None:
        """The interface with this major version, and at least this minor one."""


class PresentationError(Exception):
    """A proposal that no answer fits: bind_nak, or a fault after the bind."""

    def __init__(self, reason: str, limit: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.limit = limit


class PresentationContext:
    """One accepted context of one connection; `abstract_syntax` is what the client asked for."""

    __slots__ = ("abstract_syntax", "context_id", "interface", "operations", "transfer_syntax")

    def __init__(
        self,
        context_id: int,
        interface: OfferedInterface,
        transfer_syntax: SyntaxId,
        abstract_syntax: SyntaxId | None = None,
    ) -> None:
        self.abstract_syntax = abstract_syntax or interface.syntax
        self.context_id = context_id
        self.interface = interface
        self.transfer_syntax = transfer_syntax
        self.operations = interface.tables[transfer_syntax]


def proposed_features(element: ContextElement) -> BindTimeFeatures | None:
    """The features that an element proposes, or None for an ordinary element."""
    if not element.transfer_syntaxes:
        return None
    octets = element.transfer_syntaxes[0].uuid.bytes_le
    if octets[:8] != FEATURE_PREFIX:
        return None
    return BindTimeFeatures(octets[8] & SUPPORTED_FEATURES)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An interface that an element proposes, and the syntax it would be served in."""

    interface: OfferedInterface
    transfer_syntax: SyntaxId | None

    @property
    def preferred(self) -> bool:
        return self.transfer_syntax == next(iter(self.interface.tables))


class PresentationTable:
    """The presentation contexts of one connection."""

    def __init__(self, interfaces: OfferedInterfaces, limit: int) -> None:
        self._interfaces = interfaces
        self._limit = limit
        self.contexts: dict[int, PresentationContext] = {}
        self.features = BindTimeFeatures(0)

    def answer(self, elements: Iterable[ContextElement]) -> tuple[ContextAnswer, ...]:
        """Accept or refuse each element; raises PresentationError when the whole PDU is wrong."""
        elements = tuple(elements)
        self._check(elements)
        candidates = [self._candidate(element) for element in elements]
        accepted = _accepted(candidates)
        return tuple(
            self._answer_one(element, candidate, index in accepted)
            for index, (element, candidate) in enumerate(zip(elements, candidates, strict=True))
        )

    def _check(self, elements: tuple[ContextElement, ...]) -> None:
        if not elements:
            raise PresentationError("no presentation context is proposed")
        if any(not element.transfer_syntaxes for element in elements):
            raise PresentationError("a presentation context without a transfer syntax")
        if sum(proposed_features(element) is not None for element in elements) > 1:
            raise PresentationError("bind-time features are proposed twice")
        new = {element.p_cont_id for element in elements} - self.contexts.keys()
        if len(self.contexts) + len(new) > self._limit:
            raise PresentationError("too many presentation contexts", limit=True)

    def _candidate(self, element: ContextElement) -> _Candidate | None:
        """The interface and syntax that an element would get; None if the element is refused."""
        if proposed_features(element) is not None:
            return None
        interface = self._interfaces.find(element.abstract_syntax)
        if interface is None:
            return None
        return _Candidate(interface, _choose(interface, element.transfer_syntaxes))

    def _answer_one(
        self, element: ContextElement, candidate: _Candidate | None, accepted: bool
    ) -> ContextAnswer:
        features = proposed_features(element)
        if features is not None:
            self.features |= features
            return ContextAnswer(ContextResult.negotiate_ack, features)
        if candidate is None:
            return _rejection(ProviderReason.abstract_syntax_not_supported)
        chosen = candidate.transfer_syntax
        self._check_unchanged(element, candidate)
        if chosen is None or not accepted:
            return _rejection(ProviderReason.proposed_transfer_syntaxes_not_supported)
        if element.p_cont_id not in self.contexts:
            self.contexts[element.p_cont_id] = PresentationContext(
                element.p_cont_id, candidate.interface, chosen, element.abstract_syntax
            )
        return ContextAnswer(ContextResult.acceptance, 0, chosen)

    def _check_unchanged(self, element: ContextElement, candidate: _Candidate) -> None:
        """A context that exists keeps its interface and its transfer syntax."""
        existing = self.contexts.get(element.p_cont_id)
        if existing is None:
            return
        if existing.interface is not candidate.interface:
            raise PresentationError("a presentation context is proposed for another interface")
        unknown = _KNOWN.isdisjoint(element.transfer_syntaxes)
        if candidate.transfer_syntax != existing.transfer_syntax and not unknown:
            raise PresentationError("a presentation context is proposed in another syntax")


def _rejection(reason: ProviderReason) -> ContextAnswer:
    return ContextAnswer(ContextResult.provider_rejection, reason)


_KNOWN = frozenset({NDR, NDR64})


def _accepted(candidates: Iterable[_Candidate | None]) -> frozenset[int]:
    """Which elements are accepted: one of each interface, if possible in its preferred syntax."""
    best: dict[SyntaxId, tuple[bool, int]] = {}
    for index, candidate in enumerate(candidates):
        if candidate is not None and candidate.transfer_syntax is not None:
            rank = not candidate.preferred, index
            interface = candidate.interface.syntax
            best[interface] = min(best.get(interface, rank), rank)
    return frozenset(index for _, index in best.values())


def _choose(interface: OfferedInterface, proposed: tuple[SyntaxId, ...]) -> SyntaxId | None:
    """The preferred transfer syntax if it is proposed, else the first that is served."""
    if next(iter(interface.tables)) in proposed:
        return next(iter(interface.tables))
    return next((syntax for syntax in proposed if syntax in interface.tables), None)
