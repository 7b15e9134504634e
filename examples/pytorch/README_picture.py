"""The README's picture of a simulated cluster, drawn by drover.plot_run; or one like it of any run file.

    examples/pytorch/README_picture.py --out cluster.png                   # simulates
    examples/scenarios/one-slow-node.toml first
    examples/pytorch/README_picture.py runs/mine.db --out mine.png         # of a run of yours

Needs matplotlib, and for the simulation the drover program (DROVER_BIN, or on PATH).
"""

import argparse
import sys
from pathlib import Path

import drover

SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "one-slow-node.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", nargs="?", help="a run file; without one the scenario is simulated")
    parser.add_argument("--out", required=True, help="the picture: .png, .svg or .pdf")
    parser.add_argument("--policy", default="ecdf", help="of the simulation")
    parser.add_argument("--step", type=int, help="whose forecast is shown; by itself one in the middle")
    args = parser.parse_args()
    try:
        run = drover.read_run(args.run) if args.run else drover.simulate(SCENARIO, policy=args.policy).run
        drover.plot_run(run, args.out, step=args.step)
    except drover.Error as error:
        sys.exit(f"README_picture: {error}")
    print(f"{args.out}: {len(run.steps['step'])} steps of {run.workers} workers, policy {run.settings['policy']}")


if __name__ == "__main__":
    main()
