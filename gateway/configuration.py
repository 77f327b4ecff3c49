"""Reads the settings from flags, environment and file, and remembers where each came from.

Precedence: flag > environment > file > default. A name that no setting has is an error that names the nearest one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.settings import DEFAULTS, Settings, SettingsError, at_home, parse

PREFIX = "TURNSTILE_"
CONFIG_VARIABLE = "TURNSTILE_CONFIG"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings, and each one's origin as a person would say it: 'flag --port', 'default' …"""

    settings: Settings
    origins: Mapping[str, str]


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable_of(name: str) -> str:
    return PREFIX + name.upper()


def read_configuration(flags: Mapping[str, object], environ: Mapping[str, str], config_file: Path | None = None) -> Configuration:
    """Settings from the three sources. `flags` holds only what was given, by setting name.

    `config_file` is the flag --config; without it the variable TURNSTILE_CONFIG may name the file.
    Raises SettingsError.
    """
    from_environ = _environment(environ)
    path = config_file or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    from_file = _file(at_home(path, "configuration file")) if path else {}

    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, default in DEFAULTS.items():
        if name in flags:
            given, origin = flags[name], "argument MODEL" if name == "model" else f"flag {flag_of(name)}"
        elif name in from_environ:
            given, origin = from_environ[name], f"variable {variable_of(name)}"
        elif name in from_file:
            given, origin = from_file[name], f"file {path}: {name}"
        else:
            values[name] = at_home(default, f"default of {name}") if isinstance(default, Path) else default
            origins[name] = "default"
            continue
        values[name], origins[name] = parse(name, given, origin), origin
    return Configuration(_consistent(Settings(**values), origins), origins)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Settings among the environment's variables. One set to the empty text counts as not set."""
    found = {}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX) or variable == CONFIG_VARIABLE:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in DEFAULTS or variable != variable_of(name):
            known = [*map(variable_of, DEFAULTS), CONFIG_VARIABLE]
            raise SettingsError(f"unknown variable {variable}{nearest(variable.upper(), known)}")
        if text != "":
            found[name] = text
    return found


def _file(path: Path) -> dict[str, object]:
    """The mapping that a YAML or TOML file holds, chosen by its suffix."""
    readers = {".yaml": _yaml, ".yml": _yaml, ".toml": _toml}
    if path.suffix not in readers:
        raise SettingsError(f"configuration file {path}: its name must end in .yaml, .yml or .toml")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"configuration file {path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"configuration file {path} is not UTF-8 (byte {error.start})") from error
    try:
        found = readers[path.suffix](text, path)
    except (ValueError, RecursionError) as error:      # past what Python itself reads: digits of a number, nesting
        raise SettingsError(f"configuration file {path} can't be read: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise SettingsError(f"configuration file {path} must hold keys and values, like 'port: 8000'")
    for key in found:
        if key not in DEFAULTS:
            raise SettingsError(f"configuration file {path}: unknown key {key!r}{nearest(str(key).replace('-', '_'), DEFAULTS)}")
    return found


def _yaml(text: str, path: Path) -> object:
    import yaml

    try:
        top = yaml.compose(text, Loader=yaml.SafeLoader)
        if isinstance(top, yaml.MappingNode):
            _no_key_twice([key.value for key, _ in top.value], path)     # YAML itself would take the last one
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SettingsError(f"configuration file {path} is not YAML{where}: {getattr(error, 'problem', error)}") from error


def _no_key_twice(keys: Sequence[object], path: Path) -> None:
    for key in keys:
        if keys.count(key) > 1:
            raise SettingsError(f"configuration file {path}: {key!r} is given twice")


def _toml(text: str, path: Path) -> object:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"configuration file {path} is not TOML: {error}") from error


def _consistent(settings: Settings, origins: Mapping[str, str]) -> Settings:
    """Checks that need more than one setting."""
    if not settings.host:
        raise SettingsError(f"{origins['host']} must not be empty: 127.0.0.1 listens on this machine only")
    if not settings.loopback and not settings.api_keys and not settings.allow_open:
        raise SettingsError(
            f"host {settings.host} ({origins['host']}) lets other machines connect, and no api_keys are set: "
            "set api_keys (name:key), or allow_open=true if everyone who can connect may use it"
        )
    keys = [entry.partition(":")[2] for entry in settings.api_keys]
    if len(set(keys)) < len(keys):
        raise SettingsError(f"{origins['api_keys']}: one key is given twice; a key must name one tenant")
    if settings.admin_key in keys:
        raise SettingsError(f"{origins['admin_key']} is a tenant's key too: the operator's must be another one")
    if settings.step_tokens < settings.max_running:
        raise SettingsError(
            f"step_tokens is {settings.step_tokens} ({origins['step_tokens']}) and max_running {settings.max_running} "
            f"({origins['max_running']}): each running sequence needs a token of every step, so raise the one or lower the other")
    if settings.model == "":
        raise SettingsError(f"{origins['model']} must not be empty")
    return settings


def nearest(wrong: str, known: Iterable[str]) -> str:
    """'; did you mean X?' where some known name is near, else the empty text."""
    close = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""
