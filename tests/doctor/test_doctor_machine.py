from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from speclab import lab as labs
from speclab import paths
from speclab.doctor import RULES, examine, models, report
from speclab.doctor.base import Diagnosis, Gpu, Machine
from speclab.doctor.machine import gpus, probe
from speclab.lab import Lab

SECRET = "hf_not_a_real_one"


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty hub cache, no token, and no driver on the path."""
    for name in ("HF_HUB_CACHE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub-home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def of_lab09(machine: Machine) -> tuple[Lab, list[Diagnosis]]:
    lab = labs.load("lab09")
    return lab, examine(lab, [lab.arm(name) for name in lab.arms], "vllm", machine)


def test_lab09_has_nothing_wrong_with_its_flags_on_an_h100() -> None:
    h100 = Gpu(name="NVIDIA H100 80GB HBM3", memory_bytes=85_520_809_984)  # 81559 MiB, as its driver says
    ready = Machine(vllm="0.33.0", vllm_build="gpu", gpus=(h100,), has_hub_token=True, memory_bytes=10**12,
                    disk_bytes={"records": 10**12, "models": 10**12})  # fmt: skip
    lab, diagnoses = of_lab09(ready)
    assert [found for found in diagnoses if found.level in ("will fail", "will mislead")] == []
    fine = {(found.rule, found.arm) for found in diagnoses if found.level == "fine"}
    assert {("CUDA graphs", name) for name in lab.arms} <= fine
    assert {("KV room", name) for name in lab.arms} <= fine
    assert ("same flags", None) in fine


def test_a_machine_without_anything_lacks_what_lab09_needs(nowhere: Path) -> None:
    lab = labs.load("lab09")
    arms = [lab.arm(name) for name in lab.arms]
    machine = probe(lab, arms, "endpoint").model_copy(update={"vllm": None, "vllm_build": None})
    failing = {(found.rule, found.arm) for found in examine(lab, arms, "vllm", machine) if found.level == "will fail"}
    assert {("vLLM", None), ("target", None), ("drafter", "draft-1b-k3")} <= failing
    assert machine.gpus == ()
    assert machine.can_listen
    assert machine.disk_bytes["records"] > 0


def test_every_rule_cites_something_where_it_complains() -> None:
    _, diagnoses = of_lab09(Machine())
    complaints = [found for found in diagnoses if found.level in ("will fail", "will mislead")]
    assert len(complaints) >= 4
    assert all(found.cites and found.remedy for found in complaints)


def test_a_token_is_seen_and_never_kept(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = labs.load("lab09")
    assert not probe(lab, [], "endpoint").has_hub_token
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    machine = probe(lab, [], "endpoint")
    assert machine.has_hub_token
    assert machine.has_api_key
    assert SECRET not in machine.model_dump_json()


def test_a_driver_is_asked_for_its_gpus(nowhere: Path) -> None:
    smi = nowhere / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, 81559'\necho 'NVIDIA H100 80GB HBM3, 81559'\n")
    smi.chmod(0o755)
    assert gpus() == (Gpu(name="NVIDIA H100 80GB HBM3", memory_bytes=81559 * 2**20),) * 2


def test_models_are_found_in_the_hubs_cache_and_in_folders(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "owner/small"
    assert models.find(name, os.environ).place == "hub"
    snapshot = nowhere / "hub-home" / "hub" / "models--owner--small" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps({"vocab_size": 7}))
    (snapshot / "model.safetensors").write_bytes(b"12345")
    found = models.find(name, os.environ)
    assert (found.place, found.config, found.weight_bytes) == ("hub cache", {"vocab_size": 7}, 5)
    monkeypatch.setenv("SPECLAB_ROOT", str(nowhere))
    assert models.find("models/none", os.environ).place == "missing folder"
    assert models.find(str(snapshot), os.environ).weight_bytes == 5
    assert paths.root() == nowhere


def test_what_is_said_of_every_arm_is_said_once() -> None:
    lab, diagnoses = of_lab09(Machine())
    of_all = [found.rule for found in diagnoses if found.arm is None]
    assert len(of_all) == len(set(of_all))
    assert "vLLM" in of_all
    assert {found.arm for found in diagnoses} == {None, *lab.arms}
    levels = [found.level for found in diagnoses if found.arm is None]
    assert levels == sorted(levels, key=["will fail", "will mislead", "not known here", "fine"].index)


def test_each_engine_has_its_rules() -> None:
    lab = labs.load("lab09")
    arms = [lab.arm("baseline"), lab.arm("ngram-k8")]
    simulated = examine(lab, arms, "simulated", Machine(disk_bytes={"records": 10**12}))
    assert [(found.rule, found.level) for found in simulated] == [("disk", "fine")]
    endpoint = examine(lab, arms, "endpoint", Machine())
    assert [found.rule for found in endpoint if found.level == "will fail"] == ["endpoint"]
    assert set(RULES) == {"vllm", "endpoint", "simulated"}


def test_the_table_counts_and_the_json_reads_back() -> None:
    _, diagnoses = of_lab09(Machine())
    rows = json.loads(report.to_json(diagnoses))
    assert [Diagnosis.model_validate(row) for row in rows] == diagnoses
    failing = sum(row["level"] == "will fail" for row in rows)
    assert report.counted(diagnoses).startswith(f"{failing} will fail · ")
