// Numbers on axes and in tables, as every widget writes them.

const ticks = (low, high, wanted) => {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12); i += 1) found.push(Number((i * step).toPrecision(12)));
  return found;
};

const written = (value, digits = 3) => {
  const text = Math.abs(value) >= 10 ** (digits - 1) ? Math.round(value) : Number(value.toPrecision(digits));
  return text.toLocaleString("en-US", { maximumSignificantDigits: 12 });
};
