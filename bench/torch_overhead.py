"""Cost of a step of a PyTorch script with drover, compared with the same loop without it, in turns.

    python3 bench/torch_overhead.py --model gpt-100m --batch 24 --device cuda --dtype bfloat16 --shards 8

One worker, generated data on the device. Prints milliseconds per step (median over steps, of each repetition)
and the ratio; with drover also the parts of the time: `wait` from requesting parameters to receiving them, `compute`
forward and backward with concurrent pushes, `rest` until all gradients are pushed. On CUDA also the floor: the
bytes of parameters over the rates at which this machine copies to and from the device.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "pytorch"))


def make(args):
    import torch
    from torch import nn

    from models import CharGpt, PRESETS, resnet18

    device = torch.device(args.device)
    torch.manual_seed(1)
    if args.model.startswith("gpt"):
        sizes = PRESETS[args.model.partition("-")[2]]
        model = CharGpt(256, sizes).to(device)
        x = torch.randint(0, 256, (args.batch, sizes.context), device=device)
        y = torch.randint(0, 256, (args.batch, sizes.context), device=device)
    elif args.model == "resnet18":
        model = resnet18(10, 64).to(device)
        x, y = torch.randn(args.batch, 3, 32, 32, device=device), torch.randint(0, 10, (args.batch,), device=device)
    else:
        model = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
        x, y = torch.randn(args.batch, 784, device=device), torch.randint(0, 10, (args.batch,), device=device)
    make_optimizer = {"sgd": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9),
                      "adamw": lambda p: torch.optim.AdamW(p, lr=1e-5)}[args.optimizer]
    return model, make_optimizer(model.parameters()), x, y


def loss_of(model, x, y, args):
    import torch
    from torch.nn.functional import cross_entropy

    with torch.autocast(x.device.type, torch.bfloat16, enabled=args.dtype == "bfloat16"):
        guess = model(x)
    return cross_entropy(guess.float().flatten(0, -2), y.flatten())


def settle(args):
    import torch

    if args.device.startswith("cuda"):
        torch.cuda.synchronize()


def bare(args):
    model, optimizer, x, y = make(args)
    times = []
    for _ in range(args.steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        loss_of(model, x, y, args).backward()
        optimizer.step()
        settle(args)
        times.append(time.perf_counter() - began)
    return {"step": times, "parameters": sum(p.numel() for p in model.parameters())}


def with_drover(args):
    import drover

    model, optimizer, x, y = make(args)
    parts = {"step": [], "wait": [], "compute": [], "rest": []}
    with drover.join(model, optimizer) as run:
        for _ in range(args.steps):
            began = time.perf_counter()
            with run.step(samples=args.batch):
                here = time.perf_counter()
                optimizer.zero_grad()
                loss_of(model, x, y, args).backward()
                computed = time.perf_counter()
                optimizer.step()
            done = time.perf_counter()
            parts["wait"].append(here - began)
            parts["compute"].append(computed - here)
            parts["rest"].append(done - computed)
            parts["step"].append(done - began)
    return parts


def copy_rates(args, count):
    """Bytes per second to the host and back, from and to pinned memory."""
    import torch

    host, there = torch.empty(count).pin_memory(), torch.empty(count, device=args.device)

    def rate(copy):
        times = []
        for _ in range(10):
            settle(args)
            began = time.perf_counter()
            copy()
            settle(args)
            times.append(time.perf_counter() - began)
        return 4 * count / min(times)

    return rate(lambda: host.copy_(there, non_blocking=True)), rate(lambda: there.copy_(host, non_blocking=True))


def measured(args, mode):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "times.json")
        words = [sys.argv[0], *sys.argv[1:], "--mode", mode, "--out", out]
        if mode == "drover":
            words = [args.drover, "launch", "--workers", "1", "--shards", str(args.shards), "--quiet", "--json",
                     "--python", sys.executable, "--run-file", os.path.join(folder, "run.db"), *words]
        else:
            words = [sys.executable, *words]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return json.loads(pathlib.Path(out).read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mlp", help="mlp, resnet18 or gpt-PRESET (examples/pytorch/models.py)")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--optimizer", default="sgd", choices=["sgd", "adamw"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--skip", type=int, default=20, help="number of first steps to ignore")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--drover", default=os.environ.get("DROVER_BIN", str(ROOT / "build/release/drover")))
    parser.add_argument("--mode", choices=["bare", "drover"], help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.mode:
        parts = (bare if args.mode == "bare" else with_drover)(args)
        pathlib.Path(args.out).write_text(json.dumps(parts))
        return
    ratios = []
    for _ in range(args.repeat):
        without, beside = measured(args, "bare"), measured(args, "drover")
        count = without.pop("parameters")
        median = {part: 1e3 * statistics.median(times[args.skip:]) for part, times in beside.items()}
        base = 1e3 * statistics.median(without["step"][args.skip:])
        ratios.append(median["step"] / base)
        print(f"{args.model} batch {args.batch} {args.dtype} {args.optimizer}, {count / 1e6:.1f} M parameters, "
              f"{args.shards} shards: "
              f"bare {base:.2f} ms, drover {median['step']:.2f} ms ({ratios[-1]:.3f}): wait {median['wait']:.2f}, "
              f"compute {median['compute']:.2f}, rest {median['rest']:.2f}", flush=True)
    print(f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    if args.device.startswith("cuda"):
        down, up = copy_rates(args, count)
        print(f"copies: to the host {down / 1e9:.1f} GB/s, to the device {up / 1e9:.1f} GB/s; the parameters' "
              f"{4 * count / 1e6:.0f} MB take {4e3 * count / down:.2f} + {4e3 * count / up:.2f} ms")


if __name__ == "__main__":
    main()
