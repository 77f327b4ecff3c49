"""Settings: one table, three ways to give each, one precedence, and errors that name the origin."""

from __future__ import annotations

import dataclasses
import os
import stat
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.configuration import flag_of, read_configuration, variable_of
from gateway.secret import SecretUnreadable, kept_secret, with_cache_secret
from gateway.settings import DEFAULTS, RULES, Settings, SettingsError
from runtime.config import EngineConfig

# One value that differs from the default for every setting: as text, and as what it must become.
SAMPLES: dict[str, tuple[str, object]] = {
    "model": ("other", "other"),
    "model_name": ("shown", "shown"),
    "data_dir": ("/srv/models", Path("/srv/models")),
    "host": ("localhost", "localhost"),
    "port": ("9000", 9000),
    "allow_open": ("true", True),
    "api_keys": ("alice:aaaaaaaa,bob:bbbbbbbb", ("alice:aaaaaaaa", "bob:bbbbbbbb")),
    "admin_key": ("an-operators-key", "an-operators-key"),
    "cache_secret": ("0123456789abcdef", "0123456789abcdef"),
    "device": ("cpu", "cpu"),
    "kernels": ("reference", "reference"),
    "threads": ("3", 3),
    "block_tokens": ("32", 32),
    "kv_cache_tokens": ("4_096", 4096),
    "max_context_tokens": ("1024", 1024),
    "max_running": ("7", 7),
    "step_tokens": ("128", 128),
    "max_waiting": ("3", 3),
    "step_timeout_s": ("30", 30.0),
    "idle_sleep_s": ("900", 900.0),
    "cache_ttl_s": ("2.5", 2.5),
    "forced_runs": ("false", False),
    "guessing_rows": ("4", 4),
    "seed": ("11", 11),
    "style": ("free", "free"),
    "max_body_bytes": ("2048", 2048),
    "request_timeout_s": ("30", 30.0),
    "drain_timeout_s": ("7.5", 7.5),
    "redis_url": ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
    "log_level": ("debug", "debug"),
}


def settings_of(flags: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None,
                file: Path | None = None) -> Settings:
    return read_configuration(flags or {}, environ or {}, file).settings


def test_the_operators_key_must_be_no_tenants_and_long_enough():
    with pytest.raises(SettingsError, match="tenant's key"):
        settings_of({"admin_key": "one-key-for-both", "api_keys": "alice:one-key-for-both"})
    with pytest.raises(SettingsError, match="16 to 256 visible") as refused:
        settings_of({"admin_key": "too short"})
    assert "too short" not in str(refused.value)


def test_every_setting_has_a_sample_here():
    assert set(SAMPLES) == set(DEFAULTS)


def test_nothing_given_means_the_defaults_on_loopback():
    configuration = read_configuration({}, {})
    assert configuration.settings.host == "127.0.0.1"
    assert configuration.settings.port == 8000
    assert configuration.settings.max_body_bytes == 8 * 1024 * 1024
    assert set(configuration.origins.values()) == {"default"}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_setting_can_be_given_as_flag_variable_yaml_or_toml(name, tmp_path):
    text, wanted = SAMPLES[name]
    yaml_file, toml_file = tmp_path / "a.yaml", tmp_path / "a.toml"
    native = wanted if isinstance(wanted, bool | int | float) else text
    literal = str(native).lower() if isinstance(native, bool) else f'"{native}"' if isinstance(native, str) else str(native)
    yaml_file.write_text(f"{name}: {literal}\n")
    toml_file.write_text(f"{name} = {literal}\n")
    for settings in (
        settings_of({name: text}),
        settings_of({}, {variable_of(name): text}),
        settings_of({}, {}, yaml_file),
        settings_of({}, {"TURNSTILE_CONFIG": str(toml_file)}),
    ):
        assert getattr(settings, name) == wanted
        assert type(getattr(settings, name)) is type(wanted) or isinstance(wanted, Path)


def test_a_flag_beats_a_variable_beats_a_file_beats_the_default(tmp_path):
    file = tmp_path / "turnstile.yaml"
    file.write_text("port: 3\nmax_running: 3\nstep_tokens: 3\n")
    found = read_configuration({"port": "1"}, {"TURNSTILE_PORT": "2", "TURNSTILE_MAX_RUNNING": "2"}, file)
    settings = found.settings
    assert (settings.port, settings.max_running, settings.step_tokens, settings.threads) == (1, 2, 3, 0)
    origins = [found.origins[name] for name in ("port", "max_running", "step_tokens", "threads")]
    assert origins == ["flag --port", "variable TURNSTILE_MAX_RUNNING", f"file {file}: step_tokens", "default"]


