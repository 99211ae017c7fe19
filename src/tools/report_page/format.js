// Formats numbers for display.
const isKnown = (value) => typeof value === "number" && isFinite(value);

function digits(value, count = 3) {
  if (value === 0) return "0";
  const places = Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 12));
}

const kTimeUnits = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
const kDurationUnits = [[3600, "h"], [60, "min"], [1, "s"]];
const kFlopUnits = [[1e12, "TFLOP/s"], [1e9, "GFLOP/s"], [1e6, "MFLOP/s"], [1, "FLOP/s"]];
const kByteRateUnits = [[1e12, "TB/s"], [1e9, "GB/s"], [1, "B/s"]];
const kByteUnits = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const kNoUnits = [[1, ""]];

const unitFor = (value, units) => units.find(([size]) => Math.abs(value) >= size) || units[units.length - 1];

function withUnit(value, units) {
  const [size, unit] = unitFor(value, units);
  return digits(value / size) + " " + unit;
}

const seconds = (value) => (value === 0 ? "0 s" : isKnown(value) ? withUnit(value, kTimeUnits) : "not known");
const flopRate = (value) => (isKnown(value) ? withUnit(value, kFlopUnits) : "not known");
const byteRate = (value) => (isKnown(value) ? withUnit(value, kByteRateUnits) : "not known");
const byteCount = (value) => (isKnown(value) ? withUnit(value, kByteUnits) : "not known");
const factor = (value) => (isKnown(value) ? digits(value) + "×" : "not known");
const ratioOf = (before, after) => (isKnown(before) && isKnown(after) && after > 0 ? before / after : null);
const times = (before, after) => factor(ratioOf(before, after));
const percent = (share) => (isKnown(share) ? digits(100 * share) + " %" : "not known");
const duration = (value) =>
  value < 90 ? digits(value, 2) + " s" : value < 5400 ? digits(value / 60, 2) + " min" : digits(value / 3600, 2) + " h";

// Kinds of table columns: how a number is shown, and its unit in a CSV file. Text has no unit.
const asText = null;
const asSeconds = { show: seconds, unit: "s" };
const asDuration = { show: (value) => (isKnown(value) ? duration(value) : "not known"), unit: "s" };
const asFlopRate = { show: flopRate, unit: "FLOP/s" };
const asBytes = { show: byteCount, unit: "B" };
const asPercent = { show: percent, unit: "" };
const asFactor = { show: factor, unit: "" };
const asCount = { show: (value) => (isKnown(value) ? String(value) : "not known"), unit: "" };
const asNumber = { show: (value) => (isKnown(value) ? digits(value) : "not known"), unit: "" };

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * share)];
}
