"""A GPT over the characters of a text, trained with drover.

    drover launch --workers 4 --batch 16 --policy bayes --live examples/pytorch/char_gpt.py --text shakespeare.txt
    drover launch --workers 8 --batch 8 --policy bayes examples/pytorch/char_gpt.py --text big.txt --preset 100m \
        --device cuda --dtype bfloat16

char_gpt_ddp.py is the same with PyTorch's DistributedDataParallel. Nothing at hand? --generated instead of --text.
"""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import data
import drover
from models import CharGpt, add_size_flags, sizes_of


def main() -> None:
    parser = data.flags(__doc__, epochs=1, batch=0, rate=1e-3)
    parser.add_argument("--text", help="a text file")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"], help="bfloat16: compute by autocast")
    add_size_flags(parser)
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())
    device = data.device_of(args.device)
    sizes = sizes_of(args)
    train, test, characters = data.load_text(args.text, args.generated, sizes.context, args.seed)
    model = CharGpt(characters, sizes).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)
    goal = data.Goal(args.target_loss, args.target_window)

    with drover.join(model, optimizer) as run:
        steps = data.steps_in(args.epochs, len(train), run.workers * (args.batch or run.batch_size))
        for x, y in DataLoader(train, batch_sampler=data.batches(run, len(train), args.batch)):
            x, y = x.to(device), y.to(device)
            with run.step(samples=len(y)):
                # By the run's step, not by how often this worker was in time: all workers say the same rate.
                optimizer.param_groups[0]["lr"] = data.cosine(run.step_number, steps, args.lr, warmup=steps // 20)
                optimizer.zero_grad()
                with torch.autocast(device.type, torch.bfloat16, enabled=args.dtype == "bfloat16"):
                    guess = model(x)
                loss = cross_entropy(guess.float().flatten(0, 1), y.flatten())
                loss.backward()
                optimizer.step()
                run.report(loss=loss)
                goal.add(loss)
            if run.step_number + 1 >= steps or goal.reached:
                break

    if run.rank == 0:
        print(f"{run.step_number + 1} steps, test loss {data.evaluate_text(model, test, device):.4f} a character")
        if args.save:
            run.save(args.save)


if __name__ == "__main__":
    main()
