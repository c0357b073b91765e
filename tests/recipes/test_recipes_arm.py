from __future__ import annotations

from small_checkout import Checkout

ARM = """
lab: small
arm: ngram-k2
label: n-gram, k = 2
speculation: {method: ngram, num_speculative_tokens: 2, prompt_lookup_min: 2, prompt_lookup_max: 4}
simulated:
  floor_ms_per_position: 0.1
  coverage: {chat: 0.4}
  acceptance: {chat: [0.5, 0.3]}
"""


def test_an_arm_is_a_file_and_its_name(checkout: Checkout) -> None:
    (checkout.root / "labs/small/ngram-k2.yml").write_text(ARM, encoding="utf-8")
    checkout.replace("labs/small/lab.yml", "[baseline, eagle3-k3]", "[baseline, eagle3-k3, ngram-k2]")

    findings, figure, _ = checkout.run(draw="figures.speed_up(found.findings, styles)")
    speed_ups = findings[(findings["finding"] == "speed_up") & (findings["arm"] == "ngram-k2")]
    assert speed_ups["concurrency"].tolist() == [1, 8]
    assert (speed_ups["status"] == "ok").all()

    assert {"EAGLE-3, k=3", "n-gram, k=2"} <= set(figure["words"])
    colours, markers = zip(*figure["lines"], strict=True)
    assert len(colours) == len(set(colours)) == len(set(markers)) == 2, "a colour and a marker each"
    assert "ngram-k2" in checkout.page("speed_up")
