"""Who is admitted next.

Between tenants: by tokens served, least first (the virtual token counter of Sheng et al., "Fairness in serving large language
models", 2024). A tenant that comes back after a pause starts level with the least served of those that stayed, so that nobody
saves up. Within a tenant: by priority, where one level is worth a fixed time of waiting, so that nobody starves; among requests
of equal priority near the front, the one that finds most of its prompt in the cache goes first, but none is passed over more
than a few times.

Pure: time comes with the requests, and what is cached is asked of the caller.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice

from .sequence import Sequence

LEVEL_S = 10.0           # seconds of waiting that one level of priority is worth
WINDOW = 8               # requests of one tenant, from its front on, among which the cache may choose
MOST_PASSED_OVER = 8     # times that a request lets a younger one with a better match go first
MOST_REMEMBERED = 10_000   # tenants without a request whose counters are kept


class Queue:
    """Sequences that wait. Those that had to give way come first, whoever's they are: they have been served before."""

    def __init__(self) -> None:
        self._returning: deque[Sequence] = deque()
        self._of_tenant: dict[str, list[Sequence]] = {}    # sorted by _urgency; no empty lists
        self._served: dict[str, float] = {}                # tokens by tenant, level with the others' on arrival
        self._n_present: dict[str, int] = {}               # sequences of a tenant that wait or run

    def __len__(self) -> int:
        return len(self._returning) + sum(map(len, self._of_tenant.values()))

    def __iter__(self) -> Iterator[Sequence]:
        """All of them, in no particular order but that those that gave way come first."""
        return chain(self._returning, *self._of_tenant.values())

    def arrive(self, sequence: Sequence) -> None:
        """A new sequence. It is one of its tenant's until `leave`."""
        tenant = sequence.request.tenant
        if not self._n_present.get(tenant):
            least = min((self._served[other] for other in self._n_present), default=0.0)
            self._served[tenant] = max(self._served.pop(tenant, 0.0), least)
        self._n_present[tenant] = self._n_present.get(tenant, 0) + 1
        insort(self._of_tenant.setdefault(tenant, []), sequence, key=_urgency)

    def join(self, sequence: Sequence) -> None:
        """One more sequence of a tenant that is here already; it doesn't wait. It is one of its tenant's until `leave`."""
        self._n_present[sequence.request.tenant] += 1

    def put_back(self, sequence: Sequence) -> None:
        """A sequence that had to give way."""
        self._returning.appendleft(sequence)

    def admit(self, sequence: Sequence) -> None:
        """The sequence waits no more: it runs."""
        for older in self._of_tenant.get(sequence.request.tenant, ()):
            if older is sequence:
                break
            older.n_passed_over += 1
        self.withdraw(sequence)

    def withdraw(self, sequence: Sequence) -> None:
        """The sequence waits no more."""
        if sequence in self._returning:
            self._returning.remove(sequence)
            return
        tenant = sequence.request.tenant
        waiting = self._of_tenant[tenant]
        waiting.remove(sequence)
        if not waiting:
            del self._of_tenant[tenant]

    def leave(self, sequence: Sequence) -> None:
        """The sequence, which waits no more, is over."""
        tenant = sequence.request.tenant
        self._n_present[tenant] -= 1
        if not self._n_present[tenant]:
            del self._n_present[tenant]
            self._served[tenant] = self._served.pop(tenant)     # last in the order of the dictionary
            while len(self._served) > len(self._n_present) + MOST_REMEMBERED:
                del self._served[next(name for name in self._served if name not in self._n_present)]

    def serve(self, sequence: Sequence, n_tokens: int) -> None:
        """Count tokens computed for a sequence to its tenant."""
        self._served[sequence.request.tenant] += n_tokens

    def served(self, tenant: str) -> float:
        """The tenant's counter: comparable with other tenants' of this moment only."""
        return self._served.get(tenant, 0.0)

    def in_order(self, cached: Callable[[Sequence], int]) -> Iterator[Sequence]:
        """Candidates for admission, most deserving first. `cached`: tokens that a sequence would find in the cache now.

        The caller may take a candidate, or leave it and go on to the next; what it serves meanwhile counts at once.
        """
        yield from list(self._returning)
        left = {tenant: list(waiting) for tenant, waiting in self._of_tenant.items()}
        while left:
            tenant = min(left, key=lambda name: (self.served(name), left[name][0].arrived_s))
            chosen = _best(left[tenant], cached)
            left[tenant].remove(chosen)
            if not left[tenant]:
                del left[tenant]
            yield chosen


def _best(front: list[Sequence], cached: Callable[[Sequence], int]) -> Sequence:
    """The first, or one near it of the same priority that finds more of its prompt in the cache."""
    first = front[0]
    if len(front) == 1 or first.n_passed_over >= MOST_PASSED_OVER:
        return first
    near = [s for s in islice(front, WINDOW) if s.request.priority == first.request.priority]
    return max(near, key=cached)     # of equal ones the first


def _urgency(sequence: Sequence) -> float:
    return sequence.request.priority * LEVEL_S + sequence.arrived_s
