// Numbers for people.
const isKnown = (value) => typeof value === "number" && isFinite(value);

function digits(value, count = 3) {
  if (value === 0) return "0";
  const places = Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 12));
}

function withUnit(value, steps) {
  for (const [size, unit] of steps) if (Math.abs(value) >= size) return digits(value / size) + " " + unit;
  const [size, unit] = steps[steps.length - 1];
  return digits(value / size) + " " + unit;
}

const seconds = (value) =>
  value === 0 ? "0 s" : isKnown(value) ? withUnit(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]) : "not known";
const flopRate = (value) =>
  isKnown(value) ? withUnit(value, [[1e12, "TFLOP/s"], [1e9, "GFLOP/s"], [1e6, "MFLOP/s"], [1, "FLOP/s"]]) : "not known";
const byteRate = (value) => (isKnown(value) ? withUnit(value, [[1e12, "TB/s"], [1e9, "GB/s"], [1, "B/s"]]) : "not known");
const byteCount = (value) =>
  isKnown(value) ? withUnit(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]) : "not known";
const times = (before, after) => (isKnown(before) && isKnown(after) && after > 0 ? digits(before / after) + "×" : "not known");
const percent = (share) => (isKnown(share) ? digits(100 * share) + " %" : "not known");
const duration = (value) =>
  value < 90 ? digits(value, 2) + " s" : value < 5400 ? digits(value / 60, 2) + " min" : digits(value / 3600, 2) + " h";

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * share)];
}

// A name that an axis has room for.
const short = (text, most) => (text.length <= most ? text : text.slice(0, most - 1) + "…");
