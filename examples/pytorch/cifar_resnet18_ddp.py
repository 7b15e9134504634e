"""ResNet-18 on CIFAR-10, with a cosine schedule and loader processes.

    drover launch --workers 4 --policy bayes examples/pytorch/cifar_resnet18.py --device cuda --epochs 15
    torchrun --nproc_per_node 4 examples/pytorch/cifar_resnet18_ddp.py --device cuda --epochs 15

cifar_resnet18_ddp.py is the same with PyTorch's DistributedDataParallel. Without the data set: --generated, and on a
CPU --width 8.
"""

import torch
from torch.nn.functional import cross_entropy
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import data
from models import resnet18


def main() -> None:
    parser = data.flags(__doc__, epochs=15, batch=32, rate=0.1)
    parser.add_argument("--data", default="cifar10", help="cifar10 or a folder")
    parser.add_argument("--width", type=int, default=64, help="channels of the first layers")
    parser.add_argument("--loaders", type=int, default=2, help="processes that load the data")
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())
    device = data.device_of(args.device)
    images = data.load_images(args.data, args.data_dir, args.generated, (3, 32, 32), args.seed)
    model = resnet18(images.classes, args.width).to(device)
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    loader = data.own_part(images.train, args, num_workers=args.loaders)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, data.steps_in(loader, args.epochs))
    for x, y in data.passes(loader, args.epochs):
        optimizer.zero_grad()
        cross_entropy(model(images.prepare(data.augment(x), device)), y.to(device)).backward()
        optimizer.step()
        schedule.step()

    if data.rank() == 0:
        loss, accuracy = data.evaluate(model, images, device)
        print(f"{data.steps_in(loader, args.epochs)} steps, test loss {loss:.4f}, accuracy {accuracy:.2%}")
    data.save(model, args.save)


if __name__ == "__main__":
    main()
