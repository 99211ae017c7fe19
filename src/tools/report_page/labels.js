// Shortens names to fit beside a bar, by a cut in the middle that keeps them distinct.
function shortened(text, most, head) {
  const letters = [...text];
  if (letters.length <= most) return text;
  const kept = Math.max(1, Math.min(head, most - 2));
  return letters.slice(0, kept).join("") + "…" + letters.slice(letters.length - (most - 1 - kept)).join("");
}

// Returns a label of limited length for each name; different names have different labels.
function shortNames(names, most) {
  const labels = new Map();
  const distinct = [...new Set(names)];
  const taken = new Set(distinct.filter((name) => [...name].length <= most));
  for (const name of taken) labels.set(name, name);
  for (const name of distinct) {
    if (labels.has(name)) continue;
    // Tries the cut in the middle first, then others by their distance from the middle.
    const middle = Math.floor((most - 1) / 2);
    const cuts = Array.from({ length: most - 2 }, (_, i) => i + 1).sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
    const cut = cuts.map((head) => shortened(name, most, head)).find((label) => !taken.has(label));
    let label = cut;
    // No single cut shows the difference, so a number makes the label distinct.
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
