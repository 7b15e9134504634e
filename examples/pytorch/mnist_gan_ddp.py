"""A DCGAN on MNIST: two models with an optimizer each.

    drover launch --workers 4 --policy bayes examples/pytorch/mnist_gan.py --epochs 5
    torchrun --nproc_per_node 4 examples/pytorch/mnist_gan_ddp.py --epochs 5

mnist_gan_ddp.py is the same with PyTorch's DistributedDataParallel. Without the data set: --generated.
"""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits as loss_of
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import data
from models import dcgan


def main() -> None:
    parser = data.flags(__doc__, epochs=5, batch=64, rate=2e-4)
    parser.add_argument("--data", default="mnist", help="mnist, fashion-mnist or a folder")
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())
    device = data.device_of(args.device)
    images = data.load_images(args.data, args.data_dir, args.generated, (1, 28, 28), args.seed)
    g, d = dcgan()
    g, d = g.to(device), d.to(device)
    distributed.init_process_group("gloo")
    g, d = DistributedDataParallel(g), DistributedDataParallel(d, broadcast_buffers=False)
    opt_g = torch.optim.Adam(g.parameters(), lr=args.lr, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(d.parameters(), lr=args.lr, betas=(0.5, 0.999))
    loader = data.own_part(images.train, args)
    for x, _ in data.passes(loader, args.epochs):
        real = x.to(device) / 127.5 - 1
        ones, zeros = torch.ones(len(real), device=device), torch.zeros(len(real), device=device)
        d.zero_grad()
        loss_of(d(real), ones).backward()
        fake = g(torch.randn(len(real), 64, device=device))
        loss_d = loss_of(d(fake.detach()), zeros)
        loss_d.backward()
        opt_d.step()
        g.zero_grad()
        loss_g = loss_of(d(fake), ones)
        loss_g.backward()
        opt_g.step()

    if data.rank() == 0:
        print(
            f"{data.steps_in(loader, args.epochs)} steps, test loss {loss_d:.4f} (discriminator), "
            f"{loss_g:.4f} (generator)"
        )
    data.save(g, args.save)


if __name__ == "__main__":
    main()
