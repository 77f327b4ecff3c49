"""The table of settings: each field of `Settings` is one setting, whatever way it is given.

A field `kv_cache_tokens` is the flag `--kv-cache-tokens`, the variable `TURNSTILE_KV_CACHE_TOKENS` and the
file key `kv_cache_tokens`. `configuration.py` reads those; nothing below the command line reads them again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from gateway.user_error import UserError

if TYPE_CHECKING:
    from runtime.config import EngineConfig

EMBEDDED_MODEL = "smollm2-135m-instruct"


class SettingsError(UserError):
    """A setting is unknown, of a wrong type, out of its range, or contradicts another."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Rule:
    """What a setting's value must satisfy besides its type, and how it is shown."""

    help: str
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    pattern: str | None = None
    pattern_means: str = ""
    secret: bool = False


def _setting(default: Any, help: str, **rule: Any) -> Any:
    return field(default=default, metadata={"rule": Rule(help, **rule)})


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can be chosen when the gateway starts. Made once, never changed."""

    model: str = _setting(EMBEDDED_MODEL, "the embedded model's name, a folder, a .gguf file or a hub name (owner/name)")
    model_name: str = _setting("", "the name that clients ask for; empty: derived from the model")
    data_dir: Path = _setting(Path("~/.cache/turnstile"), "where fetched models and the cache secret are kept")
    host: str = _setting("127.0.0.1", "address to listen on; beyond loopback needs api_keys or allow_open")
    port: int = _setting(8000, "port to listen on; 0: any free one", at_least=0, at_most=65535)
    allow_open: bool = _setting(False, "listen beyond loopback without any key")
    api_keys: tuple[str, ...] = _setting(
        (), "who may call, as name:key; requests of one name share a cache domain; empty: everyone who can connect",
        pattern=r"[A-Za-z0-9._-]{1,64}:[\x21-\x7e]{8,256}",
        pattern_means="name:key with a name of letters, digits, '.', '_' or '-' and a key of 8 to 256 visible characters",
        secret=True)
    admin_key: str = _setting(
        "", "the operator's key, for draining, sleeping and waking over HTTP; empty: nobody may",
        pattern=r"([\x21-\x7e]{16,256})?", pattern_means="16 to 256 visible characters", secret=True)
    cache_secret: str = _setting(
        "", "derives cache domains from tenants; empty: made once and kept in data_dir",
        pattern=r"(.{16,})?", pattern_means="at least 16 characters", secret=True)

    device: Literal["auto", "cpu", "cuda"] = _setting("auto", "where the model runs", choices=("auto", "cpu", "cuda"))
    kernels: Literal["auto", "native", "reference"] = _setting(
        "auto", "native code or plain torch; auto: native where it was built", choices=("auto", "native", "reference"))
    threads: int = _setting(0, "threads of the engine; 0: the cores that this process may use", at_least=0, at_most=1024)
    block_tokens: int = _setting(16, "tokens in one block of the KV cache", at_least=1, at_most=1024)
    kv_cache_tokens: int = _setting(0, "tokens that the KV cache holds; 0: from free memory", at_least=0)
    max_context_tokens: int = _setting(0, "longest prompt and answer together; 0: the model's own", at_least=0)
    max_running: int = _setting(32, "sequences in one step", at_least=1, at_most=4096)
    step_tokens: int = _setting(256, "tokens in one step, decodes and prefill chunks together", at_least=1)
    max_waiting: int = _setting(256, "requests in the queue before a new one is refused", at_least=1)
    step_timeout_s: float = _setting(120.0, "seconds of silence after which a busy engine is ended and started again", at_least=1)
    idle_sleep_s: float = _setting(
        0.0, "seconds without a request after which the engine ends and gives its memory back, until the next one; 0: never",
        at_least=0)
    cache_ttl_s: float = _setting(3600.0, "seconds that an unused block stays reachable", above=0)
    forced_runs: bool = _setting(True, "append text that a grammar leaves no choice about without a step for each token")
    guessing_rows: int = _setting(2, "sequences in a step up to which answers are guessed ahead; 0: never", at_least=0)
    seed: int = _setting(0, "seed of requests that name none", at_least=0, at_most=2**63 - 1)
    style: Literal["compact", "free", "pretty"] = _setting(
        "compact", "how freely a JSON answer may be written", choices=("compact", "free", "pretty"))

    max_body_bytes: int = _setting(8_388_608, "longest request body", at_least=1024)
    request_timeout_s: float = _setting(600.0, "seconds after which a request is given up", above=0)
    drain_timeout_s: float = _setting(
        25.0, "seconds that running requests may go on after SIGTERM or Ctrl-C", at_least=0)
    redis_url: str = _setting(
        "", "a Redis or Valkey server; empty: none", pattern=r"((redis|rediss)://\S+|unix://\S+)?",
        pattern_means="redis://…, rediss://… or unix://…", secret=True)
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "what is logged; debug logs each request too", choices=("debug", "info", "warning", "error"))

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)

    def engine_config(self, model_path: Path, model_name: str | None = None) -> EngineConfig:
        """The engine's share of the settings, for a model that lies at `model_path`."""
        from runtime.config import EngineConfig

        names = {f.name for f in dataclasses.fields(EngineConfig)} - {"model_path", "model_name"}
        shared = {name: getattr(self, name) for name in names}
        return EngineConfig(model_path=model_path, model_name=self.model_name or model_name or model_path.stem, **shared)


