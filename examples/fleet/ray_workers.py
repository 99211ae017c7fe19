#!/usr/bin/env python3
"""Starts workers of a fleet under Ray: one on each node, with processors of its own, so that nothing disturbs its measurements.

    PGPASSWORD=... python3 ray_workers.py --db postgresql://tuner@server/records --workers 16

Needs `pip install ray` and, on each node, tensorsmith. If a node or Ray's process on it is lost, Ray starts the worker on
another node, and other workers take the jobs of the lost one (docs/fleets.md). A worker that fails its check prints an error
and is not started again: its node is in quarantine. The password is passed in the job's environment; nodes that have a
~/.pgpass need none.
"""
import argparse
import os
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(max_retries=-1)
def work(command, environment):
    """Runs a worker until nothing is left to measure. Returns its exit code and its output."""
    # A cancelled task gets KeyboardInterrupt. SIGTERM lets the worker return the jobs that it has not measured.
    worker = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said, _ = worker.communicate()
    except BaseException:
        worker.terminate()
        worker.wait()
        raise
    return worker.returncode, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", required=True)
    parser.add_argument("--workers", type=int, required=True, help="number of workers, each on a node of its own")
    parser.add_argument("--cpus", type=float, default=1, help="number of processors that Ray reserves for a worker")
    parser.add_argument("--threads", type=int, default=0, help="number of threads of the measured kernels (0: all cores)")
    parser.add_argument("--idle", type=float, default=600, help="a worker ends after this many seconds without a job")
    parser.add_argument("--lease", type=float, default=30)
    parser.add_argument("--program", default="tensorsmith")
    parser.add_argument("--spread", choices=["STRICT_SPREAD", "SPREAD"], default="STRICT_SPREAD", help="SPREAD: several workers on a node if there are too few nodes")
    options = parser.parse_args()
    ray.init(logging_level="warning")
    group = placement_group([{"CPU": options.cpus}] * options.workers, strategy=options.spread)
    if not group.wait(120):
        sys.exit(f"ray_workers: Ray has no {options.workers} nodes with {options.cpus:g} free processors each")
    command = [options.program, "worker", "--db", options.db, "--threads", str(options.threads), "--idle", str(options.idle),
               "--lease", str(options.lease), "--json"]
    environment = {"PGPASSWORD": os.environ["PGPASSWORD"]} if "PGPASSWORD" in os.environ else {}
    tasks = [work.options(num_cpus=options.cpus, scheduling_strategy=PlacementGroupSchedulingStrategy(group)).remote(
        command, environment) for _ in range(options.workers)]
    failed = 0
    try:
        while tasks:
            done, tasks = ray.wait(tasks)
            code, said = ray.get(done[0])
            print(said.strip(), flush=True)
            failed = failed or code
    except KeyboardInterrupt:
        for task in tasks:
            ray.cancel(task)
        ray.wait(tasks, num_returns=len(tasks), timeout=30)
        sys.exit(130)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
