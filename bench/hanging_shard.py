#!/usr/bin/env python3
"""Cost of a hanging shard for a run of real processes, with and without weak synchronization.

Starts `drover train` with steps of about a tenth of a second, stops one of four shards for a while in the middle,
and prints the duration of the whole run, in interleaved rounds.

    bench/hanging_shard.py [--drover build/release/drover] [--rounds 3] [--hang 2.5] [--pull 1,0.6,auto]
"""
import argparse
import os
import pathlib
import signal
import sqlite3
import statistics
import subprocess
import tempfile
import time


def query(path, sql):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return database.execute(sql).fetchone()
    finally:
        database.close()


def run(drover, pull, hang, folder):
    path = pathlib.Path(folder) / f"{pull}-{hang}-{time.time()}.db"
    process = subprocess.Popen(
        [drover, "train", "--model", "mlp", "--data", "fashion-mnist", "--workers", "2", "--shards", "4",
         "--steps", "60", "--batch", "64", "--slow", "delay=100ms", "--pull", pull, "--pull-grace", "2ms",
         "--run-file", path, "--quiet"],
        stdout=subprocess.DEVNULL)
    while True:
        time.sleep(0.05)
        try:
            if query(path, "select count(*) from steps")[0] >= 25:
                break
        except sqlite3.OperationalError:
            if process.poll() is not None:
                raise SystemExit("drover train failed")
    if hang > 0:
        shard = query(path, "select pid from peers where name = 'shard 3'")[0]
        os.kill(shard, signal.SIGSTOP)
        try:
            time.sleep(hang)
        finally:
            os.kill(shard, signal.SIGCONT)
    if process.wait() != 0:
        raise SystemExit("drover train failed")
    elapsed, = query(path, "select elapsed_ns / 1e9 from run")
    stalest, fresh = query(path, "select max(staleness_max), avg(fresh_mean) from steps")
    accuracy, = query(path, "select accuracy from evaluations order by version desc limit 1")
    return elapsed, stalest or 0, 1.0 if fresh is None else fresh, accuracy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drover", default="build/release/drover")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hang", type=float, default=2.5, help="seconds")
    parser.add_argument("--pull", default="1,0.6,auto")
    args = parser.parse_args()
    cases = [(pull, hang) for hang in (0.0, args.hang) for pull in args.pull.split(",")]
    results = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            for case in cases:
                results[case].append(run(args.drover, *case, folder))
    print("pull   hangs   run (least-most)        stalest block   fresh    accuracy")
    for (pull, hang), rows in results.items():
        times = [row[0] for row in rows]
        print(f"{pull:<6} {hang:3.1f} s   {statistics.median(times):5.2f} s ({min(times):.2f}-{max(times):.2f})   "
              f"{max(row[1] for row in rows):>6} steps   {statistics.mean(row[2] for row in rows):7.2%}  "
              f"{statistics.mean(row[3] for row in rows):7.2%}")


if __name__ == "__main__":
    main()
