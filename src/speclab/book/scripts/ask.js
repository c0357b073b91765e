// A question to the calibrated model as a reader puts it, refused or answered in the words of ``speclab predict``
// (speclab.predict). A question holds the options of that command, numbers as numbers.

class Refused extends Error {
  constructor(problem, remedy, key) {
    super(`${problem}; ${remedy}`);
    Object.assign(this, { problem, remedy, key });
  }
}

// Numbers as Python writes them: %g, and no digits behind the point with ties to even
const general = (value) => {
  const [digits, exponent] = value.toExponential(5).split("e").map(Number);
  if (value === 0 || (exponent >= -4 && exponent < 6)) return String(Number(value.toPrecision(6)));
  return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
};
const rounded = (value) => {
  const below = Math.floor(value);
  return String(value - below === 0.5 ? below + (below % 2) : Math.round(value));
};
const thousands = (value) => value.toLocaleString("en-US");

const trafficOf = (asked, usual) => {
  for (const key of ["context", "prompt", "answer"]) {
    const value = asked[key];
    if (value !== null && !(value >= 1 && value <= 1e7)) throw new Refused(`found ${general(value)}`, "give tokens, 1 to 10,000,000", key);
  }
  if ((asked.prompt === null) !== (asked.answer === null)) {
    throw new Refused("missing", "give both mean lengths, or only --context", asked.prompt === null ? "prompt" : "answer");
  }
  if (asked.prompt === null) return { context: asked.context ?? usual, prompt: 0, answer: Infinity };
  if (asked.context !== null) throw new Refused(`found ${general(asked.context)}, and a context follows from --prompt and --answer`, "give both mean lengths, or only --context", "context");
  return { context: asked.prompt + asked.answer / 2, prompt: asked.prompt, answer: asked.answer };
};

const launchOf = (asked, calibration, parameters, question) => {
  if (!question.drafter) return [null, []];
  if (asked.drafting_ms === null) {
    if (asked.method in calibration.launches) return [calibration.launches[asked.method], []];
    return [null, [`${calibration.name} has no launches of a ${asked.method} drafter: give --drafting-ms`]];
  }
  if (!(asked.drafting_ms > 0 && asked.drafting_ms <= 1e4)) {
    throw new Refused(`found ${general(asked.drafting_ms)}`, "give milliseconds above 0", "drafting-ms");
  }
  const launch = launchTime(parameters, question, asked.k, 1e-3 * asked.drafting_ms);
  if (launch >= 0) return [launch, []];
  const passes = (asked.drafting_ms - 1e3 * launch).toFixed(2);
  return [0, [`the model's own passes for a draft position take ${passes} ms, more than ${general(asked.drafting_ms)} ms`]];
};

// How far a question lies outside the fitted places, in doublings of rows and of context
const doublings = ({ places }, question, rows) => {
  const [least, most] = places.context;
  return Math.log2(Math.max(rows / places.rows, 1)) + Math.log2(Math.max(question.context / (2 * most), least / 2 / question.context, 1));
};

// How much wider an interval is there: the standard deviation of the logarithm of a speed-up that comes on top
const widening = (data, calibration, device, question) => {
  const rates = [device.byte_per_s / calibration.rates.byte_per_s, device.flop_per_s / calibration.rates.flop_per_s];
  const carried = device.name === calibration.device ? 0 : Math.max(...rates.map((rate) => Math.abs(Math.log2(rate))));
  const size = Math.abs(Math.log2(question.target.parameters / data.shapes[calibration.target].parameters));
  return (rows) => data.discrepancy * Math.sqrt(carried + size + doublings(calibration, question, rows));
};
const widened = ({ discrepancy }, sigma) => sigma <= 0 ? [] : [
  `${((sigma / discrepancy) ** 2).toFixed(1)} doublings from what was fitted: the interval is wider by ${(100 * sigma).toFixed(0)}% (one standard deviation), ` +
  `${(100 * discrepancy).toFixed(1)}% for each, which is how far the model is off from one source to the next`];

