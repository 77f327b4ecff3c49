"""Random numbers that depend on where they are used, and on nothing that was drawn before.

The generator is splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014):
a counter that grows by the golden ratio's bits, and a mixing function over it. So the n-th number of a stream
is computed directly from n, and there is no state to keep, to copy or to restore.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15    # 2**64 divided by the golden ratio, made odd


def splitmix64(state: int) -> int:
    """The number that splitmix64 gives from `state`, in [0, 2**64). The next one comes from `state` + the constant."""
    z = (state + _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def uniform(seed: int, position: int) -> float:
    """The number at `position` of the stream of `seed`, uniform in [0, 1), with 53 random bits.

    The seed is mixed before it starts a stream, so that neighbouring seeds don't give overlapping ones. Any
    integer is a seed; those that differ by 2**64 are the same.
    """
    start = splitmix64(seed & _MASK)
    return (splitmix64(start + position * _GOLDEN) >> 11) * 2.0**-53
