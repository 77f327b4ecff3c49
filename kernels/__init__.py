"""The hot loops: each operation once, as a plain torch reference (its definition) and as native code side by side.

Importing this package imports no torch: the grammar uses the token-trie walk from here and must stay light.
Import the parts you need: `kernels.ops` for the model's operations, `kernels.quant` for weights as they lie in
a file, `kernels.library` for the native code itself.
"""

from __future__ import annotations

__all__ = ["batch", "library", "ops", "quant", "trie"]
