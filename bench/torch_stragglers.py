"""Time to a training loss with PyTorch's DDP on gloo and with drover, with and without a slow worker, in turns.

    python3 bench/torch_stragglers.py --workers 8,16 --repeat 3 --target 0.5

A CNN of 1.2 million parameters on Fashion-MNIST, one thread and 32 samples per worker. The slow worker computes each
gradient --slow times, so it is as slow as a machine of that speed. The time is from the first step to the
step at which the mean loss of the last 20 steps, over the workers that took part, is below the target.
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "pytorch"))
WINDOW = 20
SYSTEMS = {"ddp": None,
           "drover sync": ["--policy", "sync"],
           "drover bayes --live": ["--policy", "bayes", "--live"],
           "drover bayes --live --balance": ["--policy", "bayes", "--live", "--balance"]}


def slow_factor(args, rank):
    return int(args.slow) if rank == args.workers_now - 1 else 1


def setup(args, rank):
    import torch

    import data
    from models import small_cnn

    torch.set_num_threads(1)
    torch.manual_seed(args.seed + rank)
    images = data.load_images(args.data, args.data_dir, args.generated, (1, 28, 28), 1)
    torch.manual_seed(args.seed)
    return images, small_cnn(images.classes), torch.device("cpu")


def ddp(args):
    import torch
    from torch import distributed
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    rank, workers = int(os.environ["RANK"]), args.workers_now
    images, model, device = setup(args, rank)
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * workers, momentum=0.9)
    x_all, y_all = images.train.tensors
    generator = torch.Generator().manual_seed(args.seed * 1000 + rank)
    log = []
    distributed.barrier()
    began = time.perf_counter()
    for step in range(args.steps):
        chosen = torch.randint(len(y_all), (args.batch,), generator=generator)
        x, y = images.prepare(x_all[chosen], device), y_all[chosen]
        for _ in range(slow_factor(args, rank) - 1):
            with model.no_sync():
                cross_entropy(model(x), y).backward()
            optimizer.zero_grad()
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        log.append((step, time.perf_counter() - began, loss.item()))
    return log


def with_drover(args):
    import torch
    from torch.nn.functional import cross_entropy

    import drover

    rank = int(os.environ["DROVER_RANK"])
    images, model, device = setup(args, rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * args.workers_now, momentum=0.9)
    x_all, y_all = images.train.tensors
    log = []
    with drover.join(model, optimizer) as run:
        began = None
        generator = torch.Generator().manual_seed(args.seed * 1000 + rank)
        while True:
            with run.step(samples=None):
                began = began or time.perf_counter()
                chosen = torch.randint(len(y_all), (run.batch_size,), generator=generator)
                x, y = images.prepare(x_all[chosen], device), y_all[chosen]
                for _ in range(slow_factor(args, rank) - 1):
                    with run.no_sync():
                        cross_entropy(model(x), y).backward()
                    optimizer.zero_grad()
                optimizer.zero_grad()
                loss = cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                log.append((run.step_number, time.perf_counter() - began, loss.item()))
                run.report(loss=loss)
    return log


def measured(args, system, workers, slow):
    """(seconds to the target or None, milliseconds per step)"""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.argv[0], *sys.argv[1:], "--out", folder, "--workers-now", str(workers), "--slow", str(slow)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if SYSTEMS[system] is None:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(workers)}
            command = [sys.executable, *words, "--mode", "ddp"]
            running = [subprocess.Popen(command, env={**environment, "RANK": str(rank)})
                       for rank in range(workers)]
            if any([each.wait() for each in running]):
                raise SystemExit("a worker of DDP failed")
        else:
            subprocess.run([args.drover, "launch", "--workers", str(workers), "--shards", str(args.shards), "--batch",
                            str(args.batch), "--steps", str(args.steps), "--quiet", "--json", *SYSTEMS[system],
                            "--python", sys.executable, "--run-file", os.path.join(folder, "run.db"), *words,
                            "--mode", "drover"], env=environment, check=True, stdout=subprocess.DEVNULL)
        steps = {}
        for log in pathlib.Path(folder).glob("*.json"):
            for step, at, loss in json.loads(log.read_text()):
                steps.setdefault(step, []).append((at, loss))
    when, means = [], []
    for step in sorted(steps):
        when.append(max(at for at, _ in steps[step]))
        means.append(statistics.fmean(loss for _, loss in steps[step]))
    pace = 1e3 * when[-1] / len(when)
    for last in range(WINDOW - 1, len(means)):
        if statistics.fmean(means[last + 1 - WINDOW : last + 1]) < args.target:
            return when[last], pace
    return None, pace


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="2", help="comma-separated numbers of workers")
    parser.add_argument("--slow", default="1,3", help="comma-separated slowdown factors of the last worker")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--lr", type=float, default=0.002, help="learning rate, multiplied by the number of workers")
    parser.add_argument("--target", type=float, default=0.5)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--data-dir")
    parser.add_argument("--generated", action="store_true")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--drover", default=os.environ.get("DROVER_BIN", str(ROOT / "build/release/drover")))
    for hidden, kind in {"--mode": str, "--out": str, "--workers-now": int}.items():
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.mode:
        log = (ddp if args.mode == "ddp" else with_drover)(args)
        rank = os.environ.get("DROVER_RANK") or os.environ["RANK"]
        pathlib.Path(args.out, f"{rank}.json").write_text(json.dumps(log))
        return
    systems = args.systems.split(",")
    for workers in map(int, args.workers.split(",")):
        for slow in map(int, args.slow.split(",")):
            found = {system: [] for system in systems}
            for repetition in range(args.repeat):
                for system in systems:
                    found[system].append(measured(args, system, workers, slow))
                    when, pace = found[system][-1]
                    print(f"  {workers} workers, slow {slow}, {system}: {f'{when:.1f} s' if when else 'not reached'}, "
                          f"{pace:.1f} ms a step", file=sys.stderr, flush=True)
            print(f"{workers} workers, {'one ' + str(slow) + ' times slower' if slow > 1 else 'none slow'}: "
                  f"seconds to loss {args.target} (mean, best, worst), ms a step (median)")
            for system in systems:
                times = [time for time, _ in found[system] if time is not None]
                pace = statistics.median(pace for _, pace in found[system])
                words = f"{statistics.fmean(times):.2f} ({min(times):.2f} to {max(times):.2f})" if times else "never"
                missed = len(found[system]) - len(times)
                print(f"  {system:<32} {words:<28} {pace:7.1f}" + (f"   not reached {missed} times" if missed else ""),
                      flush=True)


if __name__ == "__main__":
    main()
