"""The container files, as far as they can be checked without a container engine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from gateway.configuration import CONFIG_VARIABLE, variable_of
from gateway.ledger import Ledger
from gateway.metrics import render
from gateway.settings import DEFAULTS
from runtime.protocol import EngineStats, ModelInfo, PoolStats

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
BOARD = json.loads((ROOT / "deploy/grafana/dashboards/turnstile.json").read_text())
PINNED = re.compile(r"[\w./-]+:v?\d+\.\d+\.\d+[\w.-]*")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, continuation lines joined, comments dropped."""
    lines = [line for line in DOCKERFILE.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined)]


def test_the_four_services_are_there():
    assert set(SERVICES) == {"gateway", "redis", "prometheus", "grafana"}


@pytest.mark.parametrize("service", SERVICES)
def test_every_image_is_pinned_to_a_version(service):
    assert PINNED.fullmatch(SERVICES[service]["image"])


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_published_on_this_machine_only(service):
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[service].get("ports", []))


def test_every_named_volume_is_declared_and_every_file_mounted_exists():
    mounts = [mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])]
    named = {mount for mount in mounts if not mount.startswith(".")}
    assert named == set(COMPOSE["volumes"])
    assert all((ROOT / mount).exists() for mount in mounts if mount.startswith("."))


def test_the_gateway_has_a_healthcheck_on_a_route_that_exists_and_waits_for_redis():
    assert "/health/ready" in SERVICES["gateway"]["healthcheck"]["test"][-1]
    assert "/health/ready" in (ROOT / "gateway/api/health.py").read_text()
    assert SERVICES["gateway"]["depends_on"]["redis"]["condition"] == "service_healthy"
    assert SERVICES["redis"]["healthcheck"]["test"] == ["CMD", "redis-cli", "ping"]


def test_the_variables_given_to_the_gateway_are_settings():
    image = re.findall(r"\b(TURNSTILE_\w+)=", " ".join(rest for word, rest in instructions() if word == "ENV"))
    given = {*SERVICES["gateway"]["environment"], *image}
    assert given <= {*map(variable_of, DEFAULTS), CONFIG_VARIABLE}


def test_every_variable_that_compose_reads_is_in_the_example():
    read = set(re.findall(r"\$\{(\w+)", (ROOT / "docker-compose.yml").read_text()))
    example = set(re.findall(r"^(\w+)=", (ROOT / ".env.example").read_text(), flags=re.MULTILINE))
    assert read == example


@pytest.mark.skipif(
    shutil.which("docker") is None or subprocess.run(["docker", "compose", "version"], capture_output=True).returncode != 0,
    reason="needs docker with its compose plugin")
def test_compose_itself_takes_the_file():
    environment = os.environ | {"GRAFANA_ADMIN_PASSWORD": "x"}
    subprocess.run(["docker", "compose", "config", "--quiet"], cwd=ROOT, check=True, env=environment)


def test_the_dockerfile_s_base_images_are_pinned():
    stages = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert len(stages) == 2
    assert all(PINNED.fullmatch(image) for image in stages)


def test_packages_are_installed_without_recommendations_and_leave_no_lists():
    runs = [rest for word, rest in instructions() if word == "RUN" and "apt-get install" in rest]
    assert runs
    for needed in ("apt-get update", "--no-install-recommends", "rm -rf /var/lib/apt/lists/*"):
        assert all(needed in run for run in runs)


def test_nothing_is_added_and_pip_keeps_no_cache():
    assert not [word for word, _ in instructions() if word == "ADD"]
    assert all("--no-cache-dir" in rest for word, rest in instructions() if word == "RUN" and "pip install" in rest)


def test_torch_in_the_image_is_the_one_that_the_project_pins():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = [requirement for requirement in project["dependencies"] if requirement.startswith("torch==")]
    assert pinned
    assert pinned[0] in DOCKERFILE


def test_it_runs_as_an_ordinary_user_and_only_commands_in_list_form():
    words = [word for word, _ in instructions()]
    last_user = [rest for word, rest in instructions() if word == "USER"][-1]
    assert last_user not in ("root", "0")
    assert words.index("USER") < words.index("ENTRYPOINT")
    forms = [rest for word, rest in instructions() if word in ("ENTRYPOINT", "CMD")]
    assert forms and all(isinstance(json.loads(form), list) for form in forms)


def test_everything_that_is_copied_exists_and_is_not_ignored():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for word, rest in instructions() if word == "COPY" and "--from" not in rest for name in rest.split()[:-1]}
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def test_every_package_of_the_project_is_in_the_image():
    include = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{name.removesuffix('*')}" for name in include} <= set(kept)


def test_prometheus_reads_the_gateway_s_port():
    jobs = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text())["scrape_configs"]
    assert jobs[0]["static_configs"][0]["targets"] == ["gateway:8000"]
    assert SERVICES["gateway"]["ports"][0].endswith(":8000")


def test_grafana_is_provisioned_with_the_source_and_the_folder_that_the_board_uses():
    provisioning = ROOT / "deploy/grafana/provisioning"
    source = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"][0]
    provider = yaml.safe_load((provisioning / "dashboards/turnstile.yml").read_text())["providers"][0]
    assert source["url"] == "http://prometheus:9090"
    assert {target["datasource"]["uid"] for panel in BOARD["panels"] for target in panel["targets"]} == {source["uid"]}
    mounts = dict(mount.split(":")[:2] for mount in SERVICES["grafana"]["volumes"])
    assert mounts["./deploy/grafana/dashboards"] == provider["options"]["path"]
    assert mounts["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"


def rendered_metrics() -> dict[str, set[str]]:
    """Each metric of a fresh gateway with its label names."""
    pool = PoolStats("device", 8, 8, 0, 0, 16, 1024)
    model = ModelInfo("tiny", 128, 10, "native", "cpu", 0.1)
    text = render(Ledger(lambda: 0.0, lambda: 0.0).snapshot(), EngineStats(pools=(pool,)), "ready", model, "0.1.0")
    found: dict[str, set[str]] = {name: set() for name in re.findall(r"^# TYPE (\w+)", text, flags=re.MULTILINE)}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, flags=re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return found


def test_every_metric_and_label_on_the_board_is_one_that_the_gateway_has():
    known = rendered_metrics()
    always_labelled_later = {"turnstile_requests_total": {"endpoint", "status"}}        # no request has ended yet
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            for name in re.findall(r"turnstile_\w+", target["expr"]):
                assert name in known, f"{panel['title']}: {name}"
            labels = {label for group in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in re.split(r",\s*", group)}
            names = re.findall(r"turnstile_\w+", target["expr"])
            has = set().union(*(known[name] | always_labelled_later.get(name, set()) for name in names))
            assert labels <= has, f"{panel['title']}: {labels - has}"


def test_panels_do_not_overlap_and_each_says_what_it_shows():
    cells: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & own, panel["title"]
        cells |= own
        assert len(panel["description"]) > 10
