"""Gradients that are held by the shards until it is known how they are clipped: by the norm of their mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from .gradients import Gradients
from .parameters import Slot

if TYPE_CHECKING:
    from ._native import Session


class HeldGradients:
    """The gradients of this step that were pushed to learn the norm of their mean."""

    def __init__(self, slots: list[Slot], gradients: Gradients, session: Session) -> None:
        self._slots = slots
        self._gradients = gradients
        self._session = session
        self._forget()

    def _forget(self) -> None:
        self._indices: set[int] = set()
        self._seen: dict[int, tuple[torch.Tensor, int]] = {}  # each gradient as it was after clipping
        self._squares = self._largest = 0.0
        self._scale = 1.0
        self.in_vain = False  # they came too late

    def any(self) -> bool:
        return bool(self._indices)

    def has(self, index: int) -> bool:
        return index in self._indices

    def same(self, indices: list[int]) -> bool:
        """Whether these are held, and have not changed since."""
        return self.any() and self._indices == set(indices) and self._unchanged()

    def still_hold_for(self, mine: set[int]) -> bool:
        """Whether what is held is part of what an optimizer updates now, unchanged."""
        return self._indices <= mine and self._unchanged()

    def push(self, indices: list[int], samples: int) -> None:
        """Pushes these gradients and waits for the norm of their mean over all workers."""
        self._indices = set(indices)
        self._session.expect_norm(indices)
        for index in indices:
            if not self._gradients.put(index, self._gradient(index), self._session.tensor_held):
                self.in_vain = True
                break
        norm = None if not self._gradients.drain() or self.in_vain else self._session.wait_for_norm()
        if norm is None:  # nothing of this gradient will be used: its own norm will do
            self.in_vain = True
            own = [self._gradient(index).detach().float() for index in indices]
            norm = (sum(float(each.norm()) ** 2 for each in own), max(float(each.abs().max()) for each in own))
        self._squares, self._largest = norm
        self._note()

    def clip(self, max_norm: float, norm_type: float, error_if_nonfinite: bool) -> torch.Tensor:
        """Scales the gradients as torch does. Returns the norm of their mean as it was."""
        norm = self._scale * (self._largest if norm_type == math.inf else math.sqrt(self._squares))
        if error_if_nonfinite and not math.isfinite(norm):
            raise RuntimeError(
                f"the total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
                "cannot be clipped."
            )
        factor = min(1.0, max_norm / (norm + 1e-6))
        if factor < 1.0:
            self._scale *= factor
            with torch.no_grad():
                for index in self._indices:
                    gradient = self._slots[index].tensor.grad
                    assert gradient is not None
                    gradient.mul_(factor)
            self._note()
        first = self._slots[min(self._indices)].tensor
        return torch.tensor(norm, device=first.device)

    def release(self, used: bool) -> None:
        """Says how the step closes for what is held, and forgets it."""
        if self.any():
            self._session.release(self._scale if math.isfinite(self._scale) else 0.0, used)
        self._forget()

    def _gradient(self, index: int) -> torch.Tensor:
        gradient = self._slots[index].tensor.grad
        assert gradient is not None
        return gradient

    def _note(self) -> None:
        for index in self._indices:
            gradient = self._gradient(index)
            self._seen[index] = gradient, gradient._version

    def _unchanged(self) -> bool:
        return all(
            self._slots[index].tensor.grad is gradient and gradient._version == version
            for index, (gradient, version) in self._seen.items()
        )
