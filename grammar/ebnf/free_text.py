"""Free text between tags, as an automaton over bytes: Aho and Corasick's, with the exits and the special tokens put in.

A state of the automaton stands for the longest end of the text so far that a cue begins with. Where a cue is complete the exit
must be taken. Bytes and not characters, because special tokens are spelled in bytes that are no text (0xFF, then the id).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grammar.budget import Budget
from grammar.ebnf.expressions import Exit, FreeText
from grammar.emission.tables import Edge, TableBuilder
from grammar.errors import SchemaError
from grammar.text.charset import ALL
from grammar.vocabulary import special_spelling
from kernels.pushdown import ALWAYS, RAW

_ONE_BYTE, _TWO_BYTES, _THREE_BYTES, _FOUR_BYTES = 0x80, 0x800, 0x10000, 0x110000

ByteEdges = dict[tuple[int, int], "int | ByteEdges"]    # ranges of bytes to a state, or to what may follow


def utf8_ranges(low: int, high: int) -> list[tuple[tuple[int, int], ...]]:
    """The characters from `low` to `high` as sequences of byte ranges: each sequence is all products of its ranges.

    Cut so that two sequences begin with the same range or with ranges that have nothing in common, at every byte.
    """
    found: list[tuple[tuple[int, int], ...]] = []
    stack = [(low, high)]
    while stack:
        low, high = stack.pop()
        for limit in (_ONE_BYTE, _TWO_BYTES, _THREE_BYTES):
            if low < limit <= high:
                stack += [(limit, high), (low, limit - 1)]
                break
        else:
            cut = _unaligned(low, high)
            if cut is None:
                first, last = chr(low).encode("utf-8", "surrogatepass"), chr(high).encode("utf-8", "surrogatepass")
                found.append(tuple(zip(first, last, strict=True)))
            else:
                stack += [(cut, high), (low, cut - 1)]
    return found


def _unaligned(low: int, high: int) -> int | None:
    """Where a range of characters of one length must be cut to be a product of byte ranges; None where it is one."""
    if high < _ONE_BYTE:
        return None
    for shift in (6, 12, 18):
        below = (1 << shift) - 1
        if low >> shift != high >> shift:
            if low & below:
                return (low | below) + 1
            if high & below != below:
                return high & ~below
    return None


class ByteStates:
    """Writes states whose edges are over characters as states over bytes. Ends of characters that are alike are shared."""

    def __init__(self, tables: TableBuilder) -> None:
        self._tables = tables
        self._shared: dict[object, int] = {}

    def edges(self, by_char: list[tuple[int, int, int]], by_token: dict[int, int]) -> list[Edge]:
        """The edges of a state: ranges of characters, without overlap, and special tokens, each with its target."""
        tree: ByteEdges = {}
        for low, high, target in by_char:
            for ranges in utf8_ranges(low, high):
                _put(tree, ranges, target)
        for token, target in by_token.items():
            _put(tree, tuple((byte, byte) for byte in special_spelling(token)), target)
        return self._edges(tree)

    def _edges(self, tree: ByteEdges) -> list[Edge]:
        return sorted((low, high, below if isinstance(below, int) else self._state(below), ALWAYS, 0, 0)
                      for (low, high), below in tree.items())

    def _state(self, tree: ByteEdges) -> int:
        edges = self._edges(tree)
        key = tuple(edges)
        if key not in self._shared:
            self._shared[key] = self._tables.state(RAW, edges=edges)
        return self._shared[key]


def _put(tree: ByteEdges, ranges: tuple[tuple[int, int], ...], target: int) -> None:
    for step in ranges[:-1]:
        below = tree.setdefault(step, {})
        assert isinstance(below, dict), "a character is not the beginning of another"
        tree = below
    tree[ranges[-1]] = target


@dataclass(slots=True)
class _Node:
    """A beginning of cues: `whole` are the cues that end here."""

    text: str
    following: dict[str, int]
    back: int = 0
    whole: frozenset[str] = frozenset()


class CueAutomaton:
    """Which cues are complete, and which beginnings of cues the text ends with. State 0 is the start."""

    def __init__(self, cues: list[str], budget: Budget) -> None:
        self.nodes = [_Node("", {})]
        for cue in cues:
            self._add(cue, budget)
        self._link()

    def _add(self, cue: str, budget: Budget) -> None:
        node = 0
        for n, char in enumerate(cue):
            budget.spend("grammar_symbols")
            following = self.nodes[node].following.get(char)
            if following is None:
                budget.check("automaton_states", len(self.nodes) + 1)
                following = self.nodes[node].following[char] = len(self.nodes)
                self.nodes.append(_Node(cue[:n + 1], {}))
            node = following
        self.nodes[node].whole |= {cue}

    def _link(self) -> None:
        queue = list(self.nodes[0].following.values())
        for number in queue:
            node = self.nodes[number]
            node.whole |= self.nodes[node.back].whole
            for char, below in node.following.items():
                self.nodes[below].back = self.step(node.back, char)
                queue.append(below)

    def step(self, number: int, char: str) -> int:
        """The state after one more character."""
        while char not in self.nodes[number].following:
            if number == 0:
                return 0
            number = self.nodes[number].back
        return self.nodes[number].following[char]

    def moves(self, number: int) -> dict[str, int]:
        """The characters after which the state is not the start, each with the state."""
        found: dict[str, int] = {}
        while True:
            for char, below in self.nodes[number].following.items():
                found.setdefault(char, below)
            if number == 0:
                return found
            number = self.nodes[number].back

    def read(self, number: int, text: str) -> tuple[int, frozenset[str]]:
        """The state after a text, and the cues that become complete at its very end; none where one does before."""
        for n, char in enumerate(text):
            number = self.step(number, char)
            if self.nodes[number].whole and n + 1 < len(text):
                return number, frozenset()
        return number, self.nodes[number].whole


Behind = Callable[[list[Exit], int], int]    # (exits, where the text goes on) -> the state behind their cues, or POP


def emit_free_text(free: FreeText, tables: TableBuilder, behind: Behind, budget: Budget) -> int:
    """The states of free text; returns its start."""
    return _FreeTextStates(free, tables, behind, budget).emit()


class _FreeTextStates:
    def __init__(self, free: FreeText, tables: TableBuilder, behind: Behind, budget: Budget) -> None:
        self._free, self._tables, self._enter, self._budget = free, tables, behind, budget
        self._exits = {exit_.cue: exit_ for exit_ in free.exits}
        self._ids = dict(free.specials)
        cues = [exit_.cue for exit_ in free.exits]
        if not all(cues) or not all(free.without):
            raise SchemaError("in free text, what begins or ends a tag and what must not stand there can't be an empty text")
        if len(self._exits) < len(free.exits):
            raise SchemaError("a text can't both begin a tag and end the free text around it")
        self._cues = CueAutomaton([*cues, *free.without], budget)
        self._bytes = ByteStates(tables)
        self._behind: dict[frozenset[str], int] = {}

    def emit(self) -> int:
        tables, free = self._tables, self._free
        places = [number for number, node in enumerate(self._cues.nodes) if not node.whole]
        states = {number: tables.state(RAW, final=free.may_end) for number in places}
        for number in places:
            tables.set_edges(states[number], self._edges(number, states))
        start = tables.state(RAW)      # as the state 0, but a rule is not over before it has begun
        tables.set_edges(start, self._edges(0, states))
        return start

    def _edges(self, number: int, states: dict[int, int]) -> list[Edge]:
        moves = self._cues.moves(number)
        self._budget.spend("grammar_symbols", 1 + len(moves))
        by_char: list[tuple[int, int, int]] = []
        taken = sorted((ord(char), below) for char, below in moves.items())
        for low, high in ALL:
            for point, below in [pair for pair in taken if low <= pair[0] <= high]:
                if low < point:
                    by_char.append((low, point - 1, states[0]))
                target = self._target(below, self._cues.nodes[below].whole, states)
                if target is not None:
                    by_char.append((point, point, target))
                low = point + 1
            if low <= high:
                by_char.append((low, high, states[0]))
        return self._bytes.edges(by_char, self._by_token(number, states))

    def _target(self, number: int, whole: frozenset[str], states: dict[int, int]) -> int | None:
        """Where a move leads: to the exit where cues are complete, and nowhere where a text that must not be is."""
        if not whole:
            return states[number]
        if whole & set(self._free.without):
            return None
        if whole not in self._behind:
            self._behind[whole] = self._enter([self._exits[cue] for cue in sorted(whole)], states[0])
        return self._behind[whole]

    def _by_token(self, number: int, states: dict[int, int]) -> dict[int, int]:
        """The special tokens that go on with a cue, or complete one. No other stands in free text."""
        found: dict[int, int] = {}
        for jump in self._free.jumps:
            cue = frozenset((f"jump {jump.cue}",))
            if cue not in self._behind:
                self._behind[cue] = self._enter([jump], states[0])
            found[self._ids[jump.cue]] = self._behind[cue]
        for text, token in self._free.specials:
            self._budget.spend("grammar_symbols", len(text))
            below, whole = self._cues.read(number, text)
            if self._cues.nodes[below].whole and not whole:
                continue
            if len(self._cues.nodes[below].text) >= len(text):
                target = self._target(below, whole, states)
                if target is not None:
                    found.setdefault(token, target)
        return found
