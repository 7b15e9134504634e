"""An LSTM over the characters of a text, with tied weights and a rate that falls when the validation loss does not.

    drover launch --workers 4 --policy bayes examples/pytorch/tied_lstm.py --text shakespeare.txt
    torchrun --nproc_per_node 4 examples/pytorch/tied_lstm_ddp.py --text shakespeare.txt

tied_lstm_ddp.py is the same with PyTorch's DistributedDataParallel. Without a text: --generated.
"""

import torch
from torch.nn.functional import cross_entropy

import data
import drover
from models import LstmModel


def main() -> None:
    parser = data.flags(__doc__, epochs=1, batch=16, rate=5.0)
    parser.add_argument("--text", help="a text file")
    parser.add_argument("--width", type=int, default=128, help="of the LSTM")
    parser.add_argument("--context", type=int, default=64, help="characters of a sample")
    parser.add_argument("--checks", type=int, default=8, help="how often the validation loss is measured")
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())
    device = data.device_of(args.device)
    train, test, characters = data.load_text(args.text, args.generated, args.context, args.seed)
    model = LstmModel(characters, args.width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    drover.join(model, optimizer)
    loader = data.own_part(train, args)
    steps = data.steps_in(loader, args.epochs)
    best = float("inf")
    for step, (x, y) in enumerate(data.passes(loader, args.epochs)):
        optimizer.zero_grad()
        cross_entropy(model(x.to(device)).flatten(0, 1), y.to(device).flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        if (step + 1) % max(1, steps // args.checks) == 0:
            loss = data.evaluate_text(model, test, device)
            if loss >= best:
                optimizer.param_groups[0]["lr"] /= 4.0
            best = min(best, loss)

    if data.rank() == 0:
        print(f"{steps} steps, test loss {data.evaluate_text(model, test, device):.4f} a character")
    data.save(model, args.save)


if __name__ == "__main__":
    main()
