from __future__ import annotations

from small_checkout import Checkout

ARM = """
lab: small
arm: look-up
label: n-gram, k = 2
speculation: {method: ngram, num_speculative_tokens: 2, prompt_lookup_min: 2, prompt_lookup_max: 4}
simulated:
  host_ms_per_step: 0.3
  draft_rate: {chat: 0.4}
  acceptance: {chat: [0.5, 0.3]}
"""


def test_an_arm_is_a_file_and_its_name(checkout: Checkout) -> None:
    (checkout.root / "labs/small/look-up.yml").write_text(ARM, encoding="utf-8")
    checkout.replace("labs/small/lab.yml", "[baseline, eagle3-k3]", "[baseline, eagle3-k3, look-up]")

    findings, figure, _ = checkout.run(draw="figures.speed_up(found.findings, styles)")
    speed_ups = findings[(findings["finding"] == "speed_up") & (findings["arm"] == "look-up")]
    assert speed_ups["concurrency"].tolist() == [1, 8]
    assert (speed_ups["status"] == "ok").all()

    assert {"EAGLE-3, k=3", "n-gram, k=2"} <= set(figure["words"])
    colours, markers = zip(*figure["lines"], strict=True)
    assert len(colours) == len(set(colours)) == len(set(markers)) == 2, "a colour and a marker each"
    assert "look-up" in checkout.page("speed_up")
