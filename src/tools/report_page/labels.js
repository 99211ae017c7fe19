// Names that have to fit beside a bar: shortened in the middle, so that they stay distinct.
function shortened(text, most, head) {
  const letters = [...text];
  if (letters.length <= most) return text;
  const kept = Math.max(1, Math.min(head, most - 2));
  return letters.slice(0, kept).join("") + "…" + letters.slice(letters.length - (most - 1 - kept)).join("");
}

// One label of at most so many letters a name; different names have different labels.
function shortNames(names, most) {
  const labels = new Map();
  const distinct = [...new Set(names)];
  const taken = new Set(distinct.filter((name) => [...name].length <= most));
  for (const name of taken) labels.set(name, name);
  for (const name of distinct) {
    if (labels.has(name)) continue;
    // The cut in the middle first, then others, nearest to the middle first.
    const middle = Math.floor((most - 1) / 2);
    const cuts = Array.from({ length: most - 2 }, (_, i) => i + 1).sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
    const cut = cuts.map((head) => shortened(name, most, head)).find((label) => !taken.has(label));
    let label = cut;
    // They differ in what no single cut shows: a number does it.
    for (let n = 2; label === undefined; ++n) {
      const mark = " #" + n;
      const numbered = shortened(name, most - mark.length, Math.floor((most - mark.length) / 2)) + mark;
      if (!taken.has(numbered)) label = numbered;
    }
    taken.add(label);
    labels.set(name, label);
  }
  return names.map((name) => labels.get(name));
}
