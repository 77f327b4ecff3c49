"""An operator puts a real server's engine to sleep and wakes it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.served import children_of, serve

KEY = "an-operators-own-key"
OPERATOR = {"authorization": f"Bearer {KEY}"}
pytestmark = pytest.mark.timeout(240)


def engines(pid: int) -> list[int]:
    """The server's children that hold a model: those with memory to speak of."""
    statm = {child: Path(f"/proc/{child}/statm") for child in children_of(pid)}
    return [child for child, path in statm.items() if path.exists() and int(path.read_text().split()[1]) * 4096 > 100 << 20]


def test_asleep_it_holds_no_model_and_awake_it_answers_as_before(model_path: Path, tmp_path: Path) -> None:
    flags = [str(model_path), "--data-dir", str(tmp_path), "--kv-cache-tokens", "4096", "--admin-key", KEY]
    with serve(tmp_path, *flags) as server, httpx.Client(base_url=server.url, timeout=120) as client:
        body = {"model": client.get("/v1/models").json()["data"][0]["id"], "temperature": 0, "max_tokens": 8,
                "messages": [{"role": "user", "content": "Name a city in France."}]}
        before = client.post("/v1/chat/completions", json=body).json()
        assert len(engines(server.process.pid)) == 1
        assert client.post("/v1/engine/sleep").status_code == 401
        assert client.post("/v1/engine/sleep", headers=OPERATOR).json()["status"] == "asleep"
        assert engines(server.process.pid) == []
        refused = client.post("/v1/chat/completions", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "engine_asleep")
        assert client.get("/health/ready").status_code == 503
        woken = client.post("/v1/engine/wake", headers=OPERATOR).json()
        assert (woken["status"], woken["takes_requests"]) == ("ready", True)
        after = client.post("/v1/chat/completions", json=body).json()
    assert after["choices"] == before["choices"]
    assert after["system_fingerprint"] == before["system_fingerprint"]
