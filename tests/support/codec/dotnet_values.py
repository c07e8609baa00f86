"""Values of .NET for its own formatters: made by chance, written for a program in C#, compared.

A value is written in words: `int:5`, `string:` and `char:` with hexadecimal UTF-16, `float:` and
`double:` with their octets, `DateTime:TICKS,KIND`, `TimeSpan:TICKS`, `null`; a list is `[TYPE`, its
elements and `]`, an object `{CLASS`, names with values and `}`.
"""

import datetime
import random
import struct
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

TICK = 10_000_000
"""Ticks of a second."""
LAST_TICK = 3_155_378_975_999_999_999
MOMENT = datetime.datetime(1, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
UNSPECIFIED, UTC, LOCAL = KINDS = ("Unspecified", "Utc", "Local")
INTEGERS = {
    "sbyte": (-(1 << 7), (1 << 7) - 1),
    "byte": (0, (1 << 8) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "ushort": (0, (1 << 16) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "uint": (0, (1 << 32) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
    "ulong": (0, (1 << 64) - 1),
}
XML_TYPES = {
    "bool": "boolean",
    "sbyte": "byte",
    "byte": "unsignedByte",
    "ushort": "unsignedShort",
    "uint": "unsignedInt",
    "ulong": "unsignedLong",
    "DateTime": "dateTime",
    "Guid": "guid",
    "byte[]": "base64Binary",
    "object": "anyType",
}
"""Names of types in XML, where they are others than in C#."""
ANYTHING = ("object[]", "List<object>", "ArrayList")
CHARACTERS = (
    *("", "a", "two apples", "Grüße, 漢字", "\U0001f600", "a\tb\nc", "a\r\nb\rc", "  ", "\n"),
    *("<a>&amp;</a>", "]]>", "a\x1db", "".join(map(chr, range(1, 32))), "\0", "\ufffe\uffff"),
    *("\x7f\x85\xa0\u2028", "\U000f0000\U0010fffd", "x" * 300, " a ", "\ufeffa"),
)


@dataclass(frozen=True)
class Value:
    """A value of .NET: its type in C#, the words that say it, and what it is to us.

    `binary` is what it is in a body of BinaryMessageFormatter where that differs.
    """

    type: str
    words: str
    value: Any
    binary: Any = field(default=None)

    @property
    def in_binary(self) -> Any:
        return self.value if self.binary is None else self.binary


class Single(float):
    """A number of 32 bits: in XML it has as many digits as it needs to be that one again."""


NULL = Value("string", "null", None)


def integer(kind: str, value: int) -> Value:
    return Value(kind, f"{kind}:{value}", value)


def text(value: str) -> Value:
    return Value("string", f"string:{value.encode('utf-16-be').hex()}", value)


def real(kind: str, value: float) -> Value:
    code = "<f" if kind == "float" else "<d"
    octets = struct.pack(code, value)
    (number,) = struct.unpack(code, octets)
    return Value(kind, f"{kind}:{octets.hex()}", Single(number) if kind == "float" else number)


def date(ticks: int, kind: str) -> Value:
    """Its time zone is told in XML, where the peer runs in UTC; BinaryFormatter tells UTC alone."""
    moment = MOMENT + ticks // 10 * MICROSECOND
    aware = moment.replace(tzinfo=datetime.UTC)
    in_xml = moment if kind == UNSPECIFIED else aware
    return Value("DateTime", f"DateTime:{ticks},{kind}", in_xml, aware if kind == UTC else moment)


def duration(ticks: int) -> Value:
    value = abs(ticks) // 10 * MICROSECOND
    return Value("TimeSpan", f"TimeSpan:{ticks}", -value if ticks < 0 else value)


def sequence(kind: str, of: Iterable[Value]) -> Value:
    values = list(of)
    words = " ".join([f"[{kind}", *(each.words for each in values), "]"])
    return Value(kind, words, [each.value for each in values], [each.in_binary for each in values])


def exemplar(kind: str, **members: Value) -> Value:
    """An object of a class: its members in a body of BinaryFormatter."""
    words = " ".join(f"{name} {value.words}" for name, value in members.items())
    told = {name: value.in_binary for name, value in members.items()}
    return Value(kind, f"{{{kind} {words} }}", None, {"$class": kind} | told)


def colour(name: str, number: int) -> Value:
    return Value("Color", f"Color:{name}", None, {"$class": "Color", "value__": number})


class Chance:
    """Values of each type, the same ones for one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._makers: dict[str, Callable[[], Value]] = {
            "bool": lambda: Value(
                "bool", *self._pick((("bool:True", True), ("bool:False", False)))
            ),
            **{kind: self._integers(kind) for kind in INTEGERS},
            "float": lambda: real("float", self._real()),
            "double": lambda: real("double", self._real()),
            "decimal": self._decimal,
            "char": self._character,
            "string": lambda: text(self._pick(CHARACTERS)),
            "DateTime": self._date,
            "Guid": self._guid,
            "byte[]": self._octets,
        }
        self.scalars = tuple(self._makers)

    def of(self, kind: str) -> Value:
        return self._makers[kind]()

    def duration(self) -> Value:
        edge = (1 << 63) - 1
        return duration(
            self._pick((0, 1, -1, -TICK, 2 * 86_400 * TICK, edge, ~edge, self._ticks()))
        )

    def offset(self) -> Value:
        """A DateTimeOffset: its moment here and its minutes from UTC."""
        minutes, ticks = self._pick((0, 120, -570, 840)), self._ticks() or TICK * 86_400
        zone = datetime.timezone(datetime.timedelta(minutes=minutes))
        moment = (MOMENT + ticks // 10 * MICROSECOND).replace(tzinfo=zone)
        return Value("DateTimeOffset", f"DateTimeOffset:{ticks},{minutes}", None, moment)

    def array(self, kind: str) -> Value:
        shape = self._pick((f"{kind}[]", f"List<{kind}>"))
        return sequence(shape, (self.of(kind) for _ in range(self._random.randrange(4))))

    def with_nulls(self, kind: str) -> Value:
        """A list whose elements may be null."""
        nullable = kind if kind in ("string", "byte[]") else f"{kind}?"
        count = self._random.randrange(1, 6)
        return sequence(
            f"{nullable}[]", (NULL if index % 2 else self.of(kind) for index in range(count))
        )

    def nested(self, kind: str) -> Value:
        inner = f"{kind}[]"
        parts = [sequence(inner, (self.of(kind) for _ in range(count))) for count in (0, 1, 3)]
        return sequence(f"{inner}[]", [*parts, NULL])

    def mixed(self) -> Value:
        """A list of values of different types, as far as both formatters have them."""
        kinds = self._random.sample(self.scalars, 5)
        shape = self._pick(ANYTHING)
        return sequence(shape, [self.of(kind) for kind in kinds] + [NULL])

    def order(self, depth: int = 2) -> Value:
        before = self.order(depth - 1) if depth else NULL
        return exemplar(
            "Order",
            Number=self.of("int"),
            Buyer=self._pick((NULL, self.of("string"))),
            Price=self.of("decimal"),
            Placed=self.of("DateTime"),
            Discount=self._pick((NULL, self.of("int"))),
            Tint=colour(*self._pick((("Red", 0), ("Blue", 7)))),
            Place=exemplar("Point", X=self.of("int"), Y=self.of("int")),
            Lines=self._pick((NULL, sequence("string[]", [self.of("string"), NULL]))),
            Counts=sequence("List<int>", [self.of("int") for _ in range(5)]),
            Before=before,
        )

    def _pick(self, values: Any) -> Any:
        return self._random.choice(values)

    def _integers(self, kind: str) -> Callable[[], Value]:
        least, most = INTEGERS[kind]

        def make() -> Value:
            some = self._random.randint(least, most)
            return integer(kind, self._pick((least, most, 0, 1, some, some)))

        return make

    def _real(self) -> float:
        some = self._random.uniform(-1e6, 1e6)
        edges = (0.0, -0.0, 1.5, 0.1, 1e-30, 3.0e38, float("inf"), -float("inf"), float("nan"))
        return float(self._pick((*edges, some, some)))

    def _decimal(self) -> Value:
        some = Decimal(self._random.randrange(-(10**20), 10**20)).scaleb(
            -self._random.randrange(20)
        )
        edges = ("0", "12.50", "0.0000001", "-1", "79228162514264337593543950335", f"{some:f}")
        found = self._pick((*edges, "0.0000000000000000000000000001", "1000"))
        return Value("decimal", f"decimal:{found}", Decimal(found))

    def _character(self) -> Value:
        found = self._pick("aZ0 \t\n\r\x1d\0\x7fé漢\uffff")
        return Value("char", f"char:{ord(found):04x}", found)

    def _ticks(self) -> int:
        return self._random.randrange(LAST_TICK)

    def _date(self) -> Value:
        ticks = self._pick((0, LAST_TICK, 638_000_000_000_000_000, self._ticks(), self._ticks()))
        return date(ticks, self._pick(KINDS))

    def _guid(self) -> Value:
        found = uuid.UUID(int=self._random.getrandbits(128))
        return Value("Guid", f"Guid:{found}", found)

    def _octets(self) -> Value:
        found = self._random.randbytes(self._pick((0, 1, 3, 300)))
        return Value("byte[]", f"byte[]:{found.hex()}", found)


def generated(seed: int, count: int) -> list[Value]:
    """So many values: each type in turn, alone, in lists, with nulls, in lists of lists."""
    chance = Chance(seed)
    made: list[Value] = []
    while len(made) < count:
        for kind in chance.scalars:
            made += [chance.of(kind), chance.of(kind)]
            if kind != "byte":  # a byte[] is octets
                made += [chance.array(kind), chance.with_nulls(kind), chance.nested(kind)]
        made += [chance.mixed() for _ in range(6)]
    return made[:count]


def as_read_again(value: Value) -> str:
    """The words of a value that .NET reads in what was written here.

    A tick is a tenth of what a datetime here tells, a time zone other than UTC is told by no kind,
    and in a list of anything numbers are of the widest type, since one here is of none.
    """
    words = value.words.lower().split(" ")
    if value.type in ANYTHING:
        words = list(map(_widest, words))
    return " ".join(map(_read_again, words))


def _widest(word: str) -> str:
    kind, _, rest = word.partition(":")
    if kind in INTEGERS:
        return f"{'ulong' if int(rest) >= 1 << 63 else 'long'}:{rest}"
    if kind == "float":
        return real("double", *struct.unpack("<f", bytes.fromhex(rest))).words
    return f"string:{rest}" if kind == "char" else word


def _read_again(word: str) -> str:
    kind, _, rest = word.partition(":")
    if kind == "datetime":
        ticks, _, zone = rest.partition(",")
        return f"datetime:{int(ticks) // 10 * 10},{'utc' if zone == 'local' else zone}"
    if kind in _NAN:
        code = "<f" if kind == "float" else "<d"
        (number,) = struct.unpack(code, bytes.fromhex(rest))
        return f"{kind}:{rest if number == number else _NAN[kind]}"
    return word


_NAN = {"float": "0000c0ff", "double": "000000000000f8ff"}
"""How .NET writes it."""


def xml_type(kind: str) -> str:
    """What a type of C# is called in the XML of XmlMessageFormatter."""
    if kind in XML_TYPES:
        return XML_TYPES[kind]
    if kind == "ArrayList":
        return "ArrayOfAnyType"
    if kind.endswith("?"):
        return xml_type(kind[:-1])
    inner = kind.removeprefix("List<").removesuffix(">") if kind.startswith("List<") else kind[:-2]
    if kind.endswith(("[]", ">")):
        name = xml_type(inner)
        return f"ArrayOf{name[0].upper()}{name[1:]}"
    return kind
