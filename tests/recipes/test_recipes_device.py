from __future__ import annotations

from small_checkout import Checkout

DEVICE = """    Device("toy", "A toy", 600e12, 1e12, 100e9, 500, 50, 1.0, 60),
)
DEVICES = {"""


def test_a_device_is_an_entry(checkout: Checkout) -> None:
    checkout.replace("src/speclab/roofline/devices.py", ")\nDEVICES = {", DEVICE)
    checkout.replace("labs/small/lab.yml", "device: h100-sxm", "device: toy")

    predict = ("predict", "--acceptance", ".63,.38,.25", "--device", "toy", "--concurrency", "1,64", "--json")
    findings, figure, predicted = checkout.run(draw="figures.speed_up(found.findings, styles)", also=predict)
    assert "toy" in predicted
    assert set(findings["source"]) == {"simulated (toy)"}
    step = findings[(findings["finding"] == "step_time") & (findings["arm"] == "baseline")]["value"]
    # 15.0 GB of weights (the embedding is looked up) at four fifths of 1 TB/s: 18.8 ms; an H100 takes 5.6
    assert ((step > 18.8) & (step < 20.0)).all()

    assert figure["source"].endswith("simulated (toy)")
    assert "simulated (toy)" in checkout.page("speed_up")