// Tokens of KV cache that a device has room for, and requests of the mean context that fit into it
const roomFor = (data, device, { target, drafter }) => {
  const held = target.resident_bytes + (drafter?.resident_bytes ?? 0);
  return Math.floor((data.usable_memory * device.memory_bytes - held) / (target.kv_bytes + (drafter?.kv_bytes ?? 0)));
};
const fits = (data, device, question) => Math.floor(roomFor(data, device, question) / (question.context + question.k + 1));

const mostInFlight = (data, device, question) => {
  const most = fits(data, device, question);
  if (most >= 1) return most;
  const room = thousands(Math.max(roomFor(data, device, question), 0));
  throw new Refused(
    `one request of ${rounded(question.context)} tokens does not fit: ${device.name} has room for ${room} tokens of KV cache beside the weights`,
    "give a shorter context, or a device with more memory", "context");
};

const inFlight = (data, asked, device, question, most) => {
  if (asked.concurrency === null) return data.grid.filter((at) => at <= most);
  const highest = Math.max(...asked.concurrency);
  if (highest > most) {
    throw new Refused(`${highest} requests of ${rounded(question.context)} tokens exceed the KV memory of ${device.name}`,
      `give at most ${most} in flight, or a shorter context`, "concurrency");
  }
  return asked.concurrency;
};

const checkQuestion = ({ acceptance, k, draft_rate }, concurrency) => {
  const given = acceptance.map(general).join(",");
  const outside = acceptance.find((share) => !(share >= 0 && share <= 1));
  if (outside !== undefined) throw new Refused(`found ${general(outside)}`, "acceptance is a share: give 0 to 1", "acceptance");
  const rises = acceptance.findIndex((share, at) => at > 0 && share > acceptance[at - 1]);
  if (rises > 0) {
    throw new Refused(`found ${given}, which rises at position ${rises}`,
      "give marginal acceptance: the share of drafts accepted up to each position, which never rises", "acceptance");
  }
  if (acceptance.length !== k) {
    throw new Refused(`found ${acceptance.length} shares (${given}) for k = ${k}`, "give one share for each draft position", "acceptance");
  }
  if (!(draft_rate > 0 && draft_rate <= 1)) throw new Refused(`found ${general(draft_rate)}`, "give a share above 0, at most 1", "draft-rate");
  if (!concurrency.length || Math.min(...concurrency) < 1) {
    const found = concurrency.map(general).join(", ") || "none";
    throw new Refused(`found ${found}`, "give requests in flight, each at least 1", "concurrency");
  }
};

// What lies outside the places that the parameters were fitted on, in words
const outsideOf = ({ places }, question, rows) => {
  const tokens = rows * (1 + question.k * question.draft_rate);
  const found = [];
  if (rows > places.rows * 1.01) found.push(`${rounded(rows)} rows: fitted on at most ${rounded(places.rows)}`);
  if (tokens > places.tokens * 1.01) found.push(`${rounded(tokens)} positions in a step: fitted on at most ${rounded(places.tokens)}`);
  const [least, most] = places.context;
  if (!(least / 2 <= question.context && question.context <= most * 2)) {
    found.push(`a context of ${rounded(question.context)} tokens: fitted on ${rounded(least)} to ${rounded(most)}`);
  }
  return found;
};

// The calibration's parameters, and their draws, on another device: the same shares of its data sheet's rates
const carriedTo = (calibration, device) => {
  const scale = { byte_per_s: device.byte_per_s / calibration.rates.byte_per_s, flop_per_s: device.flop_per_s / calibration.rates.flop_per_s };
  const moved = (set) => ({ ...set, byte_per_s: set.byte_per_s * scale.byte_per_s, flop_per_s: set.flop_per_s * scale.flop_per_s });
  const draw = (values) => ({ ...calibration.parameters, ...Object.fromEntries(calibration.drawn.map((name, at) => [name, values[at]])) });
  return { parameters: moved(calibration.parameters), draws: calibration.draws.map((values) => moved(draw(values))) };
};

const byKey = (entries, key) => entries.find((entry) => entry.key === key);

