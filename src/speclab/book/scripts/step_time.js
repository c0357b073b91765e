// What a step takes, and what drafting gains by it: the formulas of speclab.predict (step_time, prediction, cost),
// term by term, over the parameters that stand in the page. A test holds the two together.

const MILLION = 1e6;
const CROSSOVER_POINTS = 97;

// Operations and bytes of one pass; its rows are all alike
const workOf = (shape, { tokens, prompts, batch, positions, context }) => {
  const attended = tokens * (context + (positions + 1) / 2);
  const kvTokens = batch * context + tokens + prompts;
  return {
    flops: 2 * shape.parameters * (tokens + prompts) + 4 * shape.layers * shape.width * attended,
    bytes: 2 * (shape.parameters + (tokens + prompts) * shape.width) + kvTokens * shape.kv_bytes,
  };
};

const passTime = (parameters, shape, load) => {
  const { flops, bytes } = workOf(shape, load);
  const [memory, compute] = [bytes / parameters.byte_per_s, flops / parameters.flop_per_s];
  const longer = Math.max(memory, compute);
  return longer * (1 + (Math.min(memory, compute) / longer) ** parameters.smoothing) ** (1 / parameters.smoothing);
};

// Tokens that a row keeps of a step, the acceptance curve cut at k
const tokensAt = (question, k) => 1 + question.draft_rate * question.acceptance.slice(0, k).reduce((sum, share) => sum + share, 0);

// The passes of one step that prefills some prompt tokens: the target's, the drafter's first, which caches what was
// verified, are alike; its later ones
const passesOf = ({ context, draft_rate }, batch, k, prompts) => {
  const positions = 1 + k * draft_rate;
  return { whole: { tokens: batch * positions, prompts, batch, positions, context }, later: { tokens: batch, prompts: 0, batch, positions: 1, context } };
};

const stepWith = (parameters, question, batch, k, tokens, prompts) => {
  const { whole, later } = passesOf(question, batch, k, prompts);
  const host = parameters.overhead_s + parameters.row_s * batch + parameters.token_s * batch * tokens;
  const bare = passTime(parameters, question.target, whole) + host + parameters.position_s * whole.tokens;
  if (!k) return bare;
  const { drafter } = question;
  if (!drafter) return bare + parameters.lookup_s * batch;
  const launch = question.launch_s ?? parameters.launch_s;
  const sampling = (parameters.position_s * batch * drafter.sampled) / drafter.vocabulary;
  return bare + passTime(parameters, drafter, whole) + (k - 1) * passTime(parameters, drafter, later) + k * (launch + sampling);
};

// Seconds of a step of k draft positions, k = 0 being the baseline's. Prompts come whole: some steps hold those of other
// rows, the rest hold none.
const stepTime = (parameters, question, batch, k, tokens = k ? tokensAt(question, k) : 1) => {
  const none = stepWith(parameters, question, batch, k, tokens, 0);
  const mean = question.prompt ? (Math.max(batch - 1, 0) * tokens) / question.answer : 0;
  if (!mean) return none;
  const share = -Math.expm1(-mean);
  return share * stepWith(parameters, question, batch, k, tokens, (question.prompt * mean) / share) + (1 - share) * none;
};

// The launch part of a draft position, from what k of them were measured to add at one row; below 0 where the model's
// own passes take longer than that
const launchTime = (parameters, question, k, positionTime) => {
  const bare = { ...question, draft_rate: 1, launch_s: 0 };
  const tokens = tokensAt(question, question.acceptance.length);
  const added = stepTime(parameters, bare, 1, k, tokens) - stepTime(parameters, bare, 1, 0);
  return positionTime - added / k;
};

const speedUp = (parameters, question, batch, k) => (k
  ? (tokensAt(question, k) * stepTime(parameters, question, batch, 0)) / stepTime(parameters, question, batch, k) : 1);

// Where the speed-up first falls to 1: 0 where it is never above, infinite where it is always
const crossing = (parameters, question, most, off = () => 1) => {
  let before = null;
  for (let at = 0; at < CROSSOVER_POINTS; at += 1) {
    const rows = most ** (at / (CROSSOVER_POINTS - 1));
    const ratio = speedUp(parameters, question, rows, question.k) * off(rows);
    if (ratio <= 1) {
      if (!before) return 0;
      return before.rows * (rows / before.rows) ** ((before.ratio - 1) / (before.ratio - ratio));
    }
    before = { rows, ratio };
  }
  return Infinity;
};

const joulesOf = (device, shape, load) => {
  const { flops, bytes } = workOf(shape, load);
  return 1e-12 * (flops * device.pj_per_flop + bytes * device.pj_per_byte);
};

// Dollars and joules of a million tokens
const costOf = (device, parameters, question, batch, k) => {
  const tokens = k ? tokensAt(question, k) : 1;
  const seconds = stepTime(parameters, question, batch, k);
  const { whole, later } = passesOf(question, batch, k, question.prompt ? (batch * tokens * question.prompt) / question.answer : 0);
  let joules = joulesOf(device, question.target, whole) + device.idle_w * seconds;
  if (k && question.drafter) joules += joulesOf(device, question.drafter, whole) + (k - 1) * joulesOf(device, question.drafter, later);
  const scale = MILLION / (batch * tokens);
  return { usd: device.usd_per_hour === null ? null : (device.usd_per_hour / 3600) * seconds * scale, joules: joules * scale };
};

// Between the two values next to a share of them, as NumPy's default does; `nearest` takes one of them
const quantile = (values, share, nearest = false) => {
  const sorted = [...values].sort((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  if (nearest) return sorted[place - below > 0.5 || (place - below === 0.5 && below % 2) ? below + 1 : below];
  return below + 1 < sorted.length ? sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]) : sorted[below];
};
