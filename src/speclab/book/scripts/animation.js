// Two requests as the simulator served them, pass by pass. A frame is a pure function of what was recorded, a variant
// and a step; everything on the screen is drawn from a frame, and the only state is {variant, step, playing, speed}.

const SLOWER = 100; // at speed 1 a simulated millisecond takes this many real ones
const SPEEDS = [0.5, 1, 2, 4];
const SIGNS = { accepted: "✓", rejected: "✗", discarded: "·", surplus: "–", own: "+1", "own-surplus": "–" };
const WORDS = {
  accepted: "draft, accepted",
  rejected: "draft, the first one rejected",
  discarded: "draft, discarded after the rejected one",
  surplus: "draft, accepted but past the end of the answer",
  own: "the target's own token",
  "own-surplus": "the target's own token, past the end of the answer",
};

const BARS = { prefill: "prompt", decode: "target's pass", draft: "drafting", "plain-end": "all done without drafts" };

const cellsOf = (row) => {
  const cells = [];
  for (let i = 0; i < row.drafted; i += 1) {
    if (i < row.accepted) cells.push(i < row.kept ? "accepted" : "surplus");
    else cells.push(i === row.accepted ? "rejected" : "discarded");
  }
  cells.push(row.kept > row.accepted ? "own" : "own-surplus");
  return cells;
};

const frame = (recording, variant, step) => {
  const { passes } = recording.variants[variant];
  const pass = passes[step];
  return {
    variant, step,
    steps: passes.length,
    kind: pass.kind,
    start: pass.start_ms,
    end: pass.start_ms + pass.duration_ms,
    duration: pass.duration_ms,
    draft: pass.draft_ms,
    out: pass.out,
    rows: recording.requests.map((request, index) => {
      const row = pass.rows.find((each) => each.request === index);
      const before = step > 0 ? passes[step - 1].out[index] : 0;
      const state = row ? pass.kind : before >= request.output ? "done" : "waiting";
      const cells = row && pass.kind === "decode" ? cellsOf(row) : [];
      return { request: index, state, cells, kept: row ? row.kept : 0, accepted: row ? row.accepted : 0,
        drafted: row ? row.drafted : 0, before, out: pass.out[index] };
    }),
  };
};

const ms = (value) => `${value.toFixed(value < 100 ? 1 : 0)} ms`;

const sentence = (recording, shown) => {
  const rows = shown.rows.map((row) => {
    const { name, output } = recording.requests[row.request];
    const total = `${row.out} of ${output} tokens out`;
    if (row.state === "done") return `${name} has all ${output} tokens`;
    if (row.state === "waiting") return `${name} waits`;
    if (row.state === "prefill") return `${name}'s prompt is read and its first token comes out`;
    if (row.drafted === 0) return `${name} gets one token, ${total}`;
    return `${name}: ${row.accepted} of ${row.drafted} drafts accepted, ${row.kept} kept with the target's own, ${total}`;
  });
  const drafting = shown.draft > 0 ? `, ${ms(shown.draft)} of it drafting` : "";
  return `Pass ${shown.step + 1} of ${shown.steps}, ${shown.kind}, ${ms(shown.start)} to ${ms(shown.end)}${drafting}. ` +
    `${rows.join("; ")}.`;
};

