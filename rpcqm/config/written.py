"""The configuration in force as the text of a file, for backups."""

import json
from pathlib import Path

from rpcqm.config.schema import Configuration, Setting, settings
from rpcqm.srmp.settings import Redirection

SECRET_FILES = frozenset(
    {
        "security.keytab",
        "binary.signing_key",
        "binary.encryption_key",
        "remote.credentials_file",
        "srmp.key",
    }
)
"""Settings that name files with keys or passwords."""
OTHER_FILES = frozenset(
    {"directory_file", "binary.signing_certificate", "srmp.certificate", "srmp.verify"}
)
"""Settings that name other files which a queue manager reads."""


def written(configuration: Configuration) -> str:
    """A TOML file with the name and every setting that is not at its default.

    Options and the environment count as the file does.
    """
    usual = Configuration()
    lines: list[str] = []
    table = ""
    for setting in settings():
        found = value_of(configuration, setting)
        if found is None or (found == value_of(usual, setting) and setting.path != ("name",)):
            continue
        if len(setting.path) > 1 and setting.path[0] != table:
            table = setting.path[0]
            lines += ["", f"[{table}]"]
        lines.append(f"{setting.path[-1]} = {_toml(found)}")
    return "\n".join(lines).lstrip("\n") + "\n"


def named_files(configuration: Configuration, secrets: bool) -> dict[str, Path]:
    """The files that a configuration names, by setting; those with secrets only if wanted."""
    wanted = OTHER_FILES | SECRET_FILES if secrets else OTHER_FILES
    found = {
        setting.key: value_of(configuration, setting)
        for setting in settings()
        if setting.key in wanted
    }
    return {key: Path(str(value)) for key, value in found.items() if value}


def value_of(configuration: Configuration, setting: Setting) -> object:
    """The value of a setting."""
    value: object = configuration
    for name in setting.path:
        value = getattr(value, name)
    return value


def _toml(value: object) -> str:
    if isinstance(value, Redirection):
        return f"{{ from = {_toml(value.from_url)}, to = {_toml(value.to_url)} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value if isinstance(value, bool | int) else str(value), ensure_ascii=False)
