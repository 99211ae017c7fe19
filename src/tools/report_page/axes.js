// Axes with informative ticks for every range.
const kLogFrom = 8;  // an axis is logarithmic if the largest value is at least this many times the smallest

function axis(title, options = {}) {
  const { tick, ...rest } = options;
  return (colours) => ({
    title: { display: title !== "", text: title, color: colours.axis },
    grid: { color: colours.grid, borderColor: colours.line, tickLength: 4 },
    ticks: { color: colours.axis, maxRotation: 0, autoSkipPadding: 4, ...(tick ? { callback: tick } : {}), ...(rest.ticks || {}) },
    ...Object.fromEntries(Object.entries(rest).filter(([key]) => key !== "ticks")),
  });
}

function niceStep(span, most) {
  const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 2.5, 5, 10].find((lead) => lead * power >= rough * (1 - 1e-9));
}

// Returns about `most` round values, at least three.
function linearTicks(low, high, most) {
  const step = niceStep(high - low, most);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) ticks.push(i * step);
  return ticks.length < 3 && most < 20 ? linearTicks(low, high, most + 1) : ticks;
}

// Returns three to about ten ticks: linear steps within a decade, leading digits over few decades, powers of ten over many.
function logTicks(low, high) {
  const span = Math.log10(high / low);
  if (span < .75) return linearTicks(low, high, 6);
  const leads = span < 1.3 ? [1, 1.5, 2, 3, 4, 5, 7] : span < 2.6 ? [1, 2, 5] : span < 3.6 ? [1, 3] : [1];
  const every = Math.ceil(span / 9);
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power) {
    if (leads.length === 1 && power % every !== 0) continue;
    for (const lead of leads) {
      const value = lead * 10 ** power;
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push(value);
    }
  }
  return ticks;
}

// The unit of an axis: minutes only from three minutes on, so that a run of a minute is shown in seconds.
const axisUnit = (most, units) => units.find(([size]) => most >= size * (units === kDurationUnits ? 3 : 1)) || units[units.length - 1];

// Labels of ticks: in one unit if the axis is linear, each in its own if it spans decades; no more digits than needed.
function tickText(units) {
  return function (value, index, ticks) {
    if (value === 0) return "0";
    const values = ticks.map((tick) => tick.value);
    const most = Math.max(...values.map(Math.abs));
    const one = this.type !== "logarithmic" || values.every((v) => v === 0 || most / Math.abs(v) < 100);
    const [size, unit] = one ? axisUnit(most, units) : unitFor(value, units);
    const space = unit === "" || unit === "×" ? "" : " ";
    if (!one || values.length < 2) return Number((value / size).toPrecision(3)) + space + unit;
    const step = Math.min(...values.slice(1).map((v, i) => v - values[i])) / size;
    const needed = (places) => Math.abs(Math.round(step * 10 ** places) - step * 10 ** places) < 1e-6 * 10 ** places * step;
    let places = 0;
    while (places < 9 && !(step * 10 ** places > .99 && needed(places))) ++places;
    return (value / size).toFixed(places) + space + unit;
  };
}

// Returns as many round values in the axis' unit as there is room for.
const tickRoom = (scale) =>
  Math.max(3, Math.min(8, Math.floor(scale.isHorizontal() ? scale.maxWidth / 60 : scale.maxHeight / 40)));
const evenTicks = (units) => (scale) => {
  const [size] = axisUnit(Math.max(Math.abs(scale.min), Math.abs(scale.max)), units);
  scale.ticks = linearTicks(scale.min / size, scale.max / size, tickRoom(scale)).map((value) => ({ value: value * size }));
};

// An axis of values with units. values: all shown values. zero: the axis begins at 0, for bars. log: true or false; if
// not given, the values decide.
function valueAxis(title, units, values, { zero = false, log = null, ticks = {} } = {}) {
  const known = values.filter((value) => isKnown(value) && (value > 0 || zero));
  const low = Math.min(...known), high = Math.max(...known);
  const tick = tickText(units);
  if (known.length === 0) return axis(title, { type: "linear", tick, ticks });
  const logarithmic = log === null ? !zero && low > 0 && high / low >= kLogFrom : log;
  if (logarithmic) {
    const room = Math.max((high / low) ** .04, 1.03);
    return axis(title, { type: "logarithmic", min: low / room, max: high * room, tick, ticks,
                         afterBuildTicks: (scale) => { scale.ticks = logTicks(scale.min, scale.max).map((value) => ({ value })); } });
  }
  if (zero) return axis(title, { type: "linear", min: 0, max: (high || 1) * 1.04, tick, ticks, afterBuildTicks: evenTicks(units) });
  const room = (high - low || Math.abs(high) || 1) * .06;
  return axis(title, { type: "linear", min: Math.max(low - room, low < 0 ? -Infinity : 0), max: high + room, tick, ticks, afterBuildTicks: evenTicks(units) });
}

// An axis of bar names that shows every name.
const nameAxis = (options = {}) => {
  const { ticks = {}, ...rest } = options;
  return axis("", { grid: { display: false }, ticks: { autoSkip: false, ...ticks }, ...rest });
};
