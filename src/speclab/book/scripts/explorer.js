// Any two metrics of every configuration that was simulated, one workload at a time, with the Pareto front of those
// that pass a filter. What fails the filter stays in the picture, faint: it was simulated too.

const SHAPES = ["circle", "square", "triangle", "diamond"];
const MARGIN = { left: 64, right: 18, top: 16, bottom: 46 };

const passes = (data, point, filter) => filter === "any" || (point.attainment[filter] ?? 0) >= data.needed;

// Whether a is at least as good as b in both metrics and better in one
const dominates = (a, b, x, y) => {
  const gain = (metric) => (a.values[metric.key] - b.values[metric.key]) * (metric.better === "higher" ? 1 : -1);
  return gain(x) >= 0 && gain(y) >= 0 && (gain(x) > 0 || gain(y) > 0);
};

const frontOf = (points, x, y) => points
  .filter((point) => !points.some((other) => dominates(other, point, x, y)))
  .sort((a, b) => a.values[x.key] - b.values[x.key] || a.values[y.key] - b.values[y.key]);

// What one choice of the controls shows; pure
const view = (data, state) => {
  const [x, y] = [state.x, state.y].map((key) => data.metrics.find((metric) => metric.key === key));
  const known = (point) => point.values[x.key] != null && point.values[y.key] != null;
  const chosen = data.points.filter((point) => point.workload === state.workload && state.devices.includes(point.device));
  const points = chosen.filter(known);
  const good = points.filter((point) => passes(data, point, state.filter));
  return { x, y, points, good, front: frontOf(good, x, y), missing: chosen.length - points.length };
};

const scaleOf = (values, from, to, apart) => {
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  const air = (high - low || Math.abs(high) || 1) * 0.08;
  const [start, end] = [low >= 0 ? Math.max(0, low - air) : low - air, high + air];
  const place = (value) => from + ((value - start) / (end - start)) * (to - from);
  return { place, ticks: ticks(start, end, Math.abs(to - from) / apart) };
};

const shapeOf = (kind, x, y, size) => {
  if (kind === "circle") return makeSvg("circle", { cx: x, cy: y, r: size });
  const corners = {
    square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
    triangle: [[0, -1.15], [1.05, 0.8], [-1.05, 0.8]],
    diamond: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
  }[kind];
  return makeSvg("polygon", { points: corners.map(([dx, dy]) => `${x + dx * size},${y + dy * size}`).join(" ") });
};

