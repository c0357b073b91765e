"""A tiny random target from its first question to drafters that can be served; the network beside transformers' own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the extra drafters is not installed here")

import torch
from safetensors.torch import load_file, save_file

from speclab.drafters import checkpoint, corpus, distill, head_training, loss, making, training
from speclab.drafters.batches import Batch, CorpusRows
from speclab.drafters.dialogue import Dialogue
from speclab.drafters.generate import write
from speclab.drafters.llama import TargetNetwork
from speclab.drafters.loss import Goal, cross_entropy
from speclab.drafters.recipe import Recipe
from speclab.drafters.replay import Tally
from speclab.engines import weights
from speclab.errors import UserError


@pytest.fixture(scope="module")
def made(recipe: Recipe, work: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    into = tmp_path_factory.mktemp("drafters")
    return {
        part: making.make(part, recipe, work, into, into / "tiny", lambda line: None)
        for part in ("head", "draft-model")
    }


def test_answers_and_states_are_those_of_transformers(target: Path) -> None:
    from transformers import AutoModelForCausalLM

    ours, dialogue = TargetNetwork.load(target), Dialogue.load(target)
    prompts = [dialogue.asked(text) for text in ("again and again", "def add(first, second):", "A draft")]
    rows = write(ours, prompts, most=10, stops=(), keep=(0, 1, 2))
    theirs = AutoModelForCausalLM.from_pretrained(target, dtype=torch.bfloat16)
    last_layer: list[torch.Tensor] = []
    theirs.model.norm.register_forward_pre_hook(lambda module, inputs: last_layer.append(inputs[0]))
    for row in rows:
        with torch.no_grad():
            said = theirs(row.tokens[None], output_hidden_states=True)
        assert said.logits[0, row.prompt - 1 : -1].argmax(-1).tolist() == row.tokens[row.prompt :].tolist()
        states = torch.stack([said.hidden_states[0][0], said.hidden_states[1][0], last_layer.pop()[0]], dim=1)[:-1]
        torch.testing.assert_close(row.states.float(), states.float(), rtol=0.05, atol=0.02)  # bfloat16: 8 bits


def test_rows_that_end_leave_the_others_as_they_were(target: Path) -> None:
    ours, dialogue = TargetNetwork.load(target), Dialogue.load(target)
    prompts = [dialogue.asked(f"again {number}") for number in range(6)]
    whole = write(ours, prompts, most=12, stops=())
    stop = int(whole[0].tokens[whole[0].prompt + 3])
    cut = write(ours, prompts, most=12, stops=(stop,))
    for ended, full in zip(cut, whole, strict=True):
        answer = full.tokens[full.prompt :].tolist()
        expected = answer[: answer.index(stop) + 1] if stop in answer else answer
        assert ended.tokens[ended.prompt :].tolist() == expected
    assert len(cut[0].tokens) - cut[0].prompt <= 4


def test_a_corpus_goes_on_where_it_stopped(recipe: Recipe, work: Path) -> None:
    shards = corpus.files(work / "corpus")
    before = load_file(str(shards[0]))
    shards[0].unlink()
    said: list[str] = []
    corpus.make(recipe, work / "corpus", workers=1, say=said.append)
    assert [line.split(";")[0].split(":")[0] for line in said] == ["1 of 1"]
    for name, tensor in load_file(str(shards[0])).items():
        assert torch.equal(tensor, before[name]), name


def test_held_out_prompts_are_in_no_training_shard(recipe: Recipe, work: Path) -> None:
    held, *others = corpus.plan(recipe, work / "corpus").values()
    assert len(held) == 4
    assert not {each.text for each in held} & {each.text for other in others for each in other}


def test_a_head_has_the_shape_that_vllm_reads(made: dict[str, Path], target: Path) -> None:
    tensors = load_file(str(made["head"] / "model.safetensors"))
    random = load_file(str(weights.eagle3_random(made["head"].parent / "random", target) / "model.safetensors"))
    assert set(tensors) == set(random)
    sized = ("d2t", "lm_head.weight")  # by the draft vocabulary
    assert {name: t.shape for name, t in tensors.items() if name not in sized} == {
        name: t.shape for name, t in random.items() if name not in sized
    }
    ids = tensors["d2t"] + torch.arange(96)
    assert ids.unique().tolist() == ids.tolist()
    assert tensors["lm_head.weight"].shape == (96, 64)
    config = json.loads((made["head"] / "config.json").read_text(encoding="utf-8"))
    assert config["eagle_aux_hidden_state_layer_ids"] == [0, 1, 2]
    assert (config["draft_vocab_size"], config["architectures"]) == (96, ["LlamaForCausalLMEagle3"])


def test_a_draft_model_is_a_llama_with_the_targets_own_embeddings(made: dict[str, Path], target: Path) -> None:
    from transformers import AutoModelForCausalLM

    assert made["draft-model"].name == "tiny-2l"
    model = AutoModelForCausalLM.from_pretrained(made["draft-model"])
    theirs = load_file(str(target / "model.safetensors"))["model.embed_tokens.weight"]
    assert torch.equal(model.model.embed_tokens.weight.to(torch.bfloat16), theirs)
    learnt = model.model.layers[0].mlp.up_proj.weight.to(torch.bfloat16)
    assert not torch.equal(learnt, load_file(str(target / "model.safetensors"))["model.layers.0.mlp.up_proj.weight"])


def test_a_draft_model_is_made_again_from_its_target_and_the_layers_that_are_kept(
    recipe: Recipe, work: Path, target: Path, made: dict[str, Path], tmp_path: Path
) -> None:
    models, kept = tmp_path / "models", tmp_path / "kept"
    whole = making.make("draft-model", recipe, work, models, kept / "tiny", lambda line: None)
    assert sorted(file.name for file in whole.iterdir()) == ["config.json", "model.safetensors"]
    again = weights.draft_model(tmp_path / "again", target, kept / whole.name)
    for file in whole.iterdir():
        assert (again / file.name).read_bytes() == file.read_bytes() == (made["draft-model"] / file.name).read_bytes()
    assert not (made["draft-model"] / weights.LAYERS_FILE).exists()  # vLLM would load what it finds


def test_the_notes_say_what_was_learnt_from(made: dict[str, Path], recipe: Recipe, work: Path) -> None:
    notes = made["head"].parent / "tiny"
    with (notes / "corpus.csv").open(encoding="utf-8") as file:
        counted = {row["what"]: int(row["count"]) for row in csv.DictReader(file)}
    rows = CorpusRows(corpus.files(work / "corpus"))
    assert counted["answer tokens"] == rows.answer_tokens > 0
    assert counted["templated prompts"] <= 24
    assert len((notes / "held_out.jsonl").read_text(encoding="utf-8").splitlines()) == recipe.corpus.held_out
    assert (notes / "log-head.csv").read_text(encoding="utf-8").startswith("step,loss,length,position_0")


def test_an_interrupted_training_ends_as_an_unbroken_one(
    recipe: Recipe, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "SAVE_EVERY", 4)
    monkeypatch.setattr(training, "JUDGE_EVERY", 2)
    whole = head_training.run(recipe, work / "corpus", tmp_path / "whole", lambda line: None)

    class Stop(Exception):  # noqa: N818
        pass

    def stop(line: str) -> None:
        if line.startswith("step 8:"):
            raise Stop

    with pytest.raises(Stop):
        head_training.run(recipe, work / "corpus", tmp_path / "broken", stop)
    assert torch.load(tmp_path / "broken" / "checkpoint.pt", weights_only=True)["step"] == 4
    assert logged(tmp_path / "broken")["step"] == ["2", "4", "6"]
    again = head_training.run(recipe, work / "corpus", tmp_path / "broken", lambda line: None)
    for name, weight in whole.weights.items():
        torch.testing.assert_close(again.weights[name], weight, rtol=0, atol=0)
    steps, lengths = logged(tmp_path / "broken")["step"], logged(tmp_path / "broken")["length"]
    assert steps == ["2", "4", "6", "8", "10", "12"], "what was logged behind the checkpoint is logged once"
    assert lengths == logged(tmp_path / "whole")["length"]


def logged(folder: Path) -> dict[str, list[str]]:
    with (folder / training.LOG).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_a_head_reads_only_states_that_the_corpus_keeps(recipe: Recipe, work: Path, tmp_path: Path) -> None:
    assert CorpusRows(corpus.files(work / "corpus")).kept((2, 0)) == (2, 0)
    other = recipe.model_copy(update={"head": recipe.head.model_copy(update={"layers": (0, 1, 4)})})
    with pytest.raises(UserError, match=r"head.layers: the corpus keeps no states after layer 4, only after 0, 1, 2;"):
        head_training.run(other, work / "corpus", tmp_path / "head", lambda line: None)
    mixed = [*corpus.files(work / "corpus"), tmp_path / "shard-009.safetensors"]
    save_file(load_file(str(mixed[0])), str(mixed[-1]), {"layers": "0 2 1"})
    with pytest.raises(UserError, match=r"shard-009.safetensors: keeps states after layers 0, 2, 1, others after 0"):
        CorpusRows(mixed).kept((2,))
    save_file(load_file(str(mixed[0])), str(mixed[-1]))
    with pytest.raises(UserError, match=r"shard-009.safetensors: does not say which layers it keeps"):
        CorpusRows(mixed)


def test_a_head_goes_on_from_one_that_was_made_before(
    recipe: Recipe, work: Path, made: dict[str, Path], tmp_path: Path
) -> None:
    target, rows = TargetNetwork.load(Path(recipe.target)), CorpusRows(corpus.files(work / "corpus"))
    further = recipe.model_copy(update={"head": recipe.head.model_copy(update={"start": str(made["head"])})})
    head = head_training.going_on(further, target, rows.kept((0, 1, 2)))
    checkpoint.save_head(head, (0, 1, 2), Path(recipe.target), tmp_path / "again")
    again, before = (load_file(str(folder / "model.safetensors")) for folder in (tmp_path / "again", made["head"]))
    assert all(torch.equal(again[name], tensor) for name, tensor in before.items())
    assert len(head_training.run(further, work / "corpus", tmp_path / "work", lambda line: None).draft_ids) == 96
    other = further.model_copy(update={"head": further.head.model_copy(update={"layers": (0, 2)})})
    with pytest.raises(UserError, match=r"head.start: .* after layers \[0, 1, 2\], the recipe after \[0, 2\]"):
        head_training.run(other, work / "corpus", tmp_path / "other", lambda line: None)


def test_a_corpus_beside_brings_rows_but_none_that_is_held_out(recipe: Recipe, work: Path) -> None:
    shards, held = corpus.files(work / "corpus"), CorpusRows([work / "corpus" / f"{corpus.HELD_OUT}.safetensors"])
    alone = CorpusRows(shards, held.asked())
    assert len(alone.places) == len(CorpusRows(shards).places) > len(held.places) == len(held.asked()) == 4
    assert len(CorpusRows([*shards, *shards], held.asked()).places) == 2 * len(alone.places)
    assert len(CorpusRows([*shards, *held.files], held.asked()).places) == len(alone.places)


def test_a_head_learns_one_answer_by_heart(recipe: Recipe, work: Path) -> None:
    rows = CorpusRows(corpus.files(work / "corpus"))
    batch = rows.batch([0])
    torch.manual_seed(1)
    target = TargetNetwork.load(Path(recipe.target))
    ids = head_training.draft_ids(rows, target.shape.vocabulary, 400)
    head = head_training.beginning(recipe, target, ids, rows.kept(recipe.head_layers(2)))
    teacher = head_training.Teacher(target, ids, rows.kept((2,))[0], rows.common_start)
    how = recipe.head.model_copy(update={"prompt_weight": 0.0, "greedy_share": 1.0})
    optimiser = torch.optim.AdamW([w.requires_grad_() for w in head.weights.values()], lr=3e-3)
    for _ in range(60):
        value, _ = head_training.unrolled_loss(head, teacher, batch, how, 3)
        value.backward()
        optimiser.step()
        optimiser.zero_grad()
    reached = head_training.chain(head, teacher, batch, 3)
    start, end = int(batch.prompts[0]) - 1, int(batch.lengths[0])
    expected = [min(3, end - 2 - at) for at in range(start, end - 2)]
    assert reached[0, start : end - 2].tolist() == expected


def test_the_loss_is_torchs_own_and_so_are_its_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "PIECE", 11 * 300)  # 700 rows: two whole pieces and a part of one
    chance = torch.Generator().manual_seed(3)
    states = torch.randn(700, 6, generator=chance).requires_grad_()
    head = torch.randn(11, 6, generator=chance).requires_grad_()
    goal = Goal(
        torch.randn(700, 6, generator=chance), torch.randn(11, 6, generator=chance),
        torch.randint(-1, 11, (700,), generator=chance), torch.rand(700, generator=chance), 0.25,
    )  # fmt: skip
    value, chosen = cross_entropy(states, head, goal)
    value.backward()
    ours = states.grad, head.grad
    states.grad = head.grad = None
    wanted = (goal.states @ goal.head.T).softmax(-1)
    greedy = goal.greedy >= 0
    wanted[greedy] = 0.75 * wanted[greedy] + 0.25 * torch.nn.functional.one_hot(goal.greedy[greedy], 11)
    logits = states @ head.T
    theirs = (torch.nn.functional.cross_entropy(logits, wanted, reduction="none") * goal.weights).sum()
    theirs.backward()
    torch.testing.assert_close(value, theirs, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours[0], states.grad, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(ours[1], head.grad, rtol=1e-3, atol=1e-3)
    assert torch.equal(chosen, logits.argmax(-1))


def test_a_replay_jumps_behind_what_it_kept() -> None:
    batch = Batch(torch.zeros(1, 9, dtype=torch.int64), torch.tensor([9]), torch.tensor([2]), torch.zeros(1, 9, 1, 1))
    tally = Tally(3)
    # drafts from 1 (two right), 4 (none), 5 (one), then 7, behind which no token is left to draft
    tally.add(torch.tensor([[3, 2, 3, 3, 0, 1, 3, 3, 3]]), batch)
    assert tally.drafts == 3
    assert tally.accepted.tolist() == [2, 1, 0]
    assert tally.figures()["length"] == pytest.approx(2)


def test_a_draft_models_replay_counts_what_it_says_itself(recipe: Recipe, work: Path) -> None:
    target = TargetNetwork.load(Path(recipe.target))
    rows = CorpusRows(corpus.files(work / "corpus"))
    whole = distill.initial(load_file(str(Path(recipe.target) / "model.safetensors")), (0, 1))
    figures = distill.replay(whole, target, rows, 512)
    assert figures["position_0"] > 0.9, "the target's own layers say what the target says, near-ties apart"