def test_a_variable_set_to_nothing_counts_as_not_set():
    assert settings_of({}, {"TURNSTILE_PORT": ""}).port == 8000


def test_other_programs_variables_are_left_alone():
    assert settings_of({}, {"PORT": "1", "MYTURNSTILE_PORT": "1"}).port == 8000


@pytest.mark.parametrize(("variable", "nearest"), [
    ("TURNSTILE_PROT", "TURNSTILE_PORT"),
    ("TURNSTILE_APIKEYS", "TURNSTILE_API_KEYS"),
    ("TURNSTILE_port", "TURNSTILE_PORT"),
    ("TURNSTILE_CONFG", "TURNSTILE_CONFIG"),
])
def test_an_unknown_variable_is_an_error_that_names_the_nearest_one(variable, nearest):
    with pytest.raises(SettingsError, match=rf"unknown variable {variable}; did you mean {nearest}\?"):
        settings_of({}, {variable: "1"})


@pytest.mark.parametrize(("content", "suffix", "nearest"), [
    ("max_runing: 4", ".yaml", "max_running"),
    ("kv-cache-tokens: 4", ".yml", "kv_cache_tokens"),
    ("cache_ttl = 4", ".toml", "cache_ttl_s"),
])
def test_an_unknown_key_is_an_error_that_names_file_and_nearest_key(content, suffix, nearest, tmp_path):
    file = tmp_path / f"turnstile{suffix}"
    file.write_text(content)
    with pytest.raises(SettingsError, match=rf"turnstile{suffix}: unknown key .*; did you mean {nearest}\?"):
        settings_of({}, {}, file)


def test_a_name_that_resembles_nothing_gets_no_suggestion():
    with pytest.raises(SettingsError) as error:
        settings_of({}, {"TURNSTILE_QQQQQQQQQQQQQQQQQQQQQQ": "1"})
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize(("name", "text", "says"), [
    ("port", "eighty", "a whole number"),
    ("port", "80.5", "a whole number"),
    ("port", "65536", "at least 0 and at most 65535"),
    ("port", "-1", "at least 0"),
    ("port", "9" * 5000, "a whole number"),
    ("cache_ttl_s", "0", "above 0"),
    ("cache_ttl_s", "nan", "above 0"),
    ("cache_ttl_s", "inf", "above 0"),
    ("cache_ttl_s", "soon", "a number"),
    ("allow_open", "maybe", "true or false"),
    ("device", "gpu", "one of auto, cpu, cuda"),
    ("redis_url", "http://127.0.0.1", "redis://"),
    ("max_running", "0", "at least 1"),
])
def test_a_wrong_value_names_its_origin_and_what_would_be_right(name, text, says):
    by_flag, by_variable = ({name: text}, {}, f"flag {flag_of(name)}"), ({}, {variable_of(name): text}, variable_of(name))
    for flags, environ, origin in (by_flag, by_variable):
        with pytest.raises(SettingsError) as error:
            settings_of(flags, environ)
        assert origin in str(error.value)
        assert says in str(error.value)


@pytest.mark.parametrize(("content", "says"), [
    ("port: true", "port must be a whole number, not True"),
    ("port: '12a'", "port must be a whole number, not '12a'"),
    ("model_name: 7", "model_name must be a text, not 7"),
    ("allow_open: 1", "allow_open must be true or false, not 1"),
    ("api_keys: {alice: aaaaaaaa}", "api_keys must be a list of texts"),
    ("- port", "must hold keys and values"),
    ("port: [", "is not YAML at line 1"),
    ("port: 8001\nhost: localhost\nport: 8002", "'port' is given twice"),
    (f"port: {'9' * 5000}", "can't be read"),
    (f"port: {'[' * 5000}", "can't be read"),
    (f"cache_ttl_s: {'9' * 400}", "cache_ttl_s must be a number"),
], ids=lambda text: text[:20])
def test_a_wrong_file_is_an_error_that_names_the_file(content, says, tmp_path):
    file = tmp_path / "turnstile.yaml"
    file.write_text(content)
    with pytest.raises(SettingsError) as error:
        settings_of({}, {}, file)
    assert str(file) in str(error.value)
    assert says in str(error.value)


def test_wrong_toml_is_an_error_with_its_line(tmp_path):
    file = tmp_path / "turnstile.toml"
    file.write_text("port = 8000\nhost = \nmodel = 'x'")
    with pytest.raises(SettingsError, match=r"is not TOML: .*line 2"):
        settings_of({}, {}, file)


def test_an_empty_file_sets_nothing(tmp_path):
    file = tmp_path / "turnstile.yaml"
    file.write_text("# nothing yet\n")
    assert settings_of({}, {}, file).port == 8000


