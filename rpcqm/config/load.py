"""Reading a configuration: the command line wins over the environment, then comes the file."""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rpcqm.base.files import read_at_most
from rpcqm.base.units import amount
from rpcqm.config.about import PORTS
from rpcqm.config.aliases import BINARY_PORT, ENDPOINT_MAPPER_PORT, aliases_of_peers
from rpcqm.config.lists import ListReader, Place
from rpcqm.config.positions import KeyPath, key_lines
from rpcqm.config.schema import Configuration, Setting, settings, tables
from rpcqm.config.values import (
    ConfigurationError,
    Entry,
    Mistake,
    closest,
    shown,
    string,
    truth,
    unknown,
    whole,
)

DEFAULT_FILE = Path("/etc/rpcqm/rpcqm.toml")
FILE_VARIABLE = "RPCQM_CONFIG"

HTTPS_PORT = ("https_port",)
CERTIFICATE = ("srmp", "certificate")
KEY = ("srmp", "key")
CONSOLE_CERTIFICATE = ("console", "certificate")
CONSOLE_KEY = ("console", "key")
DCOM_ENABLED = ("dcom", "enabled")
ALIASES = ("aliases",)
PEERS = {("binary", "peers"): BINARY_PORT, ("remote", "peers"): ENDPOINT_MAPPER_PORT}
NAME = ("name",)
REPLICA_LOG = ("replica", "log")
EPM_PORT = ("epm_port",)
DCOM_PORT = ("dcom_port",)

T = TypeVar("T")

MAXIMUM_CONFIGURATION = 65_536
"""Size of a configuration file.

The same for a file of credentials.

Bound `file.configuration_octets` [octets]: the file is refused in one sentence.
"""
MAXIMUM_LINES = 2_000
"""Lines of a configuration file.

The time to find the lines of its keys grows with their square.

Bound `file.configuration_lines` [lines]: the file is refused in one sentence.
"""
MAXIMUM_DEPTH = 16
"""Tables and lists of such a file within each other, the file itself among them.

Bound `file.depth` [levels]: the file is refused in one sentence.
"""
_PART = re.compile(r"""\"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[\w-]++""")
_DOTTED = re.compile(rf"(?:{_PART.pattern})(?:[ \t]*+\.[ \t]*+(?:{_PART.pattern}))*+")

_KINDS: dict[type, Entry] = {
    bool: Entry(truth, "true or false"),
    int: Entry(whole, "a whole number"),
    str: Entry(string, "a text"),
    Path: Entry(lambda value: value if isinstance(value, Path) else string(value), "a path"),
}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class _Values:
    """Settings gathered from one source after the other; the first one to set a value wins."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        self._values: dict[KeyPath, object] = {}
        self._where: dict[KeyPath, str] = {}

    def add(self, setting: Setting, value: object, where: str) -> None:
        try:
            checked = _checked(setting, value)
        except ValueError as error:
            self.mistakes.append(Mistake(where, str(error)))
        else:
            self._keep(setting, checked, where)

    def add_list(self, setting: Setting, value: object, place: Place) -> None:
        reader = ListReader(setting, place)
        found = reader.read(value)
        self.mistakes += reader.mistakes
        self._keep(setting, found, place())

    def _keep(self, setting: Setting, value: object, where: str) -> None:
        if setting.path not in self._values:
            self._values[setting.path] = value
            self._where[setting.path] = where

    def configuration(self) -> Configuration:
        """The values that were gathered, and defaults for the rest; raises ConfigurationError."""
        self._check_ports()
        self._check_certificates()
        self._check_dcom()
        self._check_aliases()
        self._check_replica()
        if self.mistakes:
            raise ConfigurationError(self.mistakes)
        parts = {name: _made(table, self._of(name)) for name, table in tables().items()}
        return _made(Configuration, self._of() | parts)

    def _check_ports(self) -> None:
        owners: dict[int, str] = {}
        for setting in settings():
            port = self._values.get(setting.path)
            if setting.about.between == PORTS and isinstance(port, int) and port > 0:
                taken = owners.setdefault(port, setting.key)
                if taken != setting.key:
                    text = f"`{setting.key}` is {port}, which `{taken}` has already."
                    self.mistakes.append(Mistake(self._where[setting.path], text))

    def _check_certificates(self) -> None:
        """A certificate is of use with its key only, and TLS with both."""
        given = self._check_pair(CERTIFICATE, KEY)
        self._check_pair(CONSOLE_CERTIFICATE, CONSOLE_KEY)
        port = self._values.get(HTTPS_PORT)
        if not given and isinstance(port, int) and port >= 0:
            text = f"`https_port` is {port}, which needs `srmp.certificate` and `srmp.key`."
            self.mistakes.append(Mistake(self._where[HTTPS_PORT], text))

    def _check_pair(self, *pair: KeyPath) -> list[KeyPath]:
        """Which of two settings are given; one alone is a mistake."""
        given = [path for path in pair if path in self._values]
        if len(given) == 1:
            (lacking,) = set(pair) - set(given)
            text = f"`{'.'.join(given[0])}` needs `{'.'.join(lacking)}`."
            self.mistakes.append(Mistake(self._where[given[0]], text))
        return given

    def _check_dcom(self) -> None:
        """Objects are activated at one port and called at another: they need both."""
        if not self._values.get(DCOM_ENABLED):
            return
        for path in (EPM_PORT, DCOM_PORT):
            port = self._values.get(path)
            if isinstance(port, int) and port < 0:
                text = f"`dcom.enabled` needs `{path[0]}`, which is {port}."
                self.mistakes.append(Mistake(self._where[path], text))

    def _check_aliases(self) -> None:
        """Another queue manager is not this one."""
        aliases = self._values.get(ALIASES)
        for path, port in PEERS.items():
            peers = self._values.get(path)
            if not isinstance(aliases, tuple) or not isinstance(peers, str):
                continue
            for alias, name in aliases_of_peers(aliases, peers, port):
                text = f"`aliases` has {shown(alias)}, which is {name} by `{path[0]}.{path[1]}`."
                self.mistakes.append(Mistake(self._where[ALIASES], text))

    def _check_replica(self) -> None:
        """Whichever node is primary is the same computer: the host's own name does not do."""
        if self._values.get(REPLICA_LOG) and NAME not in self._values:
            text = "`replica.log` needs `name`, the same on every node of the cluster."
            self.mistakes.append(Mistake(self._where[REPLICA_LOG], text))

    def _of(self, *above: str) -> dict[str, object]:
        return {path[-1]: value for path, value in self._values.items() if path[:-1] == above}


