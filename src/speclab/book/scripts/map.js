// Your own numbers in, a verdict out: a form whose every change asks the model again, here in the page.

const LABELS = {
  k: "Draft positions, k", acceptance: "Acceptance by position", "drafting-ms": "A draft position adds, ms",
  concurrency: "Requests in flight", context: "Context, tokens", prompt: "Mean prompt, tokens", answer: "Mean answer, tokens",
  "draft-rate": "Share of steps with a draft",
};
const NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;

// Texts of the form to a question; what is no number is refused as the command refuses it
const question = (texts) => {
  const number = (key, whole = false) => {
    const text = texts[key].trim();
    if (!NUMBER.test(text) || (whole && !/^\+?\d+$/.test(text))) throw new Refused(`found '${text}'`, whole ? "give a whole number" : "give a number", key);
    return Number(text);
  };
  const optional = (key) => (texts[key].trim() ? number(key) : null);
  const shares = texts.acceptance.split(",");
  if (!shares.every((text) => NUMBER.test(text))) throw new Refused(`found '${texts.acceptance}'`, "give numbers, comma-separated: .63,.38,.25", "acceptance");
  const { device, model, method, calibration } = texts;
  return {
    device, model, method, calibration, k: number("k", true), acceptance: shares.map(Number),
    drafting_ms: method === "ngram" ? null : optional("drafting-ms"), draft_rate: number("draft-rate"),
    context: texts.prompt.trim() && texts.answer.trim() ? null : number("context"), prompt: optional("prompt"), answer: optional("answer"), concurrency: [number("concurrency", true)],
  };
};

// The same question for the command line
const commandOf = (asked, calibration) => [
  "speclab predict", `--device ${asked.device}`, `--model ${asked.model}`, asked.method === "eagle3" ? "" : `--method ${asked.method}`,
  `--k ${asked.k}`, `--acceptance ${asked.acceptance.join(",")}`, asked.drafting_ms === null ? "" : `--drafting-ms ${asked.drafting_ms}`,
  asked.draft_rate === 1 ? "" : `--draft-rate ${asked.draft_rate}`,
  asked.prompt === null ? `--context ${asked.context}` : `--prompt ${asked.prompt} --answer ${asked.answer}`,
  asked.calibration === calibration ? "" : `--calibration ${asked.calibration}`, `--concurrency ${asked.concurrency[0]}`,
].filter(Boolean).join(" ");

const percent = (share) => `${(100 * share).toFixed(1)}%`;
const times = (value) => value.toFixed(2);

// The furthest that the model was from a measured speed-up of this method; null where there is none to hold it against
const worstOf = (errors) => {
  const found = errors.filter(({ figure }) => figure === "speed-up").map(({ worst_error: error }) => Math.abs(error));
  return found.length ? Math.max(...found) : null;
};

const crossoverWords = ({ status, crossover, low, high }) => {
  if (status === "always below") return "speculation loses at every number of requests in flight";
  const [from, to] = [low === null ? "1 or fewer" : rounded(low), high === null ? "more than is asked for" : rounded(high)];
  if (crossover === null) return `speculation pays at every number of requests in flight (nine of ten draws: from ${from} to ${to})`;
  return `speculation pays up to ${rounded(crossover)} in flight; nine of ten draws: ${from} to ${to}`;
};

// What the numbers come to at the reader's concurrency; pure
const verdict = (found, errors) => {
  const [ratio, low, high] = [found.speed_up[0], found.speed_up_low[0], found.speed_up_high[0]];
  const worst = worstOf(errors);
  const [least, most] = worst === null ? [low, high] : [Math.min(low, ratio / (1 + worst)), Math.max(high, ratio / (1 - worst))];
  const word = least > 1 ? "pays" : most < 1 ? "loses" : "unclear";
  const range = worst === null
    ? "No speed-up of this method has been measured to hold the model against."
    : `If it is as wrong here as it has been at worst (${percent(worst)}): ${times(ratio / (1 + worst))} to ${times(ratio / (1 - worst))}.`;
  const said = `At ${found.concurrency[0]} in flight, ${times(ratio)} times the baseline's tokens per second; nine of ten draws: ${times(low)} to ${times(high)}. ${range}`;
  return { word, said, worst };
};
const WORDS = { pays: "It pays.", loses: "It loses.", unclear: "Too close to call." };