const mountAnimation = (root, recording) => {
  const longest = Math.max(...recording.variants.map((variant) => variant.done_ms));
  const { first } = recording;
  let state = { variant: recording.variants.findIndex((each) => each.key === first.variant), step: first.step, playing: false, speed: 1 };
  let timer = null;

  const button = (name, text, label, onclick) => make("button", { type: "button", name, "aria-label": label, title: label, onclick }, text);
  const play = button("play", "▶ Play", "Play", () => (state.playing ? pause() : resume()));
  const scrub = make("input", { type: "range", name: "step", min: 0, step: 1, "aria-label": "Pass", oninput: () => go({ step: Number(scrub.value), playing: false }) });
  const variants = choice("variant", recording.variants.map((each, index) => [index, each.label]), state.variant,
    (value) => go({ variant: Number(value), step: 0, playing: false }));
  const speeds = choice("speed", SPEEDS.map((speed) => [speed, `${speed} ×`]), state.speed, (value) => go({ speed: Number(value) }));
  const controls = make("div", { class: "widget-controls", role: "group", "aria-label": "Playback" },
    button("reset", "|◀", "Back to the start", () => go({ step: 0, playing: false, speed: 1 })),
    button("back", "◀", "One pass back", () => go({ step: state.step - 1, playing: false })),
    play,
    button("forward", "▶|", "One pass on", () => go({ step: state.step + 1, playing: false })),
    scrub, labelled("Speed", speeds));
  const when = make("p", { class: "widget-when" });
  const rows = make("div", { class: "widget-rows" });
  const strip = make("div", { class: "widget-strip", "aria-hidden": "true" });
  const key = make("p", { class: "widget-key", "aria-hidden": "true" }, ...["accepted", "rejected", "discarded", "own"].map((kind) =>
    make("span", {}, make("span", { class: `cell ${kind}` }, SIGNS[kind]), WORDS[kind])));
  const bars = make("p", { class: "widget-key", "aria-hidden": "true" }, ...Object.entries(BARS).map(([kind, words]) =>
    make("span", {}, make("span", { class: `swatch ${kind}` }), words)));
  const totals = make("ul", { class: "widget-totals" });
  const caption = make("p", { class: "widget-caption", role: "status", "aria-live": "polite" });
  const keys = make("p", { class: "widget-keys" }, "Keys while the animation has the focus: space plays and pauses, ← → step, Home and End, + − speed, V the next variant, R back to the start.");

  const go = (change) => {
    const next = { ...state, ...change };
    next.step = Math.max(0, Math.min(next.step, recording.variants[next.variant].passes.length - 1));
    state = next;
    draw();
    schedule();
  };
  const pause = () => go({ playing: false });
  const resume = () => go({ playing: true, step: atEnd() ? 0 : state.step });
  const atEnd = () => state.step === recording.variants[state.variant].passes.length - 1;

  const schedule = () => {
    clearTimeout(timer);
    if (!state.playing) return;
    if (atEnd()) { pause(); return; }
    const { duration } = frame(recording, state.variant, state.step);
    timer = setTimeout(() => go({ step: state.step + 1 }), (duration * SLOWER) / state.speed);
  };

  const drawRow = (row) => {
    const { name, prompt, output } = recording.requests[row.request];
    const cells = row.cells.map((kind) => make("span", { class: `cell ${kind}`, title: WORDS[kind] }, SIGNS[kind]));
    const idle = { prefill: `reads its prompt of ${prompt} tokens, first token out`, waiting: "waits", done: "has its whole answer" };
    const kept = row.state === "decode" ? make("span", { class: "kept" }, `kept ${row.kept}`) : make("span", { class: "idle" }, idle[row.state]);
    const share = (tokens) => `${(100 * tokens) / output}%`;
    return make("div", { class: "widget-row" },
      make("span", { class: "name" }, name),
      make("span", { class: "cells" }, ...cells, kept),
      make("span", { class: "bar" },
        make("span", { class: "done", style: `width:${share(row.before)}` }),
        make("span", { class: "new", style: `width:${share(row.out - row.before)}` })),
      make("span", { class: "count" }, `${row.out}/${output}`));
  };

  const drawStrip = () => {
    const { passes, done_ms: done } = recording.variants[state.variant];
    const share = (value) => `${(100 * value) / longest}%`;
    const bars = passes.map((pass, index) => {
      const place = index < state.step ? "past" : index === state.step ? "now" : "next";
      const draft = make("span", { class: "draft", style: `width:${(100 * pass.draft_ms) / pass.duration_ms}%` });
      return make("span", { class: `pass ${pass.kind} ${place}`, style: `left:${share(pass.start_ms)};width:${share(pass.duration_ms)}`,
        onclick: () => go({ step: index, playing: false }) }, draft);
    });
    const off = recording.variants.find((each) => each.gamma === 0);
    const marks = off ? [make("span", { class: "plain-end", style: `left:${share(off.done_ms)}` })] : [];
    strip.replaceChildren(make("div", { class: "track" }, ...bars, ...marks),
      make("div", { class: "scale" }, make("span", {}, "0 ms"),
        make("span", {}, `all done at ${ms(done)}${off && off.done_ms !== done ? ` (without drafts ${ms(off.done_ms)})` : ""}`)));
  };

  const drawTotals = () => {
    const variant = recording.variants[state.variant];
    const entries = [
      ["Tokens per pass", variant.tokens_per_pass.toFixed(3)],
      ["by equation 1", variant.expected.toFixed(3)],
      ["TPOT p99", ms(variant.tpot_p99_ms)],
      ["All done after", ms(variant.done_ms)],
    ];
    totals.replaceChildren(...entries.map(([term, value]) => make("li", {}, make("span", {}, term), make("strong", {}, value))));
  };

  const draw = () => {
    const shown = frame(recording, state.variant, state.step);
    Object.assign(root.dataset, { variant: recording.variants[state.variant].key, step: state.step, playing: state.playing, speed: state.speed });
    play.textContent = state.playing ? "❚❚ Pause" : "▶ Play";
    play.setAttribute("aria-label", state.playing ? "Pause" : "Play");
    scrub.max = shown.steps - 1;
    scrub.value = state.step;
    scrub.setAttribute("aria-valuetext", `pass ${shown.step + 1} of ${shown.steps}`);
    variants.value = state.variant;
    speeds.value = state.speed;
    when.textContent = `Pass ${shown.step + 1} of ${shown.steps} · ${shown.kind} · ${ms(shown.start)} to ${ms(shown.end)}` +
      (shown.draft > 0 ? ` · drafting ${ms(shown.draft)}` : "");
    rows.replaceChildren(...shown.rows.map(drawRow));
    drawStrip();
    drawTotals();
    caption.setAttribute("aria-live", state.playing ? "off" : "polite"); // a caption each pass would never end
    caption.textContent = sentence(recording, shown);
  };

  const faster = (by) => SPEEDS[Math.max(0, Math.min(SPEEDS.indexOf(state.speed) + by, SPEEDS.length - 1))];
  const onKey = {
    " ": () => (state.playing ? pause() : resume()),
    ArrowRight: () => go({ step: state.step + 1, playing: false }),
    ArrowLeft: () => go({ step: state.step - 1, playing: false }),
    Home: () => go({ step: 0, playing: false }),
    End: () => go({ step: Infinity, playing: false }),
    "+": () => go({ speed: faster(1) }),
    "-": () => go({ speed: faster(-1) }),
    v: () => go({ variant: (state.variant + 1) % recording.variants.length, step: 0, playing: false }),
    r: () => go({ step: 0, playing: false, speed: 1 }),
  };
  root.addEventListener("keydown", (event) => {
    // a control that has the focus keeps its own keys, and so does the browser
    const own = ["SELECT", "INPUT", "BUTTON"].includes(event.target.tagName);
    const act = onKey[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey || (own && event.target.tagName !== "BUTTON") || (own && event.key === " ")) return;
    event.preventDefault();
    event.stopPropagation(); // the theme turns pages with the arrows
    act();
  });

  root.setAttribute("tabindex", "0");
  root.setAttribute("role", "group");
  root.append(labelled("Speculation", variants), controls, when, rows, key, strip, bars, totals, caption, keys);
  root.speclab = { frame: (variant, step) => frame(recording, variant, step) };
  go({});

  // it plays once by itself when it comes into view, unless the reader asked for less motion
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    if (!calm.matches) resume();
  }, { threshold: 0.3 });
  for (const kind of ["pointerdown", "keydown"]) root.addEventListener(kind, () => watch.disconnect(), { capture: true, once: true });
  watch.observe(root);
};

mountAll("animation", mountAnimation);
