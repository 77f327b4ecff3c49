"""The states of a list of words, as columns: a trie, made of sorted words by what each shares with the one before it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from grammar.emission.tables import Block
from kernels.pushdown_tables import CLOSE, POP


def word_block(words: Iterable[str], mode: int, *, quoted: bool) -> Block:
    """The block of one or more words. Where they are `quoted` each ends with the closing quote; else its last state is final."""
    ordered = sorted(set(words))
    tails, parents, ends = _branches(ordered)
    points = np.frombuffer("".join(tails).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    n = len(points) + 1
    source = np.arange(len(points))     # a letter's state comes behind that of the letter before it
    lengths = np.array([len(tail) for tail in tails])
    begins = np.cumsum(lengths) - lengths
    source[begins[lengths > 0]] = np.array(parents)[lengths > 0]
    n_closing = len(ends) if quoted else 0
    edges = np.zeros((len(points) + n_closing, 6), dtype=np.int64)
    edges[:len(points), 0] = edges[:len(points), 1] = points
    edges[:len(points), 2] = np.arange(1, n)
    edges[len(points):, :2], edges[len(points):, 2] = CLOSE, POP
    if quoted:
        source = np.concatenate([source, ends])
    states = np.zeros((n, 4), dtype=np.uint8)
    states[:, 0] = mode
    if not quoted:
        states[ends, 1] = 1
    return Block(states, np.bincount(source, minlength=n), edges[np.argsort(source, kind="stable")])


def _branches(ordered: list[str]) -> tuple[list[str], list[int], list[int]]:
    """For each of some sorted words its letters behind those that it shares with the one before; the state these are read from;
    and the state in which the word ends. The states of a word's own letters have the next free numbers."""
    tails, parents, ends = [ordered[0]], [0], [len(ordered[0])]
    path, n = list(range(len(ordered[0]) + 1)), len(ordered[0]) + 1
    for before, word in pairwise(ordered):
        shared = _shared(before, word)
        del path[shared + 1:]
        tail = word[shared:]
        tails.append(tail)
        parents.append(path[shared])
        path.extend(range(n, n + len(tail)))
        n += len(tail)
        ends.append(path[-1])
    return tails, parents, ends


def _shared(left: str, right: str) -> int:
    """How many letters two words begin with alike."""
    for n, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return n
    return min(len(left), len(right))
