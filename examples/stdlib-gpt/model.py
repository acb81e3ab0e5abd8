"""A byte-level GPT: the last bytes embedded, a stack of pre-norm blocks, a tied head. 256 tokens, one for each byte.

Bytes say little alone, so each position embeds the last three of them: after 240 steps of eight windows that was
worth 0.6 bits per byte here, and costs a tenth of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

VOCABULARY = 256


@dataclass(frozen=True)
class Shape:
    """Sizes of the model; the defaults give 1.06 million parameters.

    ``context``: bytes the model sees at once. ``width``: numbers per byte, a multiple of ``heads``.
    """

    context: int = 128
    layers: int = 2
    heads: int = 4
    width: int = 192


class Attention(nn.Module):
    """Causal self-attention: each byte asks the bytes before it. ``(batch, time, width)`` in and out."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.ask = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.answer = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        query, key, value = (
            part.view(batch, time, self.heads, width // self.heads).transpose(1, 2)
            for part in self.ask(x).split(width, dim=2)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        answer: Tensor = self.answer(mixed.transpose(1, 2).reshape(batch, time, width))
        return answer


class Block(nn.Module):
    """Attention, then a two-layer perceptron; each reads a normed copy and adds to the stream."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(shape.width)
        self.attention = Attention(shape)
        self.norm_mlp = nn.LayerNorm(shape.width)
        self.mlp = nn.Sequential(
            nn.Linear(shape.width, 4 * shape.width, bias=False),
            nn.GELU(),
            nn.Linear(4 * shape.width, shape.width, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_attention(x))
        x = x + self.mlp(self.norm_mlp(x))
        return x


class GPT(nn.Module):
    """Bytes in, logits of the next byte out."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.byte = nn.Embedding(VOCABULARY, shape.width)
        self.one_before = nn.Embedding(VOCABULARY, shape.width)
        self.two_before = nn.Embedding(VOCABULARY, shape.width)
        self.place = nn.Embedding(shape.context, shape.width)
        self.norm_input = nn.LayerNorm(shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, VOCABULARY, bias=False)
        self.apply(_start)
        for name, weight in self.named_parameters():
            if name.endswith(("answer.weight", "mlp.2.weight")):  # the stream's variance must not grow with depth
                nn.init.normal_(weight, std=0.02 / (2 * shape.layers) ** 0.5)
        self.head.weight = self.byte.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits ``(batch, time, 256)`` for tokens ``(batch, time)`` of type int64, ``time <= context``."""
        x = self.byte(tokens) + self.one_before(_later(tokens, 1)) + self.two_before(_later(tokens, 2))
        x = self.norm_input(x + self.place.weight[: tokens.shape[1]])
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits

    def parameter_count(self) -> int:
        """Number of trained numbers; the tied head counts once."""
        return sum(weight.numel() for weight in self.parameters())


def _later(tokens: Tensor, by: int) -> Tensor:
    """Each byte moved ``by`` places to the right; zeros, the separator of files, come in."""
    return F.pad(tokens, (by, 0))[:, : tokens.shape[1]]


def _start(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)


def next_byte_loss(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy in nats: logits ``(batch, time, 256)``, targets ``(batch, time)``."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)
