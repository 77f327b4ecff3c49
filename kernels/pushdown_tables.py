"""The tables of the pushdown machine: the numbers by which a grammar is told to `ReferenceMachine` and to `native/`.

`kernels.pushdown` explains the machine and runs it; here is what each column and each operation means.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

# How a state reads its input.
RAW = 0            # edges are over bytes
TEXT = 1           # edges are over code points, UTF-8 encoded
JSON_STRING = 2    # as TEXT inside a JSON string: escapes are decoded, a bare quote is CLOSE, bare control characters are refused
JSON_PLAIN = 3     # as JSON_STRING, but a character has one spelling: itself, or json.dumps' escape where it can't stand bare

# Whitespace that a RAW state reads by itself; `Frame.partial` counts it.
SPACES = 1         # bounded whitespace may come (`next_space`)
INDENT_OUTER = 2   # exactly 2 * depth spaces must come before anything else (before a container's closing bracket)
INDENT_INNER = 3   # exactly 2 * (depth + 1) spaces (before a container's members)

# What an edge asks of the registers a, b and c, and what it does to them; x and y are its constants.
ALWAYS = 0         # nothing
TAKE = 1           # b > x; then a = max(a - 1, 0), b = b - 1 (one more of at least a and at most b)
DONE = 2           # a == 0
KEY_IN = 3         # some key j of keys[x:y] has a <= j <= b
KEY = 4            # a <= x <= b; then a = x + 1, b = y (property x read; the next required one is y)
ALL_REQUIRED = 5   # b == UNBOUNDED (no required property is left)
UNSEEN = 6         # name x is unseen; then it is seen. Names 0 to 61 are the bits of a, names 62 to 123 those of b
ANY_UNSEEN = 7     # some name of the sets x (bits of a) and y (bits of b) is unseen
ALL_SEEN = 8       # every name of the sets x and y is seen

# Operations of tallied objects, whose number is y (see `Tally`); the first ones stand on edges, SERVE on calls.
MORE = 9           # some member may still come. x = 1 at the quote that begins its name: there a remembered name begins
NAME_IN = 10       # some number j of keys[x >> 32 : x & 0xFFFFFFFF] may be the next member (NAME or OTHER would be allowed)
NAME = 11          # declared name x may come; then it has, and is counted. At its closing quote
OTHER = 12         # an undeclared name of class x may come and is not among the remembered; then it is, and is counted
CLOSE_OBJECT = 13  # the object may end
SERVE = 14         # the obligations of set x are closed then (bits of c), and the object can still be finished

# Operations of tallied arrays at place y; the first ones stand on edges, COUNT on calls.
NEXT_ITEM = 15     # another item may come; then as TAKE
CLOSE_ARRAY = 16   # a == 0, and all counters are within their bounds
COUNT = 17         # the counters of set x go up by one, and the array can still be finished then

# What `Tables.operations` holds besides operations.
HAS_WIDE_SETS = 64        # UNSEEN, ANY_UNSEEN or ALL_SEEN over register b
HAS_DISTINCT = 65         # DISTINCT marks, or tallied objects that remember names
HAS_INDENT = 66           # INDENT_OUTER, INDENT_INNER, DEEPER
HAS_CALLING_STARTS = 67   # some called rule's start state itself calls

# Marks of a state, as bits.
DISTINCT = 1       # what was read between the call and the return to this state must be new among its like
AWAITS = 2         # something distinct must begin now (behind the comma of a distinct array or of remembered names)
TIGHT = 4          # distinct items still to come may run out of values: only the end of the rule is safe
DEEPER = 8         # rules that are called from here have the depth of this frame plus 1 (others 0)

# Whether a text state takes whatever characters come, for as long as they come.
FREE = 1           # it does
FREE_COUNTED = 2   # it does while b > 0, and comes back to itself

POP = -1           # edge target: the rule is finished
NO_CALLS = -1
CLOSE = 0x110000   # the "code point" of the quote that ends a JSON string
UNBOUNDED = 1 << 62

# Register c, cut into fields. Objects: members counted and obligations closed. Arrays: counters. Both: depth.
CLOSED_SHIFT, MOST_OBLIGATIONS = 32, 6   # bits 0 .. 31 count members
COUNTER_BITS, MOST_COUNTERS = 12, 4      # counter i is bits 12 * i .. 12 * i + 11
DEPTH_SHIFT = 48                         # to the top
WIDE_AT = 62                             # names whose bits one register holds


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """What tallied objects and arrays may still hold.

    A *tallied object* has bounds on its number of members, or *obligations*: at most six conditions each of which some
    member has to meet, or some name by its absence. Members have numbers within their object: first its declared names, in
    order, then its classes of undeclared names. The value of a member is read by one of several calls; each SERVEs another
    set of obligations.
    A *tallied array* counts, in at most four counters, the items that satisfy given schemas. At each *place* (each prefix
    position, then one for all others) an item is read by one of several calls; each COUNTs for another set of counters.

    Whether one can still be finished is answered by *rows*: a row is a set of numbers, as sorted disjoint intervals, of how many
    members or items may still come. The row of an array: after an item at the place, with its counters as they are then:
    place_rows + sum of counter i times the product of place_cap[j] + 1 over j < i.
    The row of an ordered object: with x its next allowed name and `closed` the set of its closed obligations, as bits:
    object_rows + (x << object_obligations | closed); undeclared names may come in any number, anywhere.
    The rows of an unordered object, object_rows + closed, only tell of its undeclared names; with the declared ones
    unseen, all ways to leave each out (unless required; its number_absent are closed then) or take it (closing one of
    its choices) are tried.
    """

    object_ordered: np.ndarray    # [objects] uint8
    object_remembers: np.ndarray  # [objects] uint8: undeclared names come once
    object_names: np.ndarray      # [objects] int32: how many are declared
    object_numbers: np.ndarray    # [objects + 1] int32, cuts the number_ columns
    object_least: np.ndarray      # [objects] int64: members
    object_most: np.ndarray       # [objects] int64, UNBOUNDED
    object_obligations: np.ndarray  # [objects] int32: how many
    object_rows: np.ndarray       # [objects] int32: first row
    number_required: np.ndarray   # [numbers] uint8
    number_next: np.ndarray       # [numbers] int64: required name after it, UNBOUNDED
    number_absent: np.ndarray     # [numbers] int64: obligations that its absence closes
    number_choices: np.ndarray    # [numbers + 1] int32, cuts `choices`
    choices: np.ndarray           # [...] int64: sets of obligations, one of each call
    place_counters: np.ndarray    # [places] int32: how many
    place_cap: np.ndarray         # [places, 4] int32: where counting stops
    place_strict: np.ndarray      # [places, 4] uint8: and more is refused
    place_rows: np.ndarray        # [places] int32: first row
    row_begin: np.ndarray         # [rows + 1] int32, cuts row_low and row_high
    row_low: np.ndarray           # [...] int64
    row_high: np.ndarray          # [...] int64, inclusive; UNBOUNDED

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, column.name).nbytes for column in fields(self))


_NONE, _CUT = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int32)

NO_TALLY = Tally(
    object_ordered=_NONE, object_remembers=_NONE, object_names=_NONE, object_numbers=_CUT, object_least=_NONE, object_most=_NONE,
    object_obligations=_NONE, object_rows=_NONE, number_required=_NONE, number_next=_NONE, number_absent=_NONE,
    number_choices=_CUT, choices=_NONE, place_counters=_NONE, place_cap=_NONE, place_strict=_NONE, place_rows=_NONE,
    row_begin=_CUT, row_low=_NONE, row_high=_NONE)


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """The machine. States are rows of the first group; edges of one state are sorted by `edge_low` and do not overlap.

    A state may read (edges), call (one of the rules in its call list, then go on in `call_return`) and end its rule (`final`).
    The start state of a called rule never ends it. It may itself call, but no chain of such calls leads back to the same state.
    """

    mode: np.ndarray          # [states] uint8: RAW, TEXT, JSON_STRING or JSON_PLAIN
    space: np.ndarray         # [states] uint8: SPACES, INDENT_OUTER, INDENT_INNER or 0 (RAW only)
    final: np.ndarray         # [states] uint8: 1 where the rule may end
    counted: np.ndarray       # [states] uint8: 1 where a and b are counts (TAKE, DONE), so large ones are alike
    free: np.ndarray          # [states] uint8: FREE or FREE_COUNTED where no character is refused, now and after any others
    edge_begin: np.ndarray    # [states + 1] int32
    call_list: np.ndarray     # [states] int32, NO_CALLS where nothing is called
    call_return: np.ndarray   # [states] int32
    edge_low: np.ndarray      # [edges] int32
    edge_high: np.ndarray     # [edges] int32, inclusive
    edge_target: np.ndarray   # [edges] int32, POP at the end of a rule
    edge_op: np.ndarray       # [edges] uint8
    edge_x: np.ndarray        # [edges] int64
    edge_y: np.ndarray        # [edges] int64
    list_begin: np.ndarray    # [lists + 1] int32
    call_start: np.ndarray    # [calls] int32: start state of the rule
    call_a: np.ndarray        # [calls] int64: its first registers a and b; c begins as 0, but for the depth (DEEPER)
    call_b: np.ndarray        # [calls] int64
    keys: np.ndarray          # [...] int32: sorted numbers of names, cut into ranges by KEY_IN and NAME_IN
    root: int                 # state of the first frame, which returns to nothing: where it is final, the answer may end
    reach: int                # the largest x of a TAKE edge: how far ahead an upper bound is looked at
    marks: np.ndarray         # [states] uint8: DISTINCT | AWAITS | TIGHT | DEEPER
    call_op: np.ndarray       # [calls] uint8: ALWAYS, SERVE or COUNT, on the registers of the caller: the call is open
    call_x: np.ndarray        # [calls] int64      if that is allowed, and what it returns to has the registers after it
    call_y: np.ndarray        # [calls] int64
    tally: Tally = NO_TALLY

    @property
    def nbytes(self) -> int:
        columns = (getattr(self, column.name) for column in fields(self))
        return sum(column.nbytes for column in columns if isinstance(column, np.ndarray)) + self.tally.nbytes

    @property
    def operations(self) -> frozenset[int]:
        """The operations of edges and calls in use, and the HAS_... features. A machine that lacks one must not run the tables.

        What was there from the beginning, and so needs no test, is ALWAYS to ALL_SEEN with none of the features.
        """
        used = set(np.flatnonzero(np.bincount(self.edge_op)).tolist()) | set(np.flatnonzero(np.bincount(self.call_op)).tolist())
        if used & {UNSEEN, ANY_UNSEEN, ALL_SEEN} and self._has_wide_sets():
            used.add(HAS_WIDE_SETS)
        if self.marks.any() or (self.space > SPACES).any():
            if (self.marks & (DISTINCT | AWAITS | TIGHT)).any():
                used.add(HAS_DISTINCT)
            if (self.marks & DEEPER).any() or (self.space > SPACES).any():
                used.add(HAS_INDENT)
        if self.tally.object_remembers.any():
            used.add(HAS_DISTINCT)
        if (self.call_list[self.call_start] != NO_CALLS).any():
            used.add(HAS_CALLING_STARTS)
        return frozenset(used)

    def _has_wide_sets(self) -> bool:
        sets = (self.edge_op == ANY_UNSEEN) | (self.edge_op == ALL_SEEN)
        return bool(((self.edge_op == UNSEEN) & (self.edge_x >= WIDE_AT)).any() or (sets & (self.edge_y != 0)).any())
