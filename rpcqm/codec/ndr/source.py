"""Writing the source of codecs: lines, names, runs of fixed fields, offsets."""

import itertools
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from rpcqm.codec.idl.expression import names_in, to_python
from rpcqm.codec.idl.nodes import Expression
from rpcqm.codec.idl.tree import StructureType, Type, Union, UnionArm
from rpcqm.codec.ndr.layout import (
    Position,
    Wire,
    alignment,
    arms_by_condition,
    has_pointers,
    open_end,
    scalar,
)

_IDENTIFIER = re.compile(r"\b[a-z]+\d+\b")


class Source:
    """Lines of Python with an indentation that follows the blocks."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self.depth = self.begin = depth

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """An indented block; `pass` fills an empty one."""
        self.line(header)
        before = len(self.lines)
        self.depth += 1
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def moved(self, depth: int) -> list[str]:
        """The lines, indented for another depth."""
        return ["    " * depth + line[4 * self.begin :] for line in self.lines]

    def names(self) -> set[str]:
        """Every generated local name that occurs."""
        return set(_IDENTIFIER.findall("\n".join(self.lines)))


class Module:
    """The generated module of one interface in one syntax: functions and their globals."""

    def __init__(self, wire: Wire, namespace: Mapping[str, object]) -> None:
        self.wire = wire
        self.namespace: dict[str, object] = dict(namespace)
        self._constants: dict[object, str] = {}
        self._texts: list[str] = []

    def constant(self, key: object, prefix: str, make: Callable[[], object]) -> str:
        """The name of a global, created at its first use."""
        if key not in self._constants:
            name = f"{prefix}_{len(self._constants)}"
            self._constants[key] = name
            self.namespace[name] = make()
        return self._constants[key]

    def unpack(self, code: str) -> str:
        """The name of a function that unpacks a format of `struct` from (buffer, offset)."""
        form = self.wire.order + code
        return self.constant(("unpack", form), "u", lambda: struct.Struct(form).unpack_from)

    def pack(self, code: str) -> str:
        form = self.wire.order + code
        return self.constant(("pack", form), "s", lambda: struct.Struct(form).pack)

    def known(self, value: object, prefix: str) -> str:
        """The name of a global that holds an object, one for each object."""
        return self.constant((prefix, id(value)), prefix, lambda: value)

    def add(self, source: Source) -> None:
        self._texts.append("\n".join(source.lines))

    def take(self) -> str:
        """The source of the functions added since the last time."""
        texts, self._texts = self._texts, []
        return "\n\n".join(texts)


@dataclass(slots=True)
class Frame:
    """The scope of an expression's names: the fields of one structure or stub.

    `owner` is the local that holds it, `names` its fields. `read` are the names that are decoded
    already (None: all of them); checks on others wait in `late`.
    """

    owner: str
    names: frozenset[str]
    read: set[str] | None = None
    extras: frozenset[str] = frozenset()
    late: list[tuple[set[str], Callable[[], None]]] = field(default_factory=list)

    def variable(self, name: str) -> str:
        return f"{self.owner}.{name}"

    def knows(self, expression: Expression | None) -> bool:
        """Whether the values of an expression's names are on the wire beside it."""
        return expression is not None and self.names.issuperset(names_in(expression))

    def python(self, expression: Expression) -> str:
        return to_python(expression, self.variable)

    def missing(self, expression: Expression) -> set[str]:
        """The names of an expression that are decoded only later."""
        return set() if self.read is None else set(names_in(expression)) - self.read

    def ready(self) -> Iterable[Callable[[], None]]:
        """Take the late checks that have become possible."""
        read = self.read or set()
        done = [check for names, check in self.late if names <= read]
        self.late = [(names, check) for names, check in self.late if not names <= read]
        return done


@dataclass(frozen=True, slots=True)
class Deferred:
    """The deferred target of a pointer: `emit` emits it.

    Where the pointer can be null and its target is of fixed size, that type is `made`, and
    `condition` and `value` are sources: whether it is there, and of the value.
    """

    emit: Callable[[], None]
    made: Type | None = None
    condition: str = ""
    value: str = ""


