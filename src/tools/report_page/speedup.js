// The gain of tuning for each model. The numbers and the warning are those that the run printed; nothing is computed here.
const ratioText = (ratio) => (isKnown(ratio) ? ratio.toFixed(2) + "×" : "not known");

// {name, before, after, ratio, word, how, warning, now}: word names the ratio. Only whole models that ran untuned and
// tuned in turn have a speed-up; without such runs there is an estimate. before and after always come from the same
// measurement; now, a time of the compiled model that was measured for this page, is used only if both are missing.
function gains(data) {
  const gain = (name, whole, estimate, now) => {
    if (whole)
      return { name, before: whole.untuned_seconds, after: whole.tuned_seconds, ratio: whole.speedup, word: "speed-up",
               how: `whole runs, untuned and tuned in turn; the runs differ by ${(100 * whole.spread).toFixed(1)} %`,
               warning: whole.warning, now: null };
    if (estimate)
      return { name, before: estimate.untuned_seconds, after: estimate.tuned_seconds, ratio: estimate.ratio, word: "estimate",
               how: "sum of the tasks' times, each measured alone; the whole model was not run", warning: null, now: null };
    return { name, before: null, after: null, ratio: null, word: "speed-up", how: "timed for this page", warning: null, now };
  };
  if (data.models.length > 0)
    return data.models.map((model) => gain(nameOf(model), model.end_to_end, model.estimate,
                                           model.run_seconds.length > 0 ? quantile(model.run_seconds, .25) : null));
  return data.setups.map((setup, s) => gain("all tasks, each called once" + (data.setups.length > 1 ? ", " + setupName(data, s) : ""),
                                            null, setup.estimate, null));
}

// The text in tables, which never shows an estimate as if it were a speed-up.
const gainText = (gain) => (gain.word === "speed-up" ? ratioText(gain.ratio) : `${gain.word} ${ratioText(gain.ratio)}`);

const warnings = (list) =>
  list.filter((gain) => gain.warning).map((gain) =>
    element("p", { class: "warning" }, element("strong", {}, list.length > 1 ? `${gain.name}: ` : "Warning: "), gain.warning));
