"""A GPT over the characters of a text, with tied weights, accumulated and clipped gradients, and --resume.

    drover launch --workers 4 --policy bayes examples/pytorch/char_gpt.py --text shakespeare.txt
    torchrun --nproc_per_node 4 examples/pytorch/char_gpt_ddp.py --text shakespeare.txt

char_gpt_ddp.py is the same with PyTorch's DistributedDataParallel. Without a text: --generated.
"""

import torch
from torch.nn.functional import cross_entropy
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import data
from models import CharGpt, add_size_flags, sizes_of


def main() -> None:
    parser = data.flags(__doc__, epochs=1, batch=16, rate=1e-3)
    parser.add_argument("--text", help="a text file")
    parser.add_argument(
        "--dtype", default="float32", choices=["float32", "bfloat16"], help="bfloat16: compute by autocast"
    )
    parser.add_argument("--accumulate", type=int, default=2, help="batches of one update")
    parser.add_argument("--resume", help="begin with the model in this file")
    add_size_flags(parser)
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())
    device = data.device_of(args.device)
    sizes = sizes_of(args)
    train, test, characters = data.load_text(args.text, args.generated, sizes.context, args.seed)
    model = CharGpt(characters, sizes).to(device)
    if args.resume:
        model.load_state_dict(torch.load(args.resume, map_location=device))
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(model)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    groups = [{"params": decayed}, {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)
    loader = data.own_part(train, args)
    steps = data.steps_in(loader, args.epochs)
    for step, (x, y) in enumerate(data.passes(loader, args.epochs)):
        with torch.autocast(device.type, torch.bfloat16, enabled=args.dtype == "bfloat16"):
            guess = model(x.to(device))
        (cross_entropy(guess.float().flatten(0, 1), y.to(device).flatten()) / args.accumulate).backward()
        if (step + 1) % args.accumulate == 0:
            for group in optimizer.param_groups:
                group["lr"] = data.cosine(step, steps, args.lr, warmup=steps // 20)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    if data.rank() == 0:
        print(f"{steps // args.accumulate} steps, test loss {data.evaluate_text(model, test, device):.4f} a character")
    data.save(model, args.save)


if __name__ == "__main__":
    main()
