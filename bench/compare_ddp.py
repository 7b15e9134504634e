#!/usr/bin/env python3
"""Step time of drover's synchronous training against PyTorch DistributedDataParallel on gloo, and against no
communication at all.

Same network, batch, number of workers, threads (one each) and optimiser (SGD with momentum), on the same data, in
rounds that take turns on this machine. Both read the same IDX files (Fashion-MNIST) and pick a random batch each step.
"bare" is the same step in PyTorch without communication, in as many processes at once, of the slowest process: the
time left if moving gradients cost nothing. "bare_max" is the longest of all workers' bare steps, step by step: the time
left if each step also waits for its slowest worker. Prints a JSON object for each number of workers and shards: the
median step of each, and ratios, round by round, as median, least and greatest.

    python3 bench/compare_ddp.py [--drover build/release/drover] [--model lenet|lenet-wide|resnet20|mlp25m]
                                 [--workers 2,4,8]
                                 [--shards 1,2,4] [--batch 32] [--steps 300] [--rounds 5] [--transport auto]
                                 [--data /usr/share/datasets/fashion-mnist] [--without-ddp]

How step time grows with workers and shards, without PyTorch: --without-ddp --workers 1,2,4,8,16 --shards 1,2,4
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

STEPS = {"lenet": 300, "lenet-wide": 100, "resnet20": 60, "mlp25m": 60}  # of each run, by default
LIMIT = 1800  # seconds that no run should take


def idx_bytes(folder, name, header):
    path = pathlib.Path(folder) / name
    packed = path.with_name(path.name + ".gz")
    return bytearray((gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes())[header:])


def make_model(name):
    """The networks of src/tasks/torch/nets.cc, for images of 28 x 28."""
    import torch
    from torch import nn

    class Residual(nn.Module):
        def __init__(self, into, out, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(into, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            self.stride, self.added = stride, (out - into) // 2

        def forward(self, x):
            shortcut = x
            if self.stride > 1 or self.added > 0:
                fewer = x[:, :, ::self.stride, ::self.stride]
                shortcut = nn.functional.pad(fewer, (0, 0, 0, 0, self.added, self.added))
            x = torch.relu(self.bn1(self.conv1(x)))
            return torch.relu(self.bn2(self.conv2(x)) + shortcut)

    if name == "lenet":
        return nn.Sequential(
            nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(32 * 16, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    if name == "lenet-wide":
        return nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(64 * 49, 512), nn.ReLU(), nn.Linear(512, 10))
    if name == "mlp25m":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
            nn.Linear(4096, 1200), nn.ReLU(), nn.Linear(1200, 10))
    layers, into = [nn.Conv2d(1, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for out in (16, 32, 64):
        for block in range(3):
            layers.append(Residual(into, out, 2 if block == 0 and out != 16 else 1))
            into = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def torch_worker(settings):
    """One process of PyTorch's; writes its step times."""
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    rank, world = settings["rank"], settings["world"]
    images = torch.frombuffer(idx_bytes(settings["data"], "train-images-idx3-ubyte", 16), dtype=torch.uint8)
    images = images.view(-1, 1, 28, 28)
    labels = torch.frombuffer(idx_bytes(settings["data"], "train-labels-idx1-ubyte", 8), dtype=torch.uint8).long()
    # Also where there is nothing to say: so all begin together.
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(settings["port"]))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = make_model(settings["model"])
    if settings["ddp"]:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    generator = torch.Generator().manual_seed(rank)
    dist.barrier()
    times, before = [], time.perf_counter()
    for _ in range(settings["steps"]):
        index = torch.randint(0, len(labels), (settings["batch"],), generator=generator)
        loss = loss_of(model((images[index].float() / 255 - 0.2860) / 0.3530), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = time.perf_counter()
        times.append(now - before)
        before = now
    pathlib.Path(f"{settings['out']}.{rank}").write_text(json.dumps(times))
    dist.barrier()
    dist.destroy_process_group()


def run_torch(options, workers, folder, ddp):
    """Each worker's step times."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    out = folder / "torch"
    settings = {"world": workers, "port": port, "ddp": ddp, "model": options.model, "batch": options.batch,
                "steps": options.steps, "data": options.data, "out": str(out)}
    running = [subprocess.Popen([sys.executable, __file__, "--torch-worker", json.dumps({**settings, "rank": rank})],
                                env={**os.environ, "OMP_NUM_THREADS": "1"})
               for rank in range(workers)]
    try:
        deadline = time.monotonic() + LIMIT
        if any([worker.wait(timeout=max(1.0, deadline - time.monotonic())) for worker in running]):
            sys.exit("compare_ddp: a PyTorch worker failed")
    finally:
        for worker in running:
            if worker.poll() is None:
                worker.kill()
    return [json.loads(pathlib.Path(f"{out}.{rank}").read_text()) for rank in range(workers)]


def run_drover(options, workers, shards, folder):
    run_file = folder / "drover.db"
    run_file.unlink(missing_ok=True)
    subprocess.run(
        [options.drover, "train", "--model", options.model, "--data", options.data, "--workers", str(workers),
         "--shards", str(shards), "--batch", str(options.batch), "--steps", str(options.steps),
         "--transport", options.transport, "--optimizer", "momentum", "--lr", "0.02", "--quiet", "--json",
         "--run-file", str(run_file)],
        check=True, stdout=subprocess.DEVNULL, timeout=LIMIT)
    with sqlite3.connect(run_file) as db:
        steps = [row[0] / 1e9 for row in db.execute("select elapsed_ns from steps order by step")]
        outside = [row[0] / 1e9 for row in db.execute(
            "select s.elapsed_ns - max(a.compute_ns) from steps s join arrivals a using (step) group by step")]
    return steps, outside


def measure_round(options, workers, folder, backwards):
    """Median and mean step of each, in milliseconds."""
    warmup = min(20, options.steps // 4)
    found = {}

    def note(name, times):
        found[name + "_ms"] = 1e3 * statistics.median(times[warmup:])
        found[name + "_mean_ms"] = 1e3 * statistics.mean(times[warmup:])

    def drover(shards):
        steps, outside = run_drover(options, workers, shards, folder)
        note(f"drover{shards}", steps)
        found[f"drover{shards}_outside_ms"] = 1e3 * statistics.median(outside[warmup:])

    def bare():
        times = run_torch(options, workers, folder, False)
        note("bare", max(times, key=lambda each: statistics.median(each[warmup:])))
        note("bare_max", [max(step) for step in zip(*times)])

    turns = [lambda shards=shards: drover(shards) for shards in options.shards]
    if not options.without_ddp:
        turns = [lambda: note("ddp", run_torch(options, workers, folder, True)[0]), *turns, bare]
    for turn in reversed(turns) if backwards else turns:
        turn()
    return found


def spread(values):
    return [round(each, 3) for each in (statistics.median(values), min(values), max(values))]


def report(options, workers, shards, rounds):
    mine = f"drover{shards}"
    line = {"model": options.model, "workers": workers, "shards": shards, "batch": options.batch,
            "steps": options.steps, "rounds": options.rounds, "transport": options.transport,
            "drover_ms": spread([each[mine + "_ms"] for each in rounds]),
            "drover_outside_ms": spread([each[mine + "_outside_ms"] for each in rounds])}
    pairs = [] if options.without_ddp else [(mine, "ddp"), (mine, "bare"), (mine, "bare_max"), ("ddp", "bare")]
    for name in () if options.without_ddp else ("ddp", "bare", "bare_max"):
        line[name + "_ms"] = spread([each[name + "_ms"] for each in rounds])
    for a, b in pairs:
        key = f"{'drover' if a == mine else a}_to_{b}"
        line[key] = spread([each[a + "_ms"] / each[b + "_ms"] for each in rounds])
        line[key + "_of_means"] = spread([each[a + "_mean_ms"] / each[b + "_mean_ms"] for each in rounds])
    print(json.dumps(line), flush=True)


def main():
    def counts(text):
        return [int(each) for each in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drover", default="build/release/drover")
    parser.add_argument("--model", choices=sorted(STEPS), default="lenet")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--workers", type=counts, default=[4])
    parser.add_argument("--shards", type=counts, default=[2])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=0, help="0: as many as the model needs to show its step")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--without-ddp", action="store_true", help="drover alone: no PyTorch is needed")
    options = parser.parse_args()
    options.steps = options.steps or STEPS[options.model]
    with tempfile.TemporaryDirectory() as folder:
        for workers in options.workers:
            rounds = []
            for number in range(options.rounds):
                rounds.append(measure_round(options, workers, pathlib.Path(folder), number % 2 == 1))
                print(json.dumps({key: round(value, 3) for key, value in rounds[-1].items()}), file=sys.stderr)
            for shards in options.shards:
                report(options, workers, shards, rounds)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--torch-worker":
        torch_worker(json.loads(sys.argv[2]))
    else:
        main()
