"""A GPT over the characters of a text, trained with PyTorch's DistributedDataParallel.

    torchrun --nproc_per_node 4 examples/pytorch/char_gpt_ddp.py --text shakespeare.txt

char_gpt.py is the same with drover. Nothing at hand? --generated instead of --text.
"""

import torch
from torch import distributed
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import data
from models import CharGpt, add_size_flags, sizes_of


def main() -> None:
    parser = data.flags(__doc__, epochs=1, batch=16, rate=1e-3)
    parser.add_argument("--text", help="a text file")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"], help="bfloat16: compute by autocast")
    add_size_flags(parser)
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())
    device = data.device_of(args.device)
    sizes = sizes_of(args)
    train, test, characters = data.load_text(args.text, args.generated, sizes.context, args.seed)
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(CharGpt(characters, sizes).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)
    goal = data.Goal(args.target_loss, args.target_window, together=True)

    steps = data.steps_in(args.epochs, len(train), distributed.get_world_size() * args.batch)
    sampler = DistributedSampler(train, seed=args.seed)
    for step, (x, y) in enumerate(data.endless(DataLoader(train, args.batch, sampler=sampler, drop_last=True))):
        x, y = x.to(device), y.to(device)
        optimizer.param_groups[0]["lr"] = data.cosine(step, steps, args.lr, warmup=steps // 20)
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=args.dtype == "bfloat16"):
            guess = model(x)
        loss = cross_entropy(guess.float().flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        goal.add(loss)
        if step + 1 >= steps or goal.reached:
            break

    if distributed.get_rank() == 0:
        print(f"{step + 1} steps, test loss {data.evaluate_text(model.module, test, device):.4f} a character")
        if args.save:
            torch.save(model.module.state_dict(), args.save)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
