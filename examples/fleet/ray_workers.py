#!/usr/bin/env python3
"""Workers of a fleet under Ray: one a node, with the node's processors to itself, so that nothing disturbs what it measures.

    PGPASSWORD=... python3 ray_workers.py --db postgresql://tuner@server/records --workers 16

Needs `pip install ray` and, on each node, tensorsmith. Where a node or Ray's process on it is lost, Ray starts the worker
elsewhere; what the lost one had taken is taken by others (docs/fleets.md). A worker that fails its check ends with an error
that is printed, and is not started again: its node is in quarantine. The password goes with the job's environment; nodes that
have a ~/.pgpass need none.
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
    """Until there is nothing to measure; what the worker reports, and its exit code."""
    # A cancelled task gets KeyboardInterrupt: the worker is to end by itself and give back what it has not measured.
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
    parser.add_argument("--workers", type=int, required=True, help="of different nodes")
    parser.add_argument("--cpus", type=float, default=1, help="processors of a node that a worker has to itself")
    parser.add_argument("--threads", type=int, default=0, help="that kernels run on (0: all cores)")
    parser.add_argument("--idle", type=float, default=600, help="seconds without anything to measure after which a worker ends")
    parser.add_argument("--lease", type=float, default=30)
    parser.add_argument("--program", default="tensorsmith")
    parser.add_argument("--spread", choices=["STRICT_SPREAD", "SPREAD"], default="STRICT_SPREAD", help="SPREAD: several on a node")
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