const errorWords = (each) => `${each.figure} of ${each.method} on ${each.dataset} (${each.source}, n = ${each.n}): mean ${percent(each.mean_abs_error)}, ` +
  `worst ${each.worst_error < 0 ? "" : "+"}${percent(each.worst_error)}`;

const gridTable = (found, inside) => {
  const cost = new Map(found.cost.map((each) => [each.concurrency, each]));
  const rows = found.concurrency.map((at, index) => {
    const price = cost.get(at);
    const usd = price.usd_per_mtok === null ? "–" : `${price.usd_per_mtok.toFixed(3)} (${price.baseline_usd_per_mtok.toFixed(3)})`;
    const cells = [at, times(found.speed_up[index]), `${times(found.speed_up_low[index])} to ${times(found.speed_up_high[index])}`,
      times(found.break_even_length[index]), found.best_k[index], usd, `${written(price.j_per_mtok)} (${written(price.baseline_j_per_mtok)})`];
    return make("tr", { class: at > inside ? "fails" : null }, ...cells.map((cell) => make("td", {}, String(cell))));
  });
  const heads = ["in flight", "speed-up", "nine of ten draws", "break-even, tokens", "best k", "$ per M tokens (baseline)", "J per M tokens (baseline)"];
  return make("table", { class: "dataframe" }, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, ...rows));
};

