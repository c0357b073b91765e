// Speed-up over requests in flight: the curve, how far its parameters can be trusted, the worst error that the model
// has made, where it crosses 1, and where the reader stands.

const MAP_MARGIN = { left: 46, right: 14, top: 14, bottom: 44 };
const POWERS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536];

// A logarithmic axis between two values, with the powers of four as its ticks
const logScale = (low, high, from, to) => ({
  place: (value) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from),
  ticks: POWERS.filter((at) => at >= low && at <= high),
});

const sizeOf = (plot, most) => {
  const width = Math.max(280, plot.clientWidth || 640);
  return { width, height: Math.round(Math.min(most, Math.max(260, width * 0.5))) };
};

const drawing = ({ width, height }, label, ...children) =>
  makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, ...children);

const svgText = (content, attributes) => makeSvg("text", attributes, content);

// Ticks along the bottom, with the axis' name under them
const acrossAxis = ({ width, height }, across, name) => [
  ...across.ticks.flatMap((value) => [
    makeSvg("line", { class: "grid", x1: across.place(value), x2: across.place(value), y1: MAP_MARGIN.top, y2: height - MAP_MARGIN.bottom }),
    svgText(written(value), { x: across.place(value), y: height - MAP_MARGIN.bottom + 16, "text-anchor": "middle" })]),
  svgText(name, { class: "axis", x: (MAP_MARGIN.left + width - MAP_MARGIN.right) / 2, y: height - 8, "text-anchor": "middle" }),
];

const upAxis = ({ width }, up, shown = written) => up.ticks.flatMap((value) => [
  makeSvg("line", { class: "grid", x1: MAP_MARGIN.left, x2: width - MAP_MARGIN.right, y1: up.place(value), y2: up.place(value) }),
  svgText(shown(value), { x: MAP_MARGIN.left - 6, y: up.place(value) + 4, "text-anchor": "end" })]);

const geometric = (low, high, points) => Array.from({ length: points }, (_, at) => low * (high / low) ** (at / (points - 1)));

const curvePlot = (plot, { curve, mine, worst, inside, most }) => {
  const size = sizeOf(plot, 380);
  const { concurrency: rows, speed_up: ratio, crossover } = curve;
  const wide = worst === null ? [] : [ratio.map((value) => value / (1 - worst)), ratio.map((value) => value / (1 + worst))];
  const highest = Math.max(1.2, ...curve.speed_up_high, ...(wide[0] ?? [])) * 1.06;
  const across = logScale(1, Math.max(2, rows.at(-1)), MAP_MARGIN.left, size.width - MAP_MARGIN.right);
  const [bottom, top] = [size.height - MAP_MARGIN.bottom, MAP_MARGIN.top];
  const up = { place: (value) => bottom - (value / highest) * (bottom - top), ticks: ticks(0, highest, (bottom - top) / 55) };
  const spot = (at, values) => `${across.place(rows[at])},${up.place(values[at])}`;
  const band = (name, high, low) => makeSvg("polygon", { class: name, points:
    [...rows.map((_, at) => spot(at, high)), ...rows.map((_, at) => spot(at, low)).reverse()].join(" ") });
  const fitted = rows.filter((at) => at <= inside).length;
  const line = (name, from, to) => (to - from > 1
    ? [makeSvg("polyline", { class: name, points: rows.slice(from, to).map((_, at) => spot(from + at, ratio)).join(" ") })] : []);
  const beside = (x) => (x > size.width * 0.62 ? { x: x - 9, "text-anchor": "end" } : { x: x + 9, "text-anchor": "start" });
  const shown = (at) => across.place(Math.min(rows.at(-1), Math.max(1, at)));
  const cross = crossover === null || crossover > rows.at(-1) ? [] : [
    makeSvg("line", { class: "crossover", x1: shown(curve.low ?? 1), x2: shown(curve.high ?? rows.at(-1)), y1: up.place(1), y2: up.place(1) }),
    makeSvg("circle", { class: "crossover", cx: across.place(crossover), cy: up.place(1), r: 6 }),
    svgText(`crossover ${written(crossover)}`, { class: "name", ...beside(across.place(crossover)), y: up.place(1) + 20 })];
  const [x, y] = [across.place(mine.concurrency), up.place(mine.speed_up)];
  const here = [makeSvg("line", { class: "here", x1: x, x2: x, y1: y, y2: bottom }),
    makeSvg("polygon", { class: "here", points: `${x},${y - 8} ${x + 8},${y} ${x},${y + 8} ${x - 8},${y}` }),
    svgText(`you: ${mine.speed_up.toFixed(2)}`, { class: "name", ...beside(x), y: y - 10 })];
  const full = most > rows.at(-1) ? [] : [svgText("memory full", { class: "name", x: across.place(most) - 4, y: top + 12, "text-anchor": "end" })];
  const label = `Speed-up from 1 to ${written(rows.at(-1))} requests in flight: ${ratio[0].toFixed(2)} to ${ratio.at(-1).toFixed(2)}; the table below has the same.`;
  plot.replaceChildren(drawing(size, label, ...acrossAxis(size, across, "requests in flight"), ...upAxis(size, up),
    ...(wide.length ? [band("band-worst", wide[0], wide[1])] : []), band("band-draws", curve.speed_up_high, curve.speed_up_low),
    makeSvg("line", { class: "one", x1: MAP_MARGIN.left, x2: size.width - MAP_MARGIN.right, y1: up.place(1), y2: up.place(1) }),
    ...line("curve", 0, fitted), ...line("curve beyond", Math.max(0, fitted - 1), rows.length), ...cross, ...here, ...full));
};
