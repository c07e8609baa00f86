"""XPath and JSONPath over bodies, in a separate process, which can be ended when one takes long.

Started as `python -m rpcqm.triggers.evaluating`. A question is a line of JSON and so many octets of
a body; the answer is a line of JSON: `holds`, or `wrong` with a clause about the expression.
"""

import json
import math
import resource
import sys
from typing import Any, BinaryIO

from rpcqm.codec.trigger_expressions import WrongExpressionError, json_path, xpath
from rpcqm.triggers.questions import XPATH, Question

MEMORY = 1 << 30
"""Octets of memory that the process may take."""


def evaluate(kind: str, expression: str, body: bytes) -> bool:
    """Whether an expression holds for a body; False for a body that is no XML, or no JSON."""
    return _xpath(expression, body) if kind == XPATH else _json_path(expression, body)


def _xpath(expression: str, body: bytes) -> bool:
    from lxml import etree  # only now: most rules have no XPath

    path = xpath(expression)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False
    )
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return False
    if root.getroottree().docinfo.internalDTD is not None:
        return False  # a document type could name what is elsewhere
    try:
        return _truth(path(root))
    except etree.XPathError as error:
        raise WrongExpressionError(f"{expression!r} cannot be used: {error}") from error


def _truth(value: object) -> bool:
    """The value of a result by XPath's function boolean()."""
    if isinstance(value, float):
        return bool(value) and not math.isnan(value)
    return bool(value)


def _json_path(expression: str, body: bytes) -> bool:
    path = json_path(expression)
    import jsonpath  # it is there, since the path has been read

    try:
        document = json.loads(body)
        return any(True for _ in path.finditer(document))
    except (ValueError, RecursionError, jsonpath.JSONPathError):
        return False


def answer(question: Question, body: bytes) -> dict[str, Any]:
    """The answer to one question."""
    try:
        return {"holds": evaluate(question.kind, question.expression, body)}
    except WrongExpressionError as error:
        return {"wrong": str(error)}
    except MemoryError:
        return {"holds": False}


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer questions until the input ends."""
    while line := questions.readline():
        question = Question.read(line)
        told = answer(question, questions.read(question.size))
        answers.write(json.dumps(told).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    serve(sys.stdin.buffer, sys.stdout.buffer)
