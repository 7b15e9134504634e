#!/usr/bin/env python3
"""Step time of drover's synchronous training against PyTorch DistributedDataParallel on gloo.

Same network (drover's LeNet), batch, number of workers, threads (one each) and optimiser (SGD with momentum), on
the same data, in interleaved rounds on this machine. Both read Fashion-MNIST from Debian's package and pick a random
batch each step. Prints one JSON object: the median step of each round, and the ratio drover / DDP per round.

    /usr/bin/python3 bench/compare_ddp.py [--drover build/release/drover] [--workers 4] [--batch 32]
                                          [--steps 300] [--rounds 5] [--shards 2]
"""
import argparse
import gzip
import json
import os
import pathlib
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")


def ddp_worker(rank, world, port, batch, steps, out):
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    raw = gzip.decompress((DATA / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    images = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(-1, 1, 28, 28)
    raw = gzip.decompress((DATA / "train-labels-idx1-ubyte.gz").read_bytes())[8:]
    labels = torch.frombuffer(bytearray(raw), dtype=torch.uint8).long()
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(32 * 16, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    generator = torch.Generator().manual_seed(rank)
    times, before = [], time.perf_counter()
    for _ in range(steps):
        index = torch.randint(0, len(labels), (batch,), generator=generator)
        loss = loss_of(model((images[index].float() / 255 - 0.2860) / 0.3530), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = time.perf_counter()
        times.append(now - before)
        before = now
    if rank == 0:
        pathlib.Path(out).write_text(json.dumps(times))
    dist.barrier()


def run_ddp(options, folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    out = folder / "ddp.json"
    command = [sys.executable, __file__, "--ddp-worker"]
    workers = [
        subprocess.Popen(command + [str(rank), str(options.workers), str(port), str(options.batch),
                                    str(options.steps), str(out)])
        for rank in range(options.workers)
    ]
    if any([worker.wait() for worker in workers]):
        sys.exit("a DDP worker failed")
    return json.loads(out.read_text())


def run_drover(options, folder, name):
    run_file = folder / f"{name}.db"
    subprocess.run(
        [options.drover, "train", "--model", "lenet", "--data", "fashion-mnist", "--workers", str(options.workers),
         "--shards", str(options.shards), "--batch", str(options.batch), "--steps", str(options.steps),
         "--optimizer", "momentum", "--lr", "0.02", "--quiet", "--json", "--run-file", str(run_file)],
        check=True, stdout=subprocess.DEVNULL)
    with sqlite3.connect(run_file) as db:
        steps = [row[0] / 1e9 for row in db.execute("select elapsed_ns from steps order by step")]
        outside = [row[0] / 1e9 for row in db.execute(
            "select s.elapsed_ns - max(a.compute_ns) from steps s join arrivals a using (step) group by step")]
    return steps, outside


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drover", default="build/release/drover")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warmup = min(20, options.steps // 4)
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for number in range(options.rounds):
            ddp = run_ddp(options, folder)[warmup:]
            drover, outside = run_drover(options, folder, f"round{number}")
            drover, outside = drover[warmup:], outside[warmup:]
            rounds.append({
                "ddp_ms": 1e3 * statistics.median(ddp), "drover_ms": 1e3 * statistics.median(drover),
                "ddp_mean_ms": 1e3 * statistics.mean(ddp), "drover_mean_ms": 1e3 * statistics.mean(drover),
                "drover_outside_ms": 1e3 * statistics.median(outside)})
            rounds[-1]["ratio"] = rounds[-1]["drover_ms"] / rounds[-1]["ddp_ms"]
            rounds[-1]["ratio_mean"] = rounds[-1]["drover_mean_ms"] / rounds[-1]["ddp_mean_ms"]
            print(json.dumps({key: round(value, 3) for key, value in rounds[-1].items()}), file=sys.stderr)
    ratios = sorted(each["ratio"] for each in rounds)
    means = sorted(each["ratio_mean"] for each in rounds)
    print(json.dumps({"workers": options.workers, "shards": options.shards, "batch": options.batch,
                      "steps": options.steps, "rounds": options.rounds,
                      "ratio_median": round(statistics.median(ratios), 3),
                      "ratio_min": round(ratios[0], 3), "ratio_max": round(ratios[-1], 3),
                      "ratio_of_means_median": round(statistics.median(means), 3),
                      "ratio_of_means_min": round(means[0], 3), "ratio_of_means_max": round(means[-1], 3)}))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--ddp-worker":
        ddp_worker(*map(int, sys.argv[2:7]), sys.argv[7])
    else:
        main()