const mountMap = (root, data) => {
  const { first } = data;
  const texts = { ...Object.fromEntries(Object.entries(first).map(([key, value]) => [key.replace("_", "-"), value === null ? "" : String(value)])), up: "context" };
  const go = (key, value) => { texts[key] = value; draw(); };
  const pick = (key, label, options) => labelled(label, choice(key, options, texts[key], (value) => go(key, value)));
  const named = (entries, name = "name") => entries.map((entry) => [entry.key, entry[name]]);
  const problem = make("p", { class: "map-problem", id: "map-problem", hidden: true });
  const write = (key, hint = null) => {
    const input = make("input", { type: "text", name: key, value: texts[key], inputmode: "decimal", autocomplete: "off", placeholder: hint, oninput: () => go(key, input.value) });
    return labelled(LABELS[key], input);
  };
  const form = make("div", { class: "map-form" },
    make("div", { class: "widget-fields" }, pick("device", "GPU", named(data.devices)), pick("model", "Model", named(data.models)), pick("method", "Drafts come from", named(data.methods))),
    make("div", { class: "widget-fields" }, write("k"), write("acceptance"), write("drafting-ms", "as calibrated"), write("concurrency"), write("context")),
    make("details", {}, make("summary", {}, "More"), make("div", { class: "widget-fields" },
      write("prompt", "none: the context"), write("answer", "none: the context"), write("draft-rate"), pick("calibration", "Calibrated on", named(data.calibrations, "label")))));

  const word = make("p", { class: "map-word" });
  const said = make("p", {});
  const totals = make("ul", { class: "widget-totals" });
  const beyond = make("p", {});
  const warnings = make("ul", { class: "map-warnings" });
  const live = make("div", { class: "map-verdict", role: "status", "aria-live": "polite" }, word, said, totals, beyond, warnings, problem);
  const plot = make("div", { class: "widget-plot" });
  const legend = make("p", { class: "widget-legend", "aria-hidden": "true" },
    ...[["curve", "the model"], ["band-draws", "nine of ten draws of its parameters"], ["band-worst", "as wrong as it has been at worst"], ["beyond", "outside what it was fitted on"]]
      .map(([name, text]) => make("span", {}, make("span", { class: `swatch ${name}` }), text)));
  const map = make("div", { class: "widget-plot" });
  const upwards = labelled("Upwards on the map", choice("up", Object.entries(FIELD_AXES).map(([key, { label }]) => [key, label]), texts.up, (up) => go("up", up)));
  const list = make("div", { class: "wide-table" });
  const errors = make("ul", { class: "map-errors" });
  const command = make("code", { class: "map-command" });
  const results = make("div", { class: "map-results" }, plot, legend, upwards, map,
    make("p", { class: "widget-legend", "aria-hidden": "true" }, ...[["pays", "pays"], ["loses", "loses"]].map(([name, text]) => make("span", {}, make("span", { class: `swatch ${name}` }), text)),
      make("span", {}, "empty: memory full")),
    make("details", {}, make("summary", {}, "The same as a table, with its cost"), list),
    make("p", {}, "How wrong the model has been:"), errors, make("p", {}, "The same by hand: ", command));

  const refuse = (error) => {
    if (!(error instanceof Refused)) throw error;
    root.dataset.state = "refused";
    const input = root.querySelector(`input[name="${error.key}"]`);
    input?.setAttribute("aria-invalid", "true");
    input?.setAttribute("aria-describedby", "map-problem");
    input?.closest("details")?.setAttribute("open", "");
    problem.textContent = `${LABELS[error.key] ?? error.key}: ${error.message}`;
  };

  const show = (asked) => {
    const found = answer(data, asked);
    const stated = data.errors[asked.method];
    const { word: kind, said: sentence, worst } = verdict(found, stated);
    const top = Math.min(found.most_in_flight, Math.max(512, asked.concurrency[0]));
    const grid = answer(data, { ...asked, concurrency: null });
    const { places } = byKey(data.calibrations, asked.calibration);
    const inside = 1.01 * Math.min(places.rows, places.tokens / (1 + asked.k * asked.draft_rate));
    Object.assign(root.dataset, { state: "ok", verdict: kind });
    word.textContent = WORDS[kind];
    said.textContent = sentence;
    const figures = [["a step breaks even at", `${times(found.break_even_length[0])} tokens`], ["your acceptance brings", `${times(found.tokens_per_step)} tokens`],
      ["best k here", found.best_k[0] || "0: none"], ["crossover", found.crossover === null ? "none" : `${rounded(found.crossover)} in flight`]];
    totals.replaceChildren(...figures.map(([name, value]) => make("li", {}, make("span", {}, name), make("strong", {}, String(value)))));
    beyond.textContent = `${crossoverWords(found)}.`.replace(/^s/, "S");
    warnings.replaceChildren(...found.warnings.map((text) => make("li", {}, `Beware: ${text}.`)));
    curvePlot(plot, { curve: answer(data, { ...asked, concurrency: geometric(1, Math.max(2, top), 49).map((at) => Math.min(at, found.most_in_flight)) }), worst, inside,
      most: found.most_in_flight, mine: { concurrency: asked.concurrency[0], speed_up: found.speed_up[0] } });
    fieldPlot(map, field(data, asked, texts.up), texts.up, asked.concurrency[0]);
    list.replaceChildren(gridTable(grid, inside));
    errors.replaceChildren(...stated.map((each) => make("li", {}, `${errorWords(each)}.`)));
    command.textContent = commandOf(asked, data.calibration);
  };

  const draw = () => {
    for (const input of root.querySelectorAll("[aria-invalid]")) for (const name of ["aria-invalid", "aria-describedby"]) input.removeAttribute(name);
    root.querySelector('[name="drafting-ms"]').disabled = texts.method === "ngram";
    root.querySelector('[name="context"]').disabled = texts.prompt.trim() && texts.answer.trim();
    try { show(question(texts)); } catch (error) { refuse(error); }
    const refused = root.dataset.state === "refused";
    problem.hidden = !refused;
    for (const part of [word, said, totals, beyond, warnings]) part.hidden = refused;
    results.classList.toggle("stale", refused);
    results.inert = refused;
  };

  root.setAttribute("role", "group");
  root.append(form, live, results);
  root.speclab = { answer: (asked) => { try { return answer(data, asked); } catch (error) { if (!(error instanceof Refused)) throw error; return { refused: [error.problem, error.remedy, error.key] }; } },
    field: (asked, up) => field(data, asked, up) };
  draw();
  let wide = plot.clientWidth;
  new ResizeObserver(() => { if (plot.clientWidth !== wide) { wide = plot.clientWidth; draw(); } }).observe(plot);
};

mountAll("map", mountMap);
