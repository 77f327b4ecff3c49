from __future__ import annotations

from runtime.randomness import splitmix64, uniform


def test_splitmix64_gives_the_published_sequence_of_seed_zero() -> None:
    state, numbers = 0, []
    for _ in range(3):
        numbers.append(splitmix64(state))
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    assert numbers == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_a_number_is_the_same_whenever_it_is_asked_for() -> None:
    forwards = [uniform(7, position) for position in range(50)]
    backwards = [uniform(7, position) for position in reversed(range(50))]
    assert forwards == backwards[::-1]
    assert len(set(forwards)) == 50


def test_numbers_lie_in_the_unit_interval_for_any_seed() -> None:
    for seed in (0, 1, -1, 2**63, 2**64 - 1, 2**64, -(2**70), 10**30):
        assert all(0 <= uniform(seed, position) < 1 for position in range(200))


def test_positions_of_one_seed_and_seeds_at_one_position_are_spread_evenly() -> None:
    """Chi-square over 100 bins: 99 degrees of freedom, above 149 once in a thousand times."""
    n = 50_000
    for numbers in (
        [uniform(3, position) for position in range(n)],
        [uniform(seed, 3) for seed in range(n)],
        [uniform(seed, seed) for seed in range(n)],
    ):
        bins = [0] * 100
        for number in numbers:
            bins[int(number * 100)] += 1
        assert sum((count - n / 100) ** 2 / (n / 100) for count in bins) < 149


def test_neighbouring_seeds_and_positions_are_not_correlated() -> None:
    """For independent numbers the mean of (a - 1/2)(b - 1/2) has a standard deviation of 1 / (12 sqrt n)."""
    n = 20_000
    bound = 4 / (12 * n**0.5)
    for seed_shift, position_shift in ((0, 1), (0, 64), (1, 0), (64, 0), (1, 1)):
        covariance = sum(
            (uniform(i % 99, i) - 0.5) * (uniform(i % 99 + seed_shift, i + position_shift) - 0.5) for i in range(n)
        ) / n
        assert abs(covariance) < bound
