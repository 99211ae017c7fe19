"""A bar that shows a running search, on terminals and in notebooks."""

from __future__ import annotations

from typing import Any

_PHASES = {
    "untuned": "timing the untuned model",
    "search": "searching",
    "compare": "comparing whole models",
    "write": "writing",
}


class TuneProgressBar:
    """Draws a bar of tqdm, of seconds or of trials, from the events of a search (see `tensorsmith.tune`)."""

    def __init__(self, seconds: float, trials: int) -> None:
        from tqdm.auto import tqdm

        self._by_time = seconds > 0
        total = seconds if self._by_time else (trials or None)
        unit = {"bar_format": "{desc} {bar} {n:.0f}/{total:.0f} s {postfix}"} if self._by_time else {}
        self._bar = tqdm(total=total, unit="trial", dynamic_ncols=True, **unit)

    def __call__(self, event: dict[str, Any]) -> None:
        self._bar.set_description_str(_PHASES.get(event["phase"], event["phase"]), refresh=False)
        if "trials" in event:
            done = event["elapsed_seconds"] if self._by_time else event["trials"]
            if self._bar.total is not None:
                done = min(done, self._bar.total)
            estimate = event["estimate"]
            if estimate:
                self._bar.set_postfix_str(
                    f"{event['trials']} trials, estimate {1e3 * estimate['tuned_seconds']:.3g} ms"
                    f" ({estimate['ratio']:.2f}x)",
                    refresh=False,
                )
            self._bar.update(done - self._bar.n)  # draws a few times a second
        else:
            self._bar.refresh()

    def close(self) -> None:
        if self._by_time and self._bar.total is not None:
            self._bar.n = self._bar.total
            self._bar.refresh()
        self._bar.close()
