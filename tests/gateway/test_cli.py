"""The command line as a person meets it: a process of its own, its output, its exit code."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import __version__
from gateway.cli import main
from gateway.commands.serve import banner, base_url
from gateway.settings import DEFAULTS
from runtime.protocol import ModelInfo

ROOT = Path(__file__).resolve().parents[2]
HELP_PAGES = [[], ["serve"], ["pull"], ["doctor"], ["schema"], ["schema", "check"], ["config"], ["config", "show"]]


def turnstile(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TURNSTILE_")}
    return subprocess.run([sys.executable, "-m", "gateway", *arguments], env=clean | environ, cwd=ROOT,
                          capture_output=True, text=True, timeout=60)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TURNSTILE_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("page", HELP_PAGES, ids=" ".join)
def test_every_help_page_has_an_example(page, capsys):
    with pytest.raises(SystemExit) as end:
        main([*page, "--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    example = shown.partition("example")[2]
    assert f"turnstile {' '.join(page)}".strip() in example


def test_help_loads_neither_torch_nor_the_http_stack():
    code = "import sys, gateway.cli\ntry: gateway.cli.main(['--help'])\nexcept SystemExit: pass\nprint(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"torch", "numpy", "fastapi", "uvicorn", "huggingface_hub", "pydantic", "yaml"}
    assert not heavy & set(loaded)


def test_the_version_is_told():
    done = turnstile("--version")
    assert (done.returncode, done.stdout) == (0, f"turnstile {__version__}\n")


@pytest.mark.parametrize(("arguments", "says"), [
    (["serv"], "did you mean serve?"),
    (["serve", "--prot", "9000"], "unknown flag --prot; did you mean --port?"),
    (["serve", "--max-runing=4"], "unknown flag --max-runing; did you mean --max-running?"),
    (["config", "show", "--kv-cache"], "did you mean --kv-cache-tokens?"),
    (["schema", "chek", "x"], "did you mean check?"),
    (["pull", "one", "two"], "one argument too many: 'two'"),
    (["schema", "check"], "required: FILE"),
])
def test_a_wrong_command_is_exit_code_2_and_names_the_nearest(arguments, says, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["schema"], ["config"]])
def test_a_command_that_is_not_whole_shows_its_help(arguments, capsys):
    assert main(arguments) == 2
    assert "usage: turnstile" in capsys.readouterr().err


def test_a_wrong_setting_is_one_line_and_exit_code_2():
    done = turnstile("serve", TURNSTILE_PORT="eighty")
    assert done.returncode == 2
    assert done.stderr == "turnstile: variable TURNSTILE_PORT must be a whole number, not 'eighty'\n"


def test_config_show_tells_each_value_and_its_origin(tmp_path, monkeypatch, capsys):
    file = tmp_path / "turnstile.toml"
    file.write_text("max_waiting = 5\n")
    monkeypatch.setenv("TURNSTILE_PORT", "9000")
    assert main(["config", "show", "my-model", "--max-running", "7", "--config", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert set(shown) == set(DEFAULTS)
    assert shown["model"] == {"value": "my-model", "origin": "argument MODEL"}
    assert shown["max_running"] == {"value": 7, "origin": "flag --max-running"}
    assert shown["port"] == {"value": 9000, "origin": "variable TURNSTILE_PORT"}
    assert shown["max_waiting"] == {"value": 5, "origin": f"file {file}: max_waiting"}
    assert shown["threads"] == {"value": 0, "origin": "default"}


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_config_show_hides_secrets(form, capsys):
    assert main(["config", "show", "--api-keys", "alice:aaaa-hush", "--api-keys", "bob:bbbb-hush",
                 "--cache-secret", "0123456789abc-hush", "--redis-url", "redis://user:my-hush@cache:6379/0", *form]) == 0
    shown = capsys.readouterr().out
    assert "hush@" not in shown
    assert "-hush" not in shown
    for visible in ("alice:***", "bob:***", "redis://***@cache:6379/0"):
        assert visible in shown


@pytest.mark.parametrize(("url", "seen"), [
    ("redis://user:a/b-hush@cache:6379/0", "redis://***@cache:6379/0"),
    ("redis://cache:6379/0?username=u&password=c-hush", "redis://cache:6379/0?***"),
    ("unix:///run/redis.sock?password=d@e-hush", "unix:///run/redis.sock?***"),
    ("redis://cache:6379/0", "redis://cache:6379/0"),
])
def test_a_redis_password_is_hidden_wherever_its_address_may_hold_it(url, seen, capsys):
    assert main(["config", "show", "--json", "--redis-url", url]) == 0
    assert json.loads(capsys.readouterr().out)["redis_url"]["value"] == seen


def test_flags_of_a_list_may_be_repeated_or_joined(capsys):
    main(["config", "show", "--json", "--api-keys", "a:aaaaaaaa,b:bbbbbbbb", "--api-keys", "c:cccccccc"])
    assert json.loads(capsys.readouterr().out)["api_keys"]["value"] == ["a:***", "b:***", "c:***"]


def test_a_switch_needs_no_value(capsys):
    main(["config", "show", "--json", "--allow-open"])
    assert json.loads(capsys.readouterr().out)["allow_open"]["value"] is True


def test_a_port_in_use_is_told_before_the_model_is_touched(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = turnstile("serve", "--port", str(port), "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"turnstile: port {port} on 127.0.0.1 is in use by another program.")
    assert "--port" in done.stderr
    assert not (tmp_path / "data").exists()


def test_an_address_of_another_machine_is_told(tmp_path):
    done = turnstile("serve", "--host", "192.0.2.1", "--allow-open", "--port", "0", "--data-dir", str(tmp_path))
    assert done.returncode == 1
    assert "can't listen on 192.0.2.1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("model", "says"), [
    ("nowhere.gguf", "no model 'nowhere.gguf'"),
    (str(ROOT / "LICENSE"), "is no GGUF file"),
])
def test_a_model_that_is_none_is_told(model, says, tmp_path):
    done = turnstile("serve", model, "--port", "0", "--data-dir", str(tmp_path))
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_that_nobody_reads_ends_without_a_traceback():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-u", "-m", "gateway", "config", "show"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, cwd=ROOT, text=True)
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == ""


MODEL = ModelInfo("tiny", 2048, 100, "native", "cpu", 0.5)


def test_the_banner_says_where_everything_is_and_its_curl_lines_are_valid_json():
    shown = banner(MODEL, "http://127.0.0.1:8000", with_key=False)
    for path in ("/v1", "/dashboard", "/docs"):
        assert f"http://127.0.0.1:8000{path}\n" in shown
    bodies = [json.loads(line.split(" -d '")[1].split("'")[0]) for line in shown.splitlines() if "curl" in line]
    assert bodies[0]["response_format"]["json_schema"]["schema"]["required"] == ["city", "inhabitants"]
    assert bodies[0]["messages"] == bodies[1]["messages"]
    assert "Authorization" not in shown
    assert "native kernels are missing" not in shown


def test_the_banner_asks_for_the_key_where_one_is_needed_and_says_once_that_it_will_be_slow():
    slow = ModelInfo("tiny", 2048, 100, "reference", "cpu", 0.5)
    shown = banner(slow, "http://127.0.0.1:8000", with_key=True)
    assert shown.count("Authorization: Bearer $KEY") == 2
    assert shown.count("native kernels are missing") == 1


@pytest.mark.parametrize(("host", "url"), [
    ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]"),
])
def test_the_address_told_is_one_that_this_machine_can_open(host, url):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        assert base_url(host, listener) == f"http://{url}:{listener.getsockname()[1]}"