class Emitter:
    """Code for one function: an offset known in part, and a run of fixed fields.

    The offset is the local `o` plus `delta`; before the first field of unknown size it is
    `delta` alone.
    """

    writes_gaps = False

    def __init__(self, module: Module, source: Source, position: Position) -> None:
        self.module = module
        self.wire = module.wire
        self.source = source
        self.position = position
        self.fixed = False
        self.delta = 0
        self.run: list[tuple[str, str]] = []
        self.run_size = 0
        self.padding = 0
        self.after: list[Callable[[], None]] = []
        self.locals: list[str] = []
        self.deferred: list[Deferred] = []

    # names and lines

    def fresh(self, prefix: str) -> str:
        """A new local name."""
        self.locals.append(f"{prefix}{len(self.locals)}")
        return self.locals[-1]

    def line(self, text: str) -> None:
        self.source.line(text)

    # offsets

    def at(self) -> str:
        """The current offset as Python; the run must be flushed."""
        if self.fixed:
            return str(self.delta)
        return f"o + {self.delta}" if self.delta else "o"

    def settle(self) -> None:
        """Flush, and bring the offset into the local `o` alone."""
        self.flush()
        if self.fixed:
            self.line(f"o = {self.delta}")
        elif self.delta:
            self.line(f"o += {self.delta}")
        self.fixed, self.delta = False, 0

    def align(self, align: int) -> None:
        """Go to a multiple of `align`; the skipped octets may be missing at the end."""
        missing = self.position.padding(align)
        if missing is None:
            self.flush()
            self.align_at_run_time(align)
            self.position.set(align)
        else:
            self.skip(missing)

    def align_at_run_time(self, align: int) -> None:
        raise TypeError("the emitter is abstract")

    def skip(self, size: int) -> None:
        """Leave a gap before the next field."""
        self.padding += size
        self.position.advance(size)

    def take(
        self, code: str, size: int, align: int, what: str, after: Callable[[], None] | None = None
    ) -> None:
        """Add a field of fixed size to the run; `after` is called when the run is flushed."""
        self.align(align)
        self._fill_gap()
        self.run.append((code, what))
        self.run_size += size
        self.position.advance(size)
        if after:
            self.after.append(after)

    def _fill_gap(self) -> None:
        if self.padding and (self.run or self.writes_gaps):
            self.run.append((f"{self.padding}x", ""))
            self.run_size += self.padding
        else:
            self.delta += self.padding
        self.padding = 0

    def flush(self) -> None:
        """Emit the run, and the code that waits for it."""
        if self.writes_gaps:
            self._fill_gap()
        run, after, self.run, self.after = self.run, self.after, [], []
        if run:
            self.emit_run("".join(code for code, _ in run), [what for _, what in run if what])
            self.delta += self.run_size
        self.run_size = 0
        self.delta += self.padding
        self.padding = 0
        for function in after:
            function()

    def emit_run(self, code: str, what: list[str]) -> None:
        raise TypeError("the emitter is abstract")

    def run_deferred(self) -> None:
        """Emit the targets of the pointers met so far, in their order.

        Neighbouring targets of fixed size are one run if all of them are there.
        """
        deferred, self.deferred = self.deferred, []
        for simple, group in itertools.groupby(deferred, lambda each: each.made is not None):
            members = list(group)
            if simple and len(members) > 2:
                self._together(members)
            else:
                for each in members:
                    each.emit()

    def _together(self, members: "list[Deferred]") -> None:
        self.settle()
        ends: list[Position] = []
        condition = " and ".join(each.condition for each in members)
        with self.branch(f"if {condition}:", ends):
            for each in members:
                self.scalar_referent(each)
        with self.branch("else:", ends):
            for each in members:
                each.emit()
        self.meet(ends)

    def scalar_referent(self, deferred: "Deferred") -> None:
        raise TypeError("the emitter is abstract")

    # branches and loops

    @contextmanager
    def branch(self, header: str, ends: list[Position]) -> Iterator[None]:
        """One branch of an if; its end is added to `ends`."""
        before = self.position.copy()
        with self.source.block(header):
            yield
            self.settle()
        ends.append(self.position)
        self.position = before

    def meet(self, ends: list[Position]) -> None:
        """Go on where branches meet."""
        first, *others = ends
        for other in others:
            first.join(other)
        self.position = first

    def each(self, header: str, align: int, one: Callable[[], None]) -> None:
        """A loop over elements in place; `one` emits the code for one of them.

        Its deferred parts run in a second loop, which is deferred in turn; the locals that the
        second needs are kept for it.
        """
        self.align(align)
        self.settle()
        start = self.position.copy()
        outer, self.deferred, before = self.deferred, [], len(self.locals)
        body = self._aside(one, Position(align))
        end, mine = self.position.copy(), self.locals[before:]
        late = self._aside(self.run_deferred, Position(1))
        self.deferred = outer
        needed = [name for name in mine if name in late.names()]
        if end.padding(align) != 0:
            gap = self._aside(lambda: self.align_at_run_time(align), Position(1))
            body.lines[:0] = gap.lines
        self._two_loops(header, body, late, needed)
        self.position = end
        self.position.join(start)

    def _two_loops(self, header: str, body: Source, late: Source, needed: list[str]) -> None:
        kept = self.fresh("l")
        if needed:
            self.line(f"{kept} = []")
        with self.source.block(header):
            if needed:
                self.line(f"{' = '.join(needed)} = None")
            self.source.lines += body.lines
            if needed:
                self.line(f"{kept}.append(({', '.join(needed)},))")
        if needed:
            self.deferred.append(Deferred(lambda: self._late_loop(late, needed, kept)))

    def _late_loop(self, late: Source, needed: list[str], kept: str) -> None:
        self.settle()
        with self.source.block(f"for {', '.join(needed)}, in {kept}:"):
            self.source.lines += late.moved(self.source.depth)
        self.position.set(1)

    def _aside(self, emit: Callable[[], None], position: Position) -> Source:
        """The lines that `emit` emits, one block deeper than here, and not written yet."""
        outer, self.source = self.source, Source(self.source.depth + 1)
        self.position = position
        emit()
        self.settle()
        aside, self.source = self.source, outer
        return aside

    # unions and structures

    def is_called(self, made: StructureType) -> bool:
        """Whether a structure has functions of its own, rather than inline code."""
        return has_pointers(made) or any(scalar(f.type, self.wire) is None for f in made.fields)

    def arm_alignment(self, made: Union) -> int:
        """The alignment that every arm of a union has, or 1 where each has its own."""
        if not (self.wire.ndr64 or self.wire.ms_union or made.ms_union):
            return 1
        return max((alignment(a.type, self.wire) for a in made.arms if a.type), default=1)

    def arms(
        self,
        made: Union,
        tag: str,
        emit: Callable[[UnionArm], None],
        otherwise: str,
        at_once: bool = False,
    ) -> None:
        """Emit a branch for each arm; the statement `otherwise` is for a tag without an arm.

        The deferred parts of an arm stay deferred, or with `at_once` follow in its branch.
        """
        self.settle()
        waiting: list[tuple[str, list[Deferred]]] = []
        ends: list[Position] = []
        outer = self.deferred
        for condition, arm in arms_by_condition(made, tag):
            self.deferred = []
            with self.branch(f"{'elif' if waiting else 'if'} {condition}:", ends):
                emit(arm)
                if at_once:
                    self.run_deferred()
            waiting.append((condition, self.deferred))
        self.deferred = outer
        if not made.default:
            with self.source.block("else:"):
                self.line(otherwise)
        self.meet(ends)
        if any(deferred for _, deferred in waiting):
            self.deferred.append(Deferred(lambda: self._deferred_arms(waiting)))

    def _deferred_arms(self, waiting: list[tuple[str, list[Deferred]]]) -> None:
        self.settle()
        ends: list[Position] = []
        outer = self.deferred
        for condition, deferred in waiting:
            if deferred:
                with self.branch(f"{'elif' if ends else 'if'} {condition}:", ends):
                    self.deferred = deferred
                    self.run_deferred()
        self.deferred = outer
        self.meet([*ends, self.position])


class Functions:
    """The functions of a module that read or write structures, and arrays of them.

    Each is generated at its first use.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._names: dict[tuple[str, int], str] = {}

    def entry(self, made: StructureType) -> int:
        """The alignment at which a structure is entered: of its count, if it has one."""
        return self.module.wire.word if open_end(made) else alignment(made, self.module.wire)

    def function(
        self,
        kind: str,
        made: StructureType,
        parameters: str,
        body: Callable[[Source, StructureType], None],
    ) -> str:
        """The name of the function of some kind for a structure; `body` generates it."""
        key = kind, id(made)
        if key not in self._names:
            self._names[key] = f"{kind}_{made.name}_{len(self._names)}"
            source = Source()
            with source.block(f"def {self._names[key]}({parameters}):"):
                body(source, made)
            self.module.add(source)
        return self._names[key]