// What a reader asks, in the model's terms, with the notes on it
const understood = (data, asked) => {
  const calibration = byKey(data.calibrations, asked.calibration);
  const device = byKey(data.devices, asked.device);
  const { parameters, draws } = carriedTo(calibration, device);
  const { shape } = byKey(data.models, asked.model);
  const target = data.shapes[shape];
  const notes = shape === calibration.target ? [] : [`no measurement of ${target.name}: fitted on ${data.shapes[calibration.target].name}`];
  const drafter = data.drafters[asked.method]?.[shape];
  if (asked.method === "ngram" && asked.drafting_ms !== null) {
    throw new Refused(`found ${general(asked.drafting_ms)}, and n-gram has no network that drafts`, "leave it out: the look-up's time is the calibration's", "drafting-ms");
  }
  const question = { target, drafter: drafter ? data.shapes[drafter] : null, acceptance: asked.acceptance, draft_rate: asked.draft_rate, k: asked.k, ...trafficOf(asked, data.context) };
  if (asked.k < 1) throw new Refused(`found ${asked.k}`, "give at least one draft position", "k");
  const [launch, more] = launchOf(asked, calibration, parameters, question);
  question.launch_s = launch;
  const carried = device.name === calibration.device ? [] : [`no measurement of ${device.name}: ${calibration.device}'s shares of the data sheet's rates are carried over`];
  return { calibration, device, parameters, draws, question, carried, notes: [...notes, ...more] };
};

// The answer, with the keys of ``speclab predict --json``
const answer = (data, asked) => {
  const { calibration, device, parameters, draws, question, carried, notes } = understood(data, asked);
  const most = mostInFlight(data, device, question);
  const concurrency = inFlight(data, asked, device, question, most);
  checkQuestion(question, concurrency);
  const { k } = question;
  const ks = Array.from({ length: k + 1 }, (_, at) => at);
  const eachK = concurrency.map((at) => ks.map((tried) => speedUp(parameters, question, at, tried)));
  const sigma = widening(data, calibration, device, question);
  const off = (rows) => { const spread = sigma(rows); return data.normals.map((normal) => Math.exp(normal * spread)); };
  const drawn = concurrency.map((at) => { const each = off(at); return draws.map((set, draw) => speedUp(set, question, at, k) * each[draw]); });
  const [steps, baseline] = [k, 0].map((tried) => concurrency.map((at) => stepTime(parameters, question, at, tried)));
  const value = crossing(parameters, question, data.most_in_flight);
  const crossings = draws.map((set, draw) => crossing(set, question, data.most_in_flight, (rows) => Math.exp(data.normals[draw] * sigma(rows))));
  const finite = (found) => (Number.isFinite(found) && found > 0 ? found : null);
  const around = finite(value) === null ? [] : [value / 2, value, 2 * value].filter((at) => at >= 1);
  const priced = [...new Set([...concurrency, ...around])].sort((a, b) => a - b);
  const full = value > most ? [`${most} requests of ${rounded(question.context)} tokens fill the memory: no crossover below`] : [];
  return {
    concurrency,
    speed_up: eachK.map((ratios) => ratios[k]),
    speed_up_low: drawn.map((ratios) => quantile(ratios, data.interval[0])),
    speed_up_high: drawn.map((ratios) => quantile(ratios, data.interval[1])),
    break_even_length: steps.map((step, at) => step / baseline[at]),
    step_s: steps,
    baseline_step_s: baseline,
    best_k: eachK.map((ratios) => ratios.indexOf(Math.max(...ratios))),
    crossover: finite(value),
    low: finite(quantile(crossings, data.interval[0], true)),
    high: finite(quantile(crossings, data.interval[1], true)),
    status: value === 0 ? "always below" : Number.isFinite(value) ? "ok" : "always above",
    cost: priced.map((at) => {
      const [withDrafts, without] = [k, 0].map((tried) => costOf(device, parameters, question, at, tried));
      return { concurrency: at, usd_per_mtok: withDrafts.usd, baseline_usd_per_mtok: without.usd, j_per_mtok: withDrafts.joules, baseline_j_per_mtok: without.joules };
    }),
    warnings: [...carried, ...full, ...notes, ...outsideOf(calibration, question, Math.max(...concurrency)), ...widened(data, Math.max(...concurrency.map(sigma)))],
    tokens_per_step: tokensAt(question, k),
    most_in_flight: most,
  };
};
