"""A small convolutional network on MNIST, trained with drover.

    drover launch --workers 4 --batch 64 --policy bayes --live examples/pytorch/mnist_cnn.py --epochs 3

mnist_cnn_ddp.py is the same with PyTorch's DistributedDataParallel. Nothing at hand? Add --generated.
"""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

import data
import drover
from models import small_cnn


def main() -> None:
    parser = data.flags(__doc__, epochs=3, batch=0, rate=0.01)
    parser.add_argument("--data", default="mnist", help="mnist, fashion-mnist or a folder")
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())  # dropout differs between workers; the parameters are one worker's
    device = data.device_of(args.device)
    images = data.load_images(args.data, args.data_dir, args.generated, (1, 28, 28), args.seed)
    model = small_cnn(images.classes).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    goal = data.Goal(args.target_loss, args.target_window)

    with drover.join(model, optimizer) as run:
        steps = data.steps_in(args.epochs, len(images.train), run.workers * (args.batch or run.batch_size))
        loader = DataLoader(images.train, batch_sampler=data.batches(run, len(images.train), args.batch))
        for x, y in loader:
            with run.step(samples=len(y)):  # left off in the middle if it comes too late
                optimizer.zero_grad()
                loss = cross_entropy(model(images.prepare(x, device)), y.to(device))
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
