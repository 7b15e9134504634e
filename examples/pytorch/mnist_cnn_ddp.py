"""A small convolutional network on MNIST, trained with PyTorch's DistributedDataParallel.

    torchrun --nproc_per_node 4 examples/pytorch/mnist_cnn_ddp.py --epochs 3

mnist_cnn.py is the same with drover. Nothing at hand? Add --generated.
"""

import torch
from torch import distributed
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import data
from models import small_cnn


def main() -> None:
    parser = data.flags(__doc__, epochs=3, batch=64, rate=0.01)
    parser.add_argument("--data", default="mnist", help="mnist, fashion-mnist or a folder")
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())  # dropout differs between workers; the parameters are one worker's
    device = data.device_of(args.device)
    images = data.load_images(args.data, args.data_dir, args.generated, (1, 28, 28), args.seed)
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(small_cnn(images.classes).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    goal = data.Goal(args.target_loss, args.target_window, together=True)

    steps = data.steps_in(args.epochs, len(images.train), distributed.get_world_size() * args.batch)
    sampler = DistributedSampler(images.train, seed=args.seed)
    loader = DataLoader(images.train, args.batch, sampler=sampler, drop_last=True)
    for step, (x, y) in enumerate(data.endless(loader)):
        optimizer.zero_grad()
        loss = cross_entropy(model(images.prepare(x, device)), y.to(device))
        loss.backward()
        optimizer.step()
        goal.add(loss)
        if step + 1 >= steps or goal.reached:
            break

    if distributed.get_rank() == 0:
        loss, accuracy = data.evaluate(model.module, images, device)
        print(f"{step + 1} steps, test loss {loss:.4f}, accuracy {accuracy:.2%}")
        if args.save:
            torch.save(model.module.state_dict(), args.save)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
