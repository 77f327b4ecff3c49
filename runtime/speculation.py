"""Guessing how an answer goes on, so that one forward pass can settle several tokens.

A guess is looked up: what followed the same last few tokens the last time that they came, in the prompt or in the answer
("prompt lookup decoding", Saxena 2023). It is put behind the sequence's last token as if it had been drawn, and one pass gives
the logits at every place of it. Then each place is drawn as it would have been without any guess, with the same mask, seed and
position; the guess is right as far as it names the tokens drawn. So the answer is, token for token, the one that would have come
without guessing: for a guess that names single tokens this accepts exactly as often as the rejection sampling of Leviathan et al.
("Fast inference from transformers via speculative decoding", 2023), and needs no correction.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

LONGEST_MATCH, SHORTEST_MATCH = 4, 2     # tokens that must have come before
MOST_GUESSED = 8                         # tokens of one guess
FIRST_GUESS = 2
SHORTEST_PAUSE, LONGEST_PAUSE = 8, 256   # tokens without a guess after a wrong one


def looked_up(tokens: array[int], most: int) -> tuple[int, ...]:
    """`most` tokens that may come next; none where the last tokens never came before."""
    size = tokens.itemsize
    text = tokens.tobytes()
    for n in range(min(LONGEST_MATCH, len(tokens) - 1), SHORTEST_MATCH - 1, -1):
        pattern = text[-n * size:]
        place = text.rfind(pattern, 0, len(text) - size)
        while place > 0 and place % size:      # it begins within a token
            place = text.rfind(pattern, 0, place + len(pattern) - 1)
        if place >= 0 and place % size == 0:
            return _copied(tokens, place // size + n, most)
    return ()


def _copied(tokens: array[int], begin: int, n: int) -> tuple[int, ...]:
    """`n` tokens from `begin` on; behind the last one it goes on with its own copy, as a text that runs in circles does."""
    period = len(tokens) - begin
    return tuple(tokens[begin + i % period] for i in range(n))


@dataclass(slots=True)
class Eagerness:
    """How many tokens of one sequence to guess: more after a guess that was right, none for a while after one that was wrong."""

    n: int = FIRST_GUESS
    pause: int = 0          # tokens still to come without a guess
    last_pause: int = SHORTEST_PAUSE // 2

    @property
    def most(self) -> int:
        return 0 if self.pause else self.n

    def learn(self, n_guessed: int, n_right: int, n_drawn: int) -> None:
        """What became of a guess (of 0 tokens: none was made), and how far the answer went on."""
        if not n_guessed:
            self.pause = max(0, self.pause - n_drawn)
        elif n_right == n_guessed:
            self.n, self.last_pause = min(2 * self.n, MOST_GUESSED), SHORTEST_PAUSE // 2
        elif n_right == 0:
            self.n = FIRST_GUESS
            self.pause = self.last_pause = min(2 * self.last_pause, LONGEST_PAUSE)
        else:
            self.n = max(FIRST_GUESS, n_right)
