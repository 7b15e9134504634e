"""ResNet-18 on CIFAR-10, trained with PyTorch's DistributedDataParallel.

    torchrun --nproc_per_node 4 examples/pytorch/cifar_resnet18_ddp.py --device cuda --epochs 15

cifar_resnet18.py is the same with drover. Nothing at hand? Add --generated, and --width 8 on a CPU.
"""

import torch
from torch import distributed
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import data
from models import resnet18


def main() -> None:
    parser = data.flags(__doc__, epochs=15, batch=32, rate=0.1)
    parser.add_argument("--data", default="cifar10", help="cifar10 or a folder")
    parser.add_argument("--width", type=int, default=64, help="channels of the first layers")
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())
    device = data.device_of(args.device)
    images = data.load_images(args.data, args.data_dir, args.generated, (3, 32, 32), args.seed)
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(resnet18(images.classes, args.width).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    goal = data.Goal(args.target_loss, args.target_window, together=True)

    steps = data.steps_in(args.epochs, len(images.train), distributed.get_world_size() * args.batch)
    sampler = DistributedSampler(images.train, seed=args.seed)
    loader = DataLoader(images.train, args.batch, sampler=sampler, drop_last=True)
    for step, (x, y) in enumerate(data.endless(loader)):
        optimizer.param_groups[0]["lr"] = data.cosine(step, steps, args.lr, warmup=steps // 20)
        optimizer.zero_grad()
        loss = cross_entropy(model(images.prepare(data.augment(x), device)), y.to(device))
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
