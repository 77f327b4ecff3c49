"""Which operations are chosen, and that a pool of threads survives what processes do."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import pytest
import torch

from kernels import library
from kernels.ops import NativeUnavailable, load_ops, native_ops

CPU = torch.device("cpu")


def test_auto_takes_the_native_operations_where_the_library_is(native_library):
    assert load_ops(CPU, "auto").name == "native"


def test_reference_takes_the_references_although_the_library_is_there():
    assert load_ops(CPU, "reference").name == "reference"


@pytest.fixture
def no_library(monkeypatch):
    monkeypatch.setattr(library, "_outcome", lambda: (None, "the native library was not built; to get it, do this"))


def test_auto_without_a_library_falls_back_with_one_warning_that_says_why(no_library, caplog):
    with caplog.at_level(logging.WARNING):
        assert load_ops(CPU, "auto").name == "reference"
    assert [record.getMessage() for record in caplog.records] == [
        "running the plain torch operations, several times slower: the native library was not built; to get it, do this"
    ]


def test_native_without_a_library_is_an_error_that_says_why(no_library):
    with pytest.raises(NativeUnavailable, match="was not built; to get it, do this"):
        load_ops(CPU, "native")


def test_other_devices_take_the_references_without_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        assert load_ops(torch.device("meta"), "auto").name == "reference"
    assert caplog.records == []


def test_native_operations_refuse_other_devices(native_library):
    with pytest.raises(NativeUnavailable, match="run on CPUs, not on meta"):
        load_ops(torch.device("meta"), "native")


def test_callers_at_the_same_time_do_not_disturb_each_other(native_library, make_weight):
    ops = native_ops(native_library)
    packed, x = ops.pack(make_weight("q4_1", 300, 576)), torch.randn(4, 9, 576)
    expected = [ops.linear(part, packed) for part in x]
    wrong: list[int] = []

    def call(i: int) -> None:
        for _ in range(50):
            if not torch.equal(ops.linear(x[i], packed), expected[i]):
                wrong.append(i)

    callers = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux, to count a process's threads")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(native_library, make_weight):
    ops = native_ops(native_library)
    packed, x = ops.pack(make_weight("q4_1", 300, 576)), torch.randn(9, 576)
    before = native_library.turnstile_threads()
    ops.set_threads(3)
    expected = ops.linear(x, packed)
    child = os.fork()
    if child == 0:
        same = torch.equal(ops.linear(x, packed), expected)
        os._exit(0 if same and len(os.listdir("/proc/self/task")) == 3 else 1)
    _, status = os.waitpid(child, 0)
    ops.set_threads(before)
    assert os.waitstatus_to_exitcode(status) == 0
