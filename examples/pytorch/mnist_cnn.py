"""A small convolutional network on MNIST.

    drover launch --workers 4 --policy bayes examples/pytorch/mnist_cnn.py --epochs 3
    torchrun --nproc_per_node 4 examples/pytorch/mnist_cnn_ddp.py --epochs 3

mnist_cnn_ddp.py is the same with PyTorch's DistributedDataParallel. Without the data set: --generated.
"""

import torch
from torch.nn.functional import cross_entropy

import data
import drover
from models import small_cnn


def main() -> None:
    parser = data.flags(__doc__, epochs=3, batch=64, rate=0.01)
    parser.add_argument("--data", default="mnist", help="mnist, fashion-mnist or a folder")
    args = parser.parse_args()
    torch.manual_seed(args.seed + data.rank())  # dropout differs between workers; the parameters are those of rank 0
    device = data.device_of(args.device)
    images = data.load_images(args.data, args.data_dir, args.generated, (1, 28, 28), args.seed)
    model = small_cnn(images.classes).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    drover.join(model, optimizer)
    loader = data.own_part(images.train, args)
    for x, y in data.passes(loader, args.epochs):
        optimizer.zero_grad()
        cross_entropy(model(images.prepare(x, device)), y.to(device)).backward()
        optimizer.step()

    if data.rank() == 0:
        loss, accuracy = data.evaluate(model, images, device)
        print(f"{data.steps_in(loader, args.epochs)} steps, test loss {loss:.4f}, accuracy {accuracy:.2%}")
    data.save(model, args.save)


if __name__ == "__main__":
    main()
