"""A variational autoencoder on MNIST.

    drover launch --workers 4 --policy bayes examples/pytorch/mnist_vae.py --epochs 5
    torchrun --nproc_per_node 4 examples/pytorch/mnist_vae_ddp.py --epochs 5

mnist_vae_ddp.py is the same with PyTorch's DistributedDataParallel. Without the data set: --generated.
"""

import torch

import data
import drover
from models import Vae


def main() -> None:
    parser = data.flags(__doc__, epochs=5, batch=64, rate=1e-3)
    parser.add_argument("--data", default="mnist", help="mnist, fashion-mnist or a folder")
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())
    device = data.device_of(args.device)
    images = data.load_images(args.data, args.data_dir, args.generated, (1, 28, 28), args.seed)
    model = Vae().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    drover.join(model, optimizer)
    loader = data.own_part(images.train, args)
    for x, _ in data.passes(loader, args.epochs):
        optimizer.zero_grad()
        model(x.to(device).flatten(1) / 255).mean().backward()
        optimizer.step()

    model.eval()
    if data.rank() == 0:
        with torch.no_grad():
            x, _ = images.test[:1000]
            loss = getattr(model, "module", model)(x.to(device).flatten(1) / 255).mean()
        print(f"{data.steps_in(loader, args.epochs)} steps, test loss {loss:.4f}")
    data.save(model, args.save)


if __name__ == "__main__":
    main()