def _made(make: Callable[..., T], values: Mapping[str, object]) -> T:
    """A table of checked values."""
    return make(**values)


def load(
    options: Mapping[str, object] | None = None,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Configuration:
    """The configuration in force.

    `options` are values of the command line by the names of settings; None stands for an option
    that was not given. `file`, or the file that RPCQM_CONFIG names, must exist;
    /etc/rpcqm/rpcqm.toml is read if it exists. Raises ConfigurationError with every mistake.
    """
    environment = os.environ if environment is None else environment
    values = _Values()
    _add_options(values, options or {})
    _add_environment(values, environment)
    path = file or _named_file(environment)
    if path is not None:
        _add_file(values, path)
    return values.configuration()


def check(file: Path) -> Configuration:
    """The configuration of a file alone; raises ConfigurationError with every mistake."""
    values = _Values()
    _add_file(values, file)
    return values.configuration()


def _named_file(environment: Mapping[str, str]) -> Path | None:
    named = environment.get(FILE_VARIABLE)
    if named:
        return Path(named)
    return DEFAULT_FILE if DEFAULT_FILE.is_file() else None


def _add_options(values: _Values, options: Mapping[str, object]) -> None:
    for setting in settings():
        value = options.get(setting.key) if setting.item is None else None
        if value is not None:
            values.add(setting, value, "--" + setting.key.replace("_", "-"))


def _add_environment(values: _Values, environment: Mapping[str, str]) -> None:
    for setting in settings():
        text = environment.get(setting.variable)
        if text and setting.item is not None:
            mistake = f"`{setting.key}` can be set in a file only."
            values.mistakes.append(Mistake(setting.variable, mistake))
        elif text:
            values.add(setting, _from_text(setting, text), setting.variable)


def _from_text(setting: Setting, text: str) -> object:
    """A value of the environment in the setting's type, or the text itself if it does not fit."""
    if setting.kind is bool:
        return _TRUTH.get(text.lower(), text)
    if setting.kind is int:
        try:
            return int(text)
        except ValueError:
            return text
    return text


def _add_file(values: _Values, path: Path) -> None:
    try:
        text = read_toml(path, MAXIMUM_CONFIGURATION)
        if text.count("\n") > MAXIMUM_LINES:
            text = f"has more than {MAXIMUM_LINES:,} lines."
            raise ConfigurationError([Mistake(str(path), text)])
        document = parse_toml(path, text)
    except ConfigurationError as error:
        values.mistakes += error.mistakes
        return
    lines = key_lines(text)
    known = {setting.path: setting for setting in settings()}
    for key, value in _flat(document):
        where = f"{path}:{lines[key]}"
        if key in known and known[key].item is not None:
            values.add_list(known[key], value, _ListPlace(path, key, lines))
        elif key in known:
            values.add(known[key], value, where)
        else:
            values.mistakes.append(Mistake(where, _unknown(key, value)))


@dataclass(frozen=True, slots=True)
class _ListPlace:
    """Where the parts of a list stand in a file."""

    file: Path
    key: KeyPath
    lines: Mapping[KeyPath, int]

    def __call__(self, *parts: str) -> str:
        """The place of the part itself, or of what it is part of, in lists of texts."""
        wanted = (*self.key, *parts)
        while wanted not in self.lines:
            wanted = wanted[:-1]
        return f"{self.file}:{self.lines[wanted]}"


def read_toml(path: Path, most: int) -> str:
    """The text of a file of at most so many octets; raises ConfigurationError."""
    try:
        with path.open("rb") as file:
            octets = read_at_most(file, most + 1)
        if len(octets) > most:
            raise ConfigurationError([Mistake(str(path), f"is larger than {most:,} octets.")])
        return octets.decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        mistake = Mistake(str(path), f"cannot be read: {error.strerror}.")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        mistake = Mistake(f"{path}:{line}", "is not UTF-8 text.")
    raise ConfigurationError([mistake])


def parse_toml(path: Path, text: str) -> dict[str, object]:
    """The document of a text; raises ConfigurationError, also if values are nested too deeply."""
    try:
        if not _has_long_key(text):
            document = tomllib.loads(text)
            if not _is_deeper(document, MAXIMUM_DEPTH):
                return document
        mistake = Mistake(str(path), "has values that are nested too deeply.")
    except tomllib.TOMLDecodeError as error:
        mistake = syntax_mistake(path, text, error)
    except RecursionError:
        mistake = Mistake(str(path), "has values that are nested too deeply.")
    except ValueError:
        mistake = Mistake(str(path), "has a number with too many digits.")
    raise ConfigurationError([mistake])


def _has_long_key(text: str) -> bool:
    """Whether a dotted key has more parts than MAXIMUM_DEPTH: the parser's time is their square."""
    return any(
        found[0].count(".") > MAXIMUM_DEPTH and len(_PART.findall(found[0])) > MAXIMUM_DEPTH
        for found in _DOTTED.finditer(text)
    )


def _is_deeper(document: dict[str, object], most: int) -> bool:
    """Whether values are nested deeper than `most` levels.

    It goes level by level, because a few octets make a level and Python recurses to a thousand.
    """
    level: list[dict[str, object] | list[object]] = [document]
    for _ in range(most):
        values = (each.values() if isinstance(each, dict) else each for each in level)
        level = [inner for each in values for inner in each if isinstance(inner, dict | list)]
    return bool(level)


def syntax_mistake(path: Path, text: str, error: tomllib.TOMLDecodeError) -> Mistake:
    """The parser's words after the place of the mistake, or better words for the commonest one."""
    reason, _, place = str(error).rpartition(" (at ")
    if reason == r"Illegal character '\n'":
        reason = "a text is not closed where its line ends"
    if place == "end of document)":
        line = len(text.splitlines())
    else:
        line = int(place.split()[1].rstrip(","))
    return Mistake(f"{path}:{max(line, 1)}", f"{reason}.")


def _flat(document: dict[str, object]) -> Iterator[tuple[KeyPath, object]]:
    """The settings of a document by path; a table within a section stays a value."""
    known = tables()
    for key, value in document.items():
        if key in known and isinstance(value, dict):
            yield from (((key, inner), item) for inner, item in value.items())
        else:
            yield (key,), value


def _unknown(key: KeyPath, value: object) -> str:
    name = ".".join(key)
    if len(key) == 1 and key[0] in tables():
        return f"`{name}` is a table; write [{name}]."
    if isinstance(value, dict):
        return unknown("table", name, _close_name(key, list(tables())))
    return unknown("setting", name, _close_name(key, None))


def _close_name(key: KeyPath, table_names: list[str] | None) -> str:
    """The name that was probably meant: of the same table, or the same name of another table."""
    wanted = key[-1].replace("-", "_")
    places = [setting.path for setting in settings()]
    near = [path[-1] for path in places if path[:-1] == key[:-1]]
    if close := closest(wanted, near if table_names is None else table_names):
        return ".".join((*key[:-1], close))
    return next((".".join(path) for path in places if path[-1] == wanted), "")


def _checked(setting: Setting, value: object) -> object:
    """The value in its final type; raises ValueError with a sentence if it is not allowed."""
    if setting.about.unit and isinstance(value, str):
        value = _amount(setting, value)
    found = _KINDS[setting.kind].value(setting.key, value)
    if found == "":
        raise ValueError(f"`{setting.key}` is empty.")
    _check_bounds(setting, found)
    return Path(found) if setting.kind is Path and isinstance(found, str) else found


def _amount(setting: Setting, text: str) -> int:
    """A text such as `5s` in the setting's own unit."""
    try:
        return amount(text, setting.about.unit)
    except ValueError as error:
        raise ValueError(f"`{setting.key}` is {shown(text)}, which {error}.") from None


def _check_bounds(setting: Setting, value: object) -> None:
    between, choices = setting.about.between, setting.about.choices
    if between and isinstance(value, int) and not between[0] <= value <= between[1]:
        raise ValueError(f"`{setting.key}` is from {between[0]} to {between[1]}, not {value}.")
    if setting.about.form and not re.fullmatch(setting.about.form, str(value)):
        raise ValueError(f"`{setting.key}` has characters that it cannot have: {shown(value)}.")
    if choices and value not in choices:
        raise ValueError(f"`{setting.key}` is one of {', '.join(choices)}, not {shown(value)}.")
    if setting.about.check is not None:
        _check_text(setting, str(value))


def _check_text(setting: Setting, text: str) -> None:
    assert setting.about.check is not None
    try:
        setting.about.check(text)
    except ValueError as error:
        raise ValueError(f"`{setting.key}` is {shown(text)}, {error}.") from None