const mountExplorer = (root, data) => {
  // black stands for the baseline on every page; on a dark ground it is the colour of the text
  const ink = (colour) => (colour === "#000000" ? "var(--text)" : colour);
  let state = structuredClone(data.first);
  const preset = (point) => data.presets.find((each) => each.key === point.lever);
  const device = (point) => data.devices.find((each) => each.key === point.device);
  const shape = (point) => SHAPES[data.devices.indexOf(device(point)) % SHAPES.length];
  const title = (metric) => (metric.unit ? `${metric.label}, ${metric.unit}` : metric.label);
  const go = (change) => { state = { ...state, ...change }; draw(); };

  const metricOptions = data.metrics.map((metric) => [metric.key, title(metric)]);
  const pairs = (entries) => entries.map(({ key, label }) => [key, label]);
  const boxes = data.devices.map(({ key, label }, index) => {
    const box = make("input", { type: "checkbox", name: "device", value: key, checked: state.devices.includes(key), onchange: () =>
      go({ devices: data.devices.map((each) => each.key).filter((each) => (each === key ? box.checked : state.devices.includes(each))) }) });
    const sign = makeSvg("svg", { width: 14, height: 14, "aria-hidden": "true", class: "legend-shape" }, shapeOf(SHAPES[index], 7, 7, 5));
    return make("label", { class: "widget-box" }, box, sign, label);
  });
  const controls = make("div", { class: "widget-fields" },
    labelled("Workload", choice("workload", pairs(data.workloads), state.workload, (workload) => go({ workload }))),
    labelled("Across", choice("x", metricOptions, state.x, (x) => go({ x }))),
    labelled("Up", choice("y", metricOptions, state.y, (y) => go({ y }))),
    labelled("Meets its SLOs", choice("filter", pairs(data.filters), state.filter, (filter) => go({ filter }))),
    make("fieldset", { class: "widget-field" }, make("legend", {}, "Devices"), ...boxes));
  const plot = make("div", { class: "widget-plot" });
  const legend = make("p", { class: "widget-legend", "aria-hidden": "true" }, ...data.presets.map(({ label, colour }) =>
    make("span", {}, make("span", { class: "swatch", style: `background:${ink(colour)}` }), label)));
  const caption = make("p", { class: "widget-caption", role: "status", "aria-live": "polite" });
  const list = make("div", { class: "wide-table" });

  const drawPlot = (shown) => {
    const width = Math.max(280, plot.clientWidth || 640);
    const height = Math.round(Math.min(440, Math.max(300, width * 0.62)));
    const across = scaleOf(shown.points.map((point) => point.values[shown.x.key]), MARGIN.left, width - MARGIN.right, 70);
    const up = scaleOf(shown.points.map((point) => point.values[shown.y.key]), height - MARGIN.bottom, MARGIN.top, 55);
    const at = (point) => [across.place(point.values[shown.x.key]), up.place(point.values[shown.y.key])];
    const better = (metric) => (width > 480 ? ` (${metric.better} is better)` : "");
    const text = (content, attributes) => makeSvg("text", attributes, content);
    const grid = [
      ...across.ticks.flatMap((value) => [
        makeSvg("line", { class: "grid", x1: across.place(value), x2: across.place(value), y1: MARGIN.top, y2: height - MARGIN.bottom }),
        text(written(value), { x: across.place(value), y: height - MARGIN.bottom + 16, "text-anchor": "middle" })]),
      ...up.ticks.flatMap((value) => [
        makeSvg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: up.place(value), y2: up.place(value) }),
        text(written(value), { x: MARGIN.left - 6, y: up.place(value) + 4, "text-anchor": "end" })]),
      text(`${title(shown.x)}${better(shown.x)}`, { class: "axis", x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 8, "text-anchor": "middle" }),
      text(`${title(shown.y)}${better(shown.y)}`, { class: "axis", transform: `translate(14 ${(height - MARGIN.bottom + MARGIN.top) / 2}) rotate(-90)`, "text-anchor": "middle" }),
    ];
    // between two points of the front lies a step: nothing was simulated on a straight line from one to the other
    const corners = shown.front.flatMap((point, index) => {
      const next = shown.front[index + 1];
      const worse = (metric) => (metric.better === "higher" ? Math.min : Math.max)(point.values[metric.key], next.values[metric.key]);
      return next ? [at(point), [across.place(worse(shown.x)), up.place(worse(shown.y))]] : [at(point)];
    });
    const line = makeSvg("polyline", { class: "front", points: corners.map((corner) => corner.join(",")).join(" ") });
    const marks = shown.points.map((point) => {
      const [x, y] = at(point);
      const mark = shapeOf(shape(point), x, y, 6);
      const good = shown.good.includes(point);
      mark.setAttribute("fill", good ? ink(preset(point).colour) : "none");
      mark.setAttribute("stroke", ink(preset(point).colour));
      const told = `${preset(point).label}, ${device(point).label}: ${written(point.values[shown.x.key])} across, ${written(point.values[shown.y.key])} up`;
      return makeSvg("g", { class: `point${good ? "" : " fails"}${shown.front.includes(point) ? " on-front" : ""}` }, makeSvg("title", {}, told), mark);
    });
    const names = shown.front.map((point) => {
      const [x, y] = at(point);
      const right = x > width * 0.6;
      return text(`${preset(point).label}, ${device(point).label}`, { class: "name", x: right ? x - 10 : x + 10, y: y - 8, "text-anchor": right ? "end" : "start" });
    });
    const label = `${shown.points.length} configurations, ${title(shown.x)} across and ${title(shown.y)} up; the table below has the same.`;
    plot.replaceChildren(makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
      ...grid, line, ...marks, ...apart(names)));
  };

  const drawList = (shown) => {
    const rows = [...shown.points].sort((a, b) => a.values[shown.x.key] - b.values[shown.x.key]).map((point) => {
      const good = shown.good.includes(point);
      const cells = [preset(point).label, device(point).label, written(point.values[shown.x.key]), written(point.values[shown.y.key]),
        good ? "yes" : "no", shown.front.includes(point) ? "yes" : "no"];
      return make("tr", { class: good ? null : "fails" }, ...cells.map((cell) => make("td", {}, cell)));
    });
    const heads = ["preset", "device", title(shown.x), title(shown.y), "passes", "on the front"];
    list.replaceChildren(make("table", { class: "dataframe" },
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, ...rows)));
  };

  const draw = () => {
    const shown = view(data, state);
    const name = (point) => `${point.lever}/${point.device}`;
    Object.assign(root.dataset, { x: state.x, y: state.y, workload: state.workload, filter: state.filter,
      devices: state.devices.join(" "), good: shown.good.map(name).join(" "), front: shown.front.map(name).join(" ") });
    drawPlot(shown);
    drawList(shown);
    const front = shown.front.map((point) => `${preset(point).label} on ${device(point).label}`);
    const missing = shown.missing ? ` ${shown.missing} more have no value here.` : "";
    caption.textContent = `${shown.good.length} of ${shown.points.length} configurations pass the filter. ` +
      (front.length ? `On the Pareto front: ${front.join("; ")}.` : "None is on the Pareto front.") + missing;
  };

  root.setAttribute("role", "group");
  root.append(controls, plot, legend, caption, list);
  root.speclab = { view: (change) => view(data, { ...data.first, ...change }) };
  draw();
  let wide = plot.clientWidth;
  new ResizeObserver(() => {
    if (plot.clientWidth !== wide) { wide = plot.clientWidth; drawPlot(view(data, state)); }
  }).observe(plot);
};

// Names of neighbouring points are moved down until none covers another
const apart = (names) => {
  const placed = [];
  for (const name of [...names].sort((a, b) => a.getAttribute("y") - b.getAttribute("y"))) {
    let y = Number(name.getAttribute("y"));
    const [x, width] = [Number(name.getAttribute("x")), name.textContent.length * 6.6];
    const from = name.getAttribute("text-anchor") === "end" ? x - width : x;
    while (placed.some((other) => Math.abs(other.y - y) < 13 && from < other.to && other.from < from + width)) y += 4;
    placed.push({ y, from, to: from + width });
    name.setAttribute("y", y);
  }
  return names;
};

mountAll("explorer", mountExplorer);
