"""Expressions of IDL: evaluated at once if they are constant, else converted to Python."""

from collections.abc import Callable, Iterator, Mapping

from rpcqm.codec.idl.nodes import (
    Binary,
    Conditional,
    Expression,
    Name,
    Number,
    Unary,
)

_BINARY: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a) or bool(b)),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
_UNARY: dict[str, Callable[[int], int]] = {
    "+": lambda a: a,
    "-": lambda a: -a,
    "~": lambda a: ~a,
    "!": lambda a: int(not a),
}
_IN_PYTHON = {"||": "or", "&&": "and", "/": "//"}


def evaluate(expression: Expression, constants: Mapping[str, int]) -> int:
    """The value of a constant expression; raises KeyError if a name is not a constant."""
    match expression:
        case Number(value):
            return value
        case Name(text):
            return constants[text]
        case Unary(operator, operand) if operator in _UNARY:
            return _UNARY[operator](evaluate(operand, constants))
        case Binary(operator, left, right):
            return _BINARY[operator](evaluate(left, constants), evaluate(right, constants))
        case Conditional(condition, yes, no):
            return evaluate(yes if evaluate(condition, constants) else no, constants)
    raise KeyError(str(expression))


def names_in(expression: Expression) -> Iterator[str]:
    """The names that an expression refers to."""
    match expression:
        case Name(text):
            yield text
        case Unary(_, operand):
            yield from names_in(operand)
        case Binary(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case Conditional(condition, yes, no):
            for part in (condition, yes, no):
                yield from names_in(part)


def to_python(expression: Expression, variable: Callable[[str], str]) -> str:
    """The expression as Python source; `variable` gives the source of a name.

    A dereference is the name itself: values replace pointers.
    """
    match expression:
        case Number(value):
            return str(value)
        case Name(text):
            return variable(text)
        case Unary("*", operand):
            return to_python(operand, variable)
        case Unary("!", operand):
            return f"(not {to_python(operand, variable)})"
        case Unary(operator, operand):
            return f"({operator}{to_python(operand, variable)})"
        case Binary(operator, left, right):
            operator = _IN_PYTHON.get(operator, operator)
            return f"({to_python(left, variable)} {operator} {to_python(right, variable)})"
        case Conditional(condition, yes, no):
            parts = (to_python(part, variable) for part in (yes, condition, no))
            return "({} if {} else {})".format(*parts)
    raise ValueError(f"no number: {expression}")
