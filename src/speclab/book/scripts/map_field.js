// The map itself: speed-up over requests in flight and one more thing, blue where speculation pays and orange where it
// loses, empty where the requests do not fit into memory.

const FIELD_COLUMNS = 36;
const FIELD_ROWS = 22;

// Flat acceptance that brings as many tokens per step as a curve: the same probability at each position
const flatLike = (tokens, k, draft_rate) => {
  let [low, high] = [0, 1];
  for (let halving = 0; halving < 40; halving += 1) {
    const middle = (low + high) / 2;
    if (tokensAt({ draft_rate, acceptance: flatCurve(middle, k) }, k) < tokens) low = middle; else high = middle;
  }
  return low;
};
const flatCurve = (share, k) => Array.from({ length: k }, (_, at) => share ** (at + 1));

// What the map may have upwards: its values, what each changes in the question, and where the reader stands
const FIELD_AXES = {
  context: {
    label: "context, tokens",
    values: () => geometric(128, 32768, FIELD_ROWS),
    change: (_, context) => ({ context, prompt: 0 }),
    mine: (question) => question.context,
    ticks: [128, 512, 2048, 8192, 32768],
  },
  acceptance: {
    label: "acceptance, the same at each position",
    values: () => Array.from({ length: FIELD_ROWS }, (_, at) => 0.05 + (0.9 * at) / (FIELD_ROWS - 1)),
    change: ({ k }, share) => ({ acceptance: flatCurve(share, k) }),
    mine: (question) => flatLike(tokensAt(question, question.k), question.k, question.draft_rate),
    ticks: [0.1, 0.3, 0.5, 0.7, 0.9],
  },
  k: {
    label: "draft positions k, your curve cut at each",
    values: ({ k }) => Array.from({ length: k }, (_, at) => at + 1),
    change: ({ acceptance }, k) => ({ k, acceptance: acceptance.slice(0, k) }),
    mine: (question) => question.k,
    ticks: null,
  },
};

// Speed-ups of every cell, null where memory is full; pure. What a draft position takes beside its passes follows from
// the reader's own question and is the same all over the map.
const field = (data, asked, axis) => {
  const { device, parameters, question } = understood(data, asked);
  const { values, change, mine } = FIELD_AXES[axis];
  const columns = geometric(1, 1024, FIELD_COLUMNS);
  const rows = values(question).map((value) => {
    const changed = { ...question, ...change(question, value) };
    const most = fits(data, device, changed);
    return { value, cells: columns.map((at) => (at <= most ? speedUp(parameters, changed, at, changed.k) : null)) };
  });
  return { columns, rows, mine: mine(question) };
};

const fieldPlot = (plot, { columns, rows, mine }, axis, concurrency) => {
  const { label, ticks: wanted } = FIELD_AXES[axis];
  const size = sizeOf(plot, 360);
  const [bottom, top] = [size.height - MAP_MARGIN.bottom, MAP_MARGIN.top + 14];
  const right = size.width - MAP_MARGIN.right;
  const step = (right - MAP_MARGIN.left) / columns.length;
  const tall = (bottom - top) / rows.length;
  const column = (rowsInFlight) => MAP_MARGIN.left + step * (0.5 + (Math.log(rowsInFlight) / Math.log(columns.at(-1))) * (columns.length - 1));
  const values = rows.map(({ value }) => value);
  const level = axis === "context" ? Math.log : (value) => value;
  const share = (value) => (values.length > 1 ? (level(value) - level(values[0])) / (level(values.at(-1)) - level(values[0])) : 0);
  const row = (value) => bottom - tall * (0.5 + share(value) * (rows.length - 1));
  const cells = rows.flatMap(({ value, cells: ratios }) => ratios.map((ratio, at) => (ratio === null ? null : makeSvg("rect", {
    class: ratio >= 1 ? "pays" : "loses", "shape-rendering": "crispEdges", x: MAP_MARGIN.left + at * step, y: row(value) - tall / 2, width: step, height: tall,
    "fill-opacity": Math.min(1, Math.abs(Math.log2(ratio)) / 1.3).toFixed(3) })))).filter(Boolean);
  // the border between the two colours, drawn: it is read without colours too
  const border = rows.flatMap(({ value, cells: ratios }) => {
    const at = ratios.findIndex((ratio, here) => here > 0 && ratio !== null && ratio < 1 && ratios[here - 1] >= 1);
    if (at < 1) return [];
    const part = (ratios[at - 1] - 1) / (ratios[at - 1] - ratios[at]);
    return [[MAP_MARGIN.left + step * (at - 0.5 + part), row(value)]];
  });
  const across = { place: column, ticks: POWERS.filter((at) => at <= columns.at(-1)) };
  const up = { place: row, ticks: wanted ?? values };
  const [x, y] = [column(concurrency), row(Math.min(values.at(-1), Math.max(values[0], mine)))];
  const here = concurrency <= columns.at(-1) ? [makeSvg("polygon", { class: "here", points: `${x},${y - 8} ${x + 8},${y} ${x},${y + 8} ${x - 8},${y}` })] : [];
  const pays = rows.reduce((sum, each) => sum + each.cells.filter((ratio) => ratio !== null && ratio > 1).length, 0);
  const known = rows.reduce((sum, each) => sum + each.cells.filter((ratio) => ratio !== null).length, 0);
  plot.replaceChildren(drawing(size, `Map of the speed-up over requests in flight and ${label}: speculation pays in ${pays} of ${known} places.`,
    ...acrossAxis(size, across, "requests in flight"), ...upAxis(size, up), ...cells,
    makeSvg("polyline", { class: "one", points: border.map((corner) => corner.join(",")).join(" ") }), ...here,
    svgText(label, { class: "axis", x: MAP_MARGIN.left, y: 16 })));
};
