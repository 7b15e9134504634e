"""ResNet-18 on CIFAR-10, trained with drover.

    drover launch --workers 4 --batch 32 --policy bayes --live examples/pytorch/cifar_resnet18.py --device cuda --epochs 15

cifar_resnet18_ddp.py is the same with PyTorch's DistributedDataParallel. Nothing at hand? Add --generated, and --width 8 on a CPU.
"""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import data
import drover
from models import resnet18


def main() -> None:
    parser = data.flags(__doc__, epochs=15, batch=0, rate=0.1)
    parser.add_argument("--data", default="cifar10", help="cifar10 or a folder")
    parser.add_argument("--width", type=int, default=64, help="channels of the first layers")
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())
    device = data.device_of(args.device)
    images = data.load_images(args.data, args.data_dir, args.generated, (3, 32, 32), args.seed)
    model = resnet18(images.classes, args.width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    goal = data.Goal(args.target_loss, args.target_window)

    with drover.join(model, optimizer) as run:
        steps = data.steps_in(args.epochs, len(images.train), run.workers * (args.batch or run.batch_size))
        loader = DataLoader(images.train, batch_sampler=data.batches(run, len(images.train), args.batch))
        for x, y in loader:
            with run.step(samples=len(y)):
                # By the run's step, not by how often this worker was in time: all workers say the same rate.
                optimizer.param_groups[0]["lr"] = data.cosine(run.step_number, steps, args.lr, warmup=steps // 20)
                optimizer.zero_grad()
                loss = cross_entropy(model(images.prepare(data.augment(x), device)), y.to(device))
                loss.backward()
                optimizer.step()
                run.report(loss=loss)
                goal.add(loss)
            if run.step_number + 1 >= steps or goal.reached:
                break

    if run.rank == 0:
        loss, accuracy = data.evaluate(model, images, device)
        print(f"{run.step_number + 1} steps, test loss {loss:.4f}, accuracy {accuracy:.2%}")
        if args.save:
            run.save(args.save)


if __name__ == "__main__":
    main()
