// Zoom of a plot, by dragging a rectangle over it or by buttons. Ranges are kept by the plot's id when the page is
// redrawn.
const zooms = new Map();  // id -> {x: {min, max}, y: {min, max}}
const kZoomStep = 2;
const kLeastDrag = 8;  // pixels

// Converts between values and positions on a linear axis, in which ranges are moved and stretched.
const positionsOf = (scale) =>
  scale.type === "logarithmic" ? { to: Math.log, from: Math.exp } : { to: (value) => value, from: (value) => value };

function showZoom(entry) {
  if (!entry.buttons) return;
  const zoomed = zooms.has(entry.id);
  entry.buttons.reset.disabled = !zoomed;
  entry.buttons.out.disabled = !zoomed;
}

function setZoom(canvas, entry, ranges) {
  if (ranges) zooms.set(entry.id, ranges);
  else zooms.delete(entry.id);
  draw(canvas, entry);
}

// Stretches the range about its middle, at most to the whole plot.
function zoomBy(canvas, entry, stretch) {
  const whole = entry.whole || (entry.whole = wholeOf(entry));
  const ranges = {};
  let zoomed = false;
  for (const key of entry.zoom) {
    const scale = entry.chart.scales[key], { to, from } = positionsOf(scale);
    const low = to(scale.min), high = to(scale.max), middle = (low + high) / 2, half = (high - low) / 2 / stretch;
    const almost = 1e-9 * half;
    const ends = [to(whole[key].min), to(whole[key].max)];
    ranges[key] = { min: from(Math.max(middle - half, ends[0])), max: from(Math.min(middle + half, ends[1])) };
    zoomed = zoomed || middle - half > ends[0] + almost || middle + half < ends[1] - almost;
  }
  setZoom(canvas, entry, zoomed ? ranges : null);
}

const wholeOf = (entry) =>
  Object.fromEntries([...entry.zoom].map((key) => [key, { min: entry.chart.scales[key].min, max: entry.chart.scales[key].max }]));

function zoomButtons(canvas, entry) {
  const inwards = toolButton(entry.id + "-in", "+", "Zoom in: " + entry.title, () => {
    if (!zooms.has(entry.id)) entry.whole = wholeOf(entry);
    zoomBy(canvas, entry, kZoomStep);
  });
  const out = toolButton(entry.id + "-out", "−", "Zoom out: " + entry.title, () => {
    if (entry.whole) zoomBy(canvas, entry, 1 / kZoomStep);
    else setZoom(canvas, entry, null);
    if (out.disabled) inwards.focus();
  });
  const reset = toolButton(entry.id + "-reset", "Reset", "Show the whole plot again: " + entry.title, () => {
    setZoom(canvas, entry, null);
    inwards.focus();
  });
  entry.buttons = { out, reset };
  return [inwards, out, reset];
}

// Dragging works by mouse or pen; a finger scrolls the page and can use the buttons. A double click shows the whole plot.
function dragToZoom(canvas, area, entry) {
  const frame = element("div", { class: "frame", hidden: "" });
  area.append(frame);
  canvas.classList.add("zooms");
  let begin = null;
  const inside = (event) => {
    const box = canvas.getBoundingClientRect(), { left, right, top, bottom } = entry.chart.chartArea;
    return { x: Math.min(Math.max(event.clientX - box.left, left), right), y: Math.min(Math.max(event.clientY - box.top, top), bottom) };
  };
  // From the begin of the drag to the pointer, over the whole height if only x is zoomed.
  const rectangle = (end) => {
    const { top, bottom } = entry.chart.chartArea, both = entry.zoom.includes("y");
    return { left: Math.min(begin.x, end.x), right: Math.max(begin.x, end.x),
             top: both ? Math.min(begin.y, end.y) : top, bottom: both ? Math.max(begin.y, end.y) : bottom };
  };
  const stop = () => {
    begin = null;
    frame.hidden = true;
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0) return;
    begin = inside(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!begin) return;
    const { left, right, top, bottom } = rectangle(inside(event));
    frame.hidden = right - left < kLeastDrag;
    frame.style.cssText = `left:${left}px;top:${top}px;width:${right - left}px;height:${bottom - top}px`;
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!begin) return;
    const { left, right, top, bottom } = rectangle(inside(event));
    stop();
    if (right - left < kLeastDrag || bottom - top < kLeastDrag) return;
    if (!zooms.has(entry.id)) entry.whole = wholeOf(entry);
    const { x, y } = entry.chart.scales;
    const ranges = { x: { min: x.getValueForPixel(left), max: x.getValueForPixel(right) } };
    if (entry.zoom.includes("y")) ranges.y = { min: y.getValueForPixel(bottom), max: y.getValueForPixel(top) };
    setZoom(canvas, entry, ranges);
  });
  canvas.addEventListener("pointercancel", stop);
  canvas.addEventListener("dblclick", () => setZoom(canvas, entry, null));
}