def test_the_home_of_nobody_is_an_error_that_says_where_it_was_given():
    with pytest.raises(SettingsError, match=r"flag --data-dir: the home folder in '~nobody-of-this-name/x' is unknown"):
        read_configuration({"data_dir": "~nobody-of-this-name/x"}, {})
    with pytest.raises(SettingsError, match="configuration file: the home folder in"):
        read_configuration({}, {}, Path("~nobody-of-this-name/x.yaml"))


def test_a_file_that_is_missing_or_of_another_kind_is_an_error(tmp_path):
    with pytest.raises(SettingsError, match="No such file"):
        settings_of({}, {}, tmp_path / "none.yaml")
    with pytest.raises(SettingsError, match=r"must end in \.yaml"):
        settings_of({}, {}, tmp_path / "turnstile.ini")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "gateway.example"])
def test_listening_beyond_loopback_needs_a_key_or_a_word(host):
    with pytest.raises(SettingsError, match=r"api_keys|allow_open"):
        settings_of({"host": host})
    assert settings_of({"host": host, "allow_open": "true"}).host == host
    assert settings_of({"host": host, "api_keys": "alice:aaaaaaaa"}).host == host


def test_a_step_needs_a_token_for_each_running_sequence():
    with pytest.raises(SettingsError, match=r"step_tokens is 8 .*max_running 16"):
        settings_of({"step_tokens": "8", "max_running": "16"})
    assert settings_of({"step_tokens": "16", "max_running": "16"}).step_tokens == 16


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_neither(host):
    assert settings_of({"host": host}).loopback


def test_one_key_may_not_stand_for_two_tenants():
    with pytest.raises(SettingsError, match="given twice"):
        settings_of({"api_keys": "alice:samesame,bob:samesame"})


def test_one_tenant_may_have_two_keys():
    assert len(settings_of({"api_keys": "alice:aaaaaaaa,alice:bbbbbbbb"}).api_keys) == 2


def test_a_secret_is_never_repeated_in_an_error():
    with pytest.raises(SettingsError) as error:
        settings_of({"api_keys": "no-colon-but-very-secret"})
    assert "very-secret" not in str(error.value)
    with pytest.raises(SettingsError) as error:
        settings_of({"cache_secret": "short-secret"})
    assert "short-secret" not in str(error.value)


def test_the_engine_gets_its_share_of_the_settings():
    given = {name: SAMPLES[name][0] for name in SAMPLES if name != "model_name"}
    config = settings_of(given).engine_config(Path("/models/a.gguf"))
    assert config.model_path == Path("/models/a.gguf")
    assert config.model_name == "a"
    for field in dataclasses.fields(EngineConfig):
        if field.name not in ("model_path", "model_name"):
            assert getattr(config, field.name) == SAMPLES[field.name][1]


def test_the_name_that_clients_ask_for_can_be_chosen():
    assert settings_of({"model_name": "mine"}).engine_config(Path("a.gguf"), "smollm2-135m-instruct").model_name == "mine"
    assert settings_of().engine_config(Path("a.gguf"), "smollm2-135m-instruct").model_name == "smollm2-135m-instruct"


def test_defaults_agree_with_the_engine_s_own():
    theirs = {field.name: field.default for field in dataclasses.fields(EngineConfig) if field.default is not dataclasses.MISSING}
    assert {name: DEFAULTS[name] for name in theirs} == theirs


def test_every_setting_says_what_it_is_for():
    assert all(len(rule.help) > 10 for rule in RULES.values())


def test_the_cache_secret_is_made_once_and_only_this_user_reads_it(tmp_path):
    first = with_cache_secret(settings_of({"data_dir": str(tmp_path / "new")})).cache_secret
    again = with_cache_secret(settings_of({"data_dir": str(tmp_path / "new")})).cache_secret
    assert first == again
    assert len(bytes.fromhex(first)) == 32
    kept = tmp_path / "new" / "cache_secret"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert os.listdir(tmp_path / "new") == ["cache_secret"]


def test_two_gateways_that_start_at_once_share_one_secret(tmp_path):
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(kept_secret(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_cache_secret_that_is_no_text_is_told(tmp_path):
    (tmp_path / "cache_secret").write_bytes(b"\xff" * 32)
    with pytest.raises(SecretUnreadable, match="is no text"):
        kept_secret(tmp_path)


def test_a_given_cache_secret_is_used_and_nothing_is_written(tmp_path):
    settings = settings_of({"data_dir": str(tmp_path), "cache_secret": "0123456789abcdef"})
    assert with_cache_secret(settings).cache_secret == "0123456789abcdef"
    assert os.listdir(tmp_path) == []
