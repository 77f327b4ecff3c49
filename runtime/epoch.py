"""The epoch: what a block's content depends on besides its tokens.

Keys and values that one model computed mean nothing to another, and bytes that were laid out one way can't be read another way.
So everything that finds cached blocks again looks for them under the epoch too: other weights, another type of number or another
layout have another epoch, and nothing of before can be hit, in whatever tier it lies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import torch

_LABEL = b"turnstile epoch 1"
_PIECE_BYTES = 1 << 20
_MOST_PIECES = 256            # of one file: a larger one is told by so many pieces of it, and by its size
_FOLDER_FILES = ("config.json", "*.safetensors")


def epoch_of(model_path: Path, pool: torch.Tensor) -> bytes:
    """16 bytes that tell a model's weights, and the type and layout of its pool.

    pool: [layers, 2, n_blocks, kv_heads, block_tokens, head_dim], of any number of blocks. The weights are known by the content
    of their files, not by name or time: a copy of a model has its epoch.
    """
    digest = hashlib.blake2b(_LABEL, digest_size=16)
    for name, content in _weights(model_path):
        digest.update(len(name).to_bytes(8, "big") + name + content)
    n_layers, two, _, *block = pool.shape
    digest.update(repr((str(pool.dtype), n_layers, two, *block)).encode())
    return digest.digest()


def _weights(model_path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Each file that says what the model computes: its name within the model, and a digest of its content."""
    if model_path.is_file():
        yield b"", _content(model_path)
    else:
        for path in sorted({path for pattern in _FOLDER_FILES for path in model_path.glob(pattern)}):
            yield path.name.encode(), _content(path)


def _content(path: Path) -> bytes:
    """A digest of the file's size and bytes; of a large file, of pieces spread evenly from its beginning to its end."""
    size = path.stat().st_size
    digest = hashlib.blake2b(size.to_bytes(8, "big"), digest_size=16)
    n_pieces = -(-size // _PIECE_BYTES)
    n_read = min(n_pieces, _MOST_PIECES)
    with path.open("rb") as file:
        for i in range(n_read):
            file.seek(i * (n_pieces - 1) // max(n_read - 1, 1) * _PIECE_BYTES)
            digest.update(file.read(_PIECE_BYTES))
    return digest.digest()