MOST_DIGITS = 100                  # of a whole number; far beyond every range, and far below what Python refuses to read
RULES: dict[str, Rule] = {f.name: f.metadata["rule"] for f in dataclasses.fields(Settings)}
DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(Settings)}
TYPES: dict[str, Any] = get_type_hints(Settings)
LISTS: frozenset[str] = frozenset(name for name, default in DEFAULTS.items() if isinstance(default, tuple))


def parse(name: str, given: object, origin: str) -> Any:
    """The typed value of setting `name`, given as text (flag, variable) or as a file's value.

    Raises SettingsError with `origin` in its message where the type or the range is wrong.
    """
    default = DEFAULTS[name]
    if isinstance(default, tuple):
        value: Any = tuple(_checked(name, item, origin) for item in _items(name, given, origin))
    else:
        value = _checked(name, _scalar(default, given, origin, RULES[name]), origin)
    return value


def _items(name: str, given: object, origin: str) -> list[str]:
    if isinstance(given, str):
        return [item.strip() for item in given.split(",") if item.strip()]
    if isinstance(given, list | tuple) and all(isinstance(item, str) for item in given):
        return list(given)
    raise SettingsError(f"{origin}: {name} must be a list of texts, not {_shown(given, RULES[name])}")


def _scalar(default: object, given: object, origin: str, rule: Rule) -> Any:
    if isinstance(default, bool):
        return _boolean(given, origin)
    if isinstance(default, int):
        return _whole(given, origin)
    if isinstance(default, float):
        return _number(given, origin)
    if not isinstance(given, str):
        raise SettingsError(f"{origin} must be a text, not {_shown(given, rule)}: put it in quotes")
    return at_home(Path(given), origin) if isinstance(default, Path) else given


def at_home(path: Path, origin: str) -> Path:
    """`path` with its `~` filled in. Raises SettingsError where that home is unknown."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise SettingsError(f"{origin}: the home folder in {str(path)!r} is unknown here; write the path out") from None


def _boolean(given: object, origin: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.strip().lower() in words:
        return words[given.strip().lower()]
    raise SettingsError(f"{origin} must be true or false, not {given!r}")


def _whole(given: object, origin: str) -> int:
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if isinstance(given, str) and len(given) <= MOST_DIGITS and re.fullmatch(r"[+-]?[0-9]+(_[0-9]+)*", given.strip()):
        return int(given)
    raise SettingsError(f"{origin} must be a whole number, not {given!r}")


def _number(given: object, origin: str) -> float:
    if isinstance(given, int | float | str) and not isinstance(given, bool):
        with contextlib.suppress(ValueError, OverflowError):
            return float(given)
    raise SettingsError(f"{origin} must be a number, not {given!r}")


def _checked(name: str, value: Any, origin: str) -> Any:
    """`value` if it keeps the setting's rule."""
    rule = RULES[name]
    if rule.choices and value not in rule.choices:
        raise SettingsError(f"{origin} must be one of {', '.join(rule.choices)}, not {value!r}")
    if rule.pattern and not re.fullmatch(rule.pattern, value):
        raise SettingsError(f"{origin} must be {rule.pattern_means}, not {_shown(value, rule)}")
    if not _in_range(value, rule):
        raise SettingsError(f"{origin} must be {_range(rule)}, not {value!r}")
    return value


def _in_range(value: Any, rule: Rule) -> bool:
    if isinstance(value, float) and not abs(value) < float("inf"):    # NaN compares false too
        return False
    return (
        (rule.at_least is None or value >= rule.at_least)
        and (rule.at_most is None or value <= rule.at_most)
        and (rule.above is None or value > rule.above)
    )


def _range(rule: Rule) -> str:
    parts = [f"{word} {bound}" for word, bound in (("at least", rule.at_least), ("at most", rule.at_most), ("above", rule.above))
             if bound is not None]
    return " and ".join(parts) or "finite"


def _shown(given: object, rule: Rule) -> str:
    return "what was given (hidden: it is a secret)" if rule.secret else repr(given)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
