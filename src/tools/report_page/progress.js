// Progress of a run, as a bar with the remaining time.
const clock = (value) => {
  const total = Math.round(value), two = (n) => String(n).padStart(2, "0");
  return total < 3600 ? `${Math.floor(total / 60)}:${two(total % 60)}` : `${Math.floor(total / 3600)}:${two(Math.floor(total / 60) % 60)}:${two(total % 60)}`;
};

function showProgress(live) {
  const place = document.getElementById("progress"), bar = place.querySelector("progress");
  const running = Boolean(live && live.running);
  place.hidden = !running;
  if (!running) return;
  const elapsed = isKnown(live.elapsed_seconds) ? live.elapsed_seconds : 0, known = isKnown(live.left_seconds);
  if (known) bar.value = elapsed + live.left_seconds > 0 ? elapsed / (elapsed + live.left_seconds) : 0;
  else bar.removeAttribute("value");  // an indeterminate bar
  const left = known ? `${clock(live.left_seconds)} left` : "time left not known";
  place.querySelector(".phase").textContent = live.phase || "";
  place.querySelector(".left").textContent = `${clock(elapsed)} so far, ${left}`;
}
