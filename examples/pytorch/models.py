"""The models of the examples, in plain PyTorch."""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F


def small_cnn(classes: int = 10) -> nn.Module:
    """Two convolutions and two linear layers for pictures of 28 x 28: 1.2 million parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(64 * 12 * 12, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, classes),
    )


# --- ResNet-18 (He, Zhang, Ren, Sun 2015), with the stem for pictures of 32 x 32: one 3 x 3 convolution and no pooling.


class Residual(nn.Module):
    """Two convolutions around which the input goes straight, or through a 1 x 1 convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.straight = (
            nn.Sequential()
            if stride == 1 and inputs == outputs
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        )
        self.around = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.straight(x) + self.around(x))


def resnet18(classes: int = 10, width: int = 64) -> nn.Module:
    """11.2 million parameters at the default width of 64."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    inputs = width
    for stage in range(4):
        outputs = width * 2**stage
        layers += [Residual(inputs, outputs, stride=1 if stage == 0 else 2), Residual(outputs, outputs, stride=1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


# --- a GPT over characters


class Sizes(NamedTuple):
    layers: int
    heads: int
    width: int
    context: int


PRESETS = {"small": Sizes(4, 4, 128, 128), "10m": Sizes(6, 6, 384, 256), "100m": Sizes(14, 12, 768, 256)}


def add_size_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset", default="small", choices=PRESETS, help="sizes with 0.8, 11 or 99 million parameters"
    )
    for name in Sizes._fields:
        parser.add_argument(f"--{name}", type=int, help=f"instead of the preset's {name}")


def sizes_of(args: argparse.Namespace) -> Sizes:
    sizes = Sizes(*(getattr(args, name) or preset for name, preset in zip(Sizes._fields, PRESETS[args.preset])))
    if sizes.width % sizes.heads:
        raise SystemExit(f"--width {sizes.width} is no multiple of --heads {sizes.heads}")
    return sizes


class Attention(nn.Module):
    """Every place looks at itself and at the places before it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.enter, self.leave = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.enter(x).split(width, dim=2)
        )
        if hasattr(F, "scaled_dot_product_attention"):
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:  # before PyTorch 2
            scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[3])
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            mixed = scores.masked_fill(later, float("-inf")).softmax(dim=3) @ value
        return self.leave(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before_attention, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class CharGpt(nn.Module):
    """Forecasts each next character. The table of characters serves both ways: as input and, tied, as output."""

    def __init__(self, characters: int, sizes: Sizes) -> None:
        super().__init__()
        width, layers = sizes.width, sizes.layers
        self.characters, self.places = nn.Embedding(characters, width), nn.Embedding(sizes.context, width)
        self.blocks = nn.Sequential(*(Block(width, sizes.heads) for _ in range(layers)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)
        self.out.weight = self.characters.weight
        for name, values in self.named_parameters():
            if values.dim() >= 2:  # sums along the residual path stay about 1 however many layers there are
                last = name.endswith(("leave.weight", "mlp.2.weight"))
                nn.init.normal_(values, std=0.02 / math.sqrt(2 * layers) if last else 0.02)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        x = self.characters(codes) + self.places(torch.arange(codes.shape[1], device=codes.device))
        return self.out(self.norm(self.blocks(x)))


class Vae(nn.Module):
    """A variational autoencoder of pictures of 28 x 28 (Kingma and Welling 2013)."""

    def __init__(self, hidden: int = 400, latent: int = 20) -> None:
        super().__init__()
        self.enter, self.mean, self.spread = (
            nn.Linear(784, hidden),
            nn.Linear(hidden, latent),
            nn.Linear(hidden, latent),
        )
        self.decode = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 784))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The negative lower bound of the likelihood, for each picture."""
        hidden = F.relu(self.enter(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        z = mean + torch.randn_like(spread) * torch.exp(0.5 * spread)
        likeness = F.binary_cross_entropy_with_logits(self.decode(z), x, reduction="none").sum(1)
        return likeness - 0.5 * (1 + spread - mean**2 - spread.exp()).sum(1)


class LstmModel(nn.Module):
    """Forecasts each next character with an LSTM. The table of characters is input and, tied, output."""

    def __init__(self, characters: int, width: int, layers: int = 2) -> None:
        super().__init__()
        self.characters, self.drop = nn.Embedding(characters, width), nn.Dropout(0.2)
        self.lstm = nn.LSTM(width, width, layers, dropout=0.2, batch_first=True)
        self.out = nn.Linear(width, characters)
        self.out.weight = self.characters.weight
        nn.init.uniform_(self.characters.weight, -0.1, 0.1)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.drop(self.characters(codes)))
        return self.out(self.drop(states))


def dcgan(noise: int = 64, width: int = 32) -> tuple[nn.Module, nn.Module]:
    """A generator and a discriminator of pictures of 28 x 28 (Radford, Metz and Chintala 2015)."""
    generator = nn.Sequential(
        nn.Linear(noise, 2 * width * 49),
        nn.Unflatten(1, (2 * width, 7, 7)),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 1, 4, 2, 1),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(1, width, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(2 * width * 49, 1),
        nn.Flatten(0),
    )
    for module in (*generator.modules(), *discriminator.modules()):
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(module.weight, 0.0, 0.02)
    return generator, discriminator


def parameters_in(model: nn.Module) -> int:
    return sum(values.numel() for values in model.parameters())
