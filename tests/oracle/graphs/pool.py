"""Workers in separate processes. An oracle may crash (ONNX Runtime divides by zero); only that case is lost then."""

import collections
import concurrent.futures
import multiprocessing
import multiprocessing.util
import time
import traceback
from concurrent.futures.process import BrokenProcessPool

from .accepted import AcceptedList
from .work import Tally, Worker

CHUNK = 20

_worker = None


def start_worker(settings):
    global _worker
    _worker = Worker(settings, AcceptedList())
    multiprocessing.util.Finalize(None, _worker.close, exitpriority=10)


def run_chunk(numbers):
    tally, found = Tally(), []
    for number in numbers:
        try:
            own, more = _worker.run(number)
        except Exception as error:
            # An error of the checker, not of the tested program: it is counted in the summary, and the run continues.
            traceback.print_exc()
            own, more = Tally(cases=1), []
            own.failures[f"the checker fails, case {number}: {type(error).__name__}: {error}"] += 1
        tally.add(own)
        found += more
    return list(numbers), tally, found


class Pool:
    def __init__(self, settings, jobs):
        self.settings, self.jobs = settings, jobs

    def run(self, numbers, deadline=None):
        """Yields (numbers, tally, found) for finished chunks in any order."""
        todo = collections.deque(numbers[i : i + CHUNK] for i in range(0, len(numbers), CHUNK))
        suspects = []
        while todo and not late(deadline):
            suspects = []
            yield from self._until_broken(todo, suspects, self.jobs, deadline)
            # One of these cases ended a process, so each is run alone in a process.
            for number in [n for chunk in suspects for n in chunk]:
                crashed = []
                yield from self._until_broken(collections.deque([[number]]), crashed, 1, None)
                if crashed:
                    tally = Tally(cases=1)
                    tally.accepted["undefined: an oracle crashes"] += 1
                    yield [number], tally, []

    def _until_broken(self, todo, suspects, jobs, deadline):
        """Runs the chunks of todo until a process ends; chunks that were running then are moved to suspects."""
        waiting = {}
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(jobs, context, start_worker, (self.settings,)) as pool:
            try:
                while True:
                    while todo and len(waiting) < jobs + 1 and not late(deadline):
                        chunk = todo.popleft()
                        waiting[pool.submit(run_chunk, chunk)] = chunk
                    if not waiting:
                        return
                    done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                    for future in done:
                        result = future.result()
                        del waiting[future]
                        yield result
            except BrokenProcessPool:
                suspects += waiting.values()
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def late(deadline):
    return deadline is not None and time.monotonic() > deadline
