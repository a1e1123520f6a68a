import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shoal.auditing.privacy_losses import chance, log_weights
from shoal.core import Noise
from shoal.core.concentrated import root_above
from shoal.errors import InternalError
from shoal.hazmat import noise as module
from shoal.hazmat import opendp_measurements
from shoal.hazmat.fakes import Call, RecordingNoise, SeededNoise
from shoal.hazmat.noise import OpenDPNoise, response_odds, round_up

ALARM = 1e-7  # False-alarm probability of each chi-square test below.

SOURCES = {
    "opendp": OpenDPNoise,
    "recording": RecordingNoise,
    "seeded": lambda: SeededNoise(1),
}


@pytest.fixture(params=SOURCES)
def noise(request) -> Noise:
    return SOURCES[request.param]()


positive = st.fractions(min_value=Fraction(1, 10**9), max_value=10**12)


def chi_square(observed, probabilities):
    """p-value; cells expected less than ten times are put together."""
    observed, expected = np.asarray(observed, float), np.asarray(probabilities) * np.sum(observed)
    rare = expected < 10
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] == 0:
        assert observed[-1] == 0
        observed, expected = observed[:-1], expected[:-1]
    return stats.chisquare(observed, expected, sum_check=False).pvalue


def laplace_cells(draws, scale, reach):
    """Counts and exact probabilities of -reach..reach and of the two tails."""
    a = np.exp(-1 / float(scale))
    z = np.arange(-reach, reach + 1)
    inside = (1 - a) / (1 + a) * a ** np.abs(z)
    tail = a ** (reach + 1) / (1 + a)
    counts = [np.sum(draws < -reach), *(np.sum(draws == v) for v in z), np.sum(draws > reach)]
    return counts, [tail, *inside, tail]


def permute_and_flip(scores, scale):
    """Exact probabilities: the winner is uniform over the set of coins that show heads."""
    p = np.exp((np.asarray(scores) - max(scores)) / float(scale))
    chance = np.zeros(len(p))
    for size in range(1, len(p) + 1):
        for heads in combinations(range(len(p)), size):
            inside = np.isin(np.arange(len(p)), heads)
            chance[inside] += np.prod(np.where(inside, p, 1 - p)) / size
    return chance


# The scale


@given(positive)
def test_the_float_scale_is_the_least_that_is_not_below_the_exact_one(scale):
    rounded = round_up(scale)

    assert Fraction(rounded) >= scale
    assert Fraction(np.nextafter(rounded, 0)) < scale


@pytest.mark.parametrize("sensitivity", [1, 3, 2**20])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 3), Fraction(7)])
def test_opendp_itself_derives_no_more_than_the_stated_epsilon(sensitivity, epsilon):
    laplace = opendp_measurements.laplace(round_up(sensitivity / epsilon))
    chooser = opendp_measurements.noisy_max(round_up(2 * sensitivity / epsilon))

    # Its own division is rounded up, by at most one unit in the last place.
    assert laplace.map(sensitivity) <= np.nextafter(round_up(epsilon), np.inf)
    assert chooser.map(sensitivity) <= np.nextafter(round_up(epsilon), np.inf)
    assert laplace.map(sensitivity) > float(epsilon) * (1 - 1e-12)
    assert chooser.map(sensitivity) > float(epsilon) * (1 - 1e-12)


@pytest.mark.parametrize("moved", [1, 2, 90**2])
@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(3, 7), Fraction(5)])
def test_opendp_itself_derives_no_more_than_the_stated_rho(moved, rho):
    gaussian = opendp_measurements.gaussian(round_up(root_above(moved / (2 * rho))))
    chooser = opendp_measurements.gumbel_max(round_up(root_above(moved**2 / (2 * rho))))

    assert gaussian.map(float(np.sqrt(moved))) <= float(rho) * (1 + 1e-12)
    assert chooser.map(moved) <= float(rho) * (1 + 1e-12)
    assert gaussian.map(float(np.sqrt(moved))) > float(rho) * (1 - 1e-5)
    assert chooser.map(moved) > float(rho) * (1 - 1e-5)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(20)])
@pytest.mark.parametrize("source", [OpenDPNoise, lambda: SeededNoise(3)], ids=["real", "seeded"])
def test_noise_is_discrete_gaussian(scale, source):
    """Chi-square at 1e-7 for the real noise; the seeded one rounds a normal number."""
    drawn = source().discrete_gaussian(np.zeros(20_000, np.int64), scale=scale)
    reach = int(4 * scale) + 1
    cells = np.arange(-reach, reach + 1)
    law = np.exp(-(cells**2) / (2 * float(scale) ** 2))
    law /= np.exp(-(np.arange(-400, 401) ** 2) / (2 * float(scale) ** 2)).sum()
    found = np.array([(drawn == cell).sum() for cell in cells])

    kept = law * drawn.size >= 10
    if source is OpenDPNoise:
        assert ((found - law * drawn.size)[kept] ** 2 / (law * drawn.size)[kept]).sum() < (
            kept.sum() + 60
        )
    assert drawn.std() == pytest.approx(float(scale), rel=0.3 if scale < 1 else 0.05)


@pytest.mark.parametrize("source", [OpenDPNoise, lambda: SeededNoise(3)], ids=["real", "seeded"])
def test_a_choice_by_weight_is_the_exponential_mechanism(source):
    """By Hoeffding and 3 indices, false alarms below 6 exp(-2 * 4000 * 0.05^2) = 1.3e-8."""
    scores = np.array([0, 3, 5])
    noise = source()
    chosen = [noise.select_by_weight(scores, scale=Fraction(3)) for _ in range(4000)]
    law = np.exp(scores / 3) / np.exp(scores / 3).sum()

    assert np.abs(np.bincount(chosen, minlength=3) / 4000 - law).max() < 0.05


@given(
    st.lists(st.integers(-20, 20), min_size=2, max_size=6), st.data(), st.integers(1, 5),
)  # fmt: skip
def test_the_exponential_mechanism_has_the_renyi_divergence_of_its_rho(scores, data, reach):
    """Permute-and-flip has not: see the next test."""
    moves = data.draw(st.lists(st.integers(-reach, reach), min_size=len(scores),
                               max_size=len(scores)))  # fmt: skip
    scale = 2.0 * reach
    first, second = np.array(scores), np.array(scores) + moves
    p, q = (log_weights(x, scale) for x in (first, second))
    rho = reach**2 / (2 * scale**2)

    for order in (1.01, 1.5, 2, 4, 16, 64):
        divergence = np.logaddexp.reduce(order * p + (1 - order) * q) / (order - 1)
        assert divergence <= rho * order + 1e-12


def test_permute_and_flip_costs_more_than_an_eighth_of_its_square():
    """Scores (0, 0) against a gap of 2: KL 0.255 at epsilon 1, twice what an eighth would be."""
    p = np.exp([chance(np.array([1, -1]), i, 2.0) for i in range(2)])
    q = np.exp([chance(np.array([0, 0]), i, 2.0) for i in range(2)])

    divergence = (q * np.log(q / p)).sum()
    assert divergence == pytest.approx(0.255, abs=0.001)
    assert divergence > 1 / 8
    assert divergence <= 1 / 2


def test_a_scale_beyond_the_largest_float_is_refused():
    with pytest.raises(InternalError, match="largest float"):
        OpenDPNoise().discrete_laplace(np.zeros(1, np.int64), scale=Fraction(10**400))


# The distributions of the real noise


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(5, 2)])
def test_noise_is_discrete_laplace(scale):
    """False-alarm probability 1e-7."""
    draws = OpenDPNoise().discrete_laplace(np.zeros(40_000, np.int64), scale=scale)

    assert chi_square(*laplace_cells(draws, scale, 12)) > ALARM


def test_noise_of_a_large_scale_is_laplace_when_cut_into_fiftieths():
    """False-alarm probability 1e-7; the grid is 1/10,000 of a bin."""
    scale = Fraction(10**7, 3)

    draws = OpenDPNoise().discrete_laplace(np.zeros(20_000, np.int64), scale=scale)

    edges = stats.laplace.ppf(np.linspace(0, 1, 51)[1:-1], scale=float(scale))
    counts = np.bincount(np.searchsorted(edges, draws), minlength=50)
    assert chi_square(counts, np.full(50, 1 / 50)) > ALARM


def test_neighbouring_draws_are_independent_of_each_other_and_of_the_cut_between_threads():
    """False-alarm probability 1e-7: signs of pairs across the whole vector, 3 x 3 cells."""
    scale = Fraction(2)
    draws = OpenDPNoise(threads=3).discrete_laplace(np.zeros(60_000, np.int64), scale=scale)

    signs = np.sign(draws.reshape(3, -1)) + 1
    zero = np.tanh(1 / (2 * float(scale)))
    one = np.array([(1 - zero) / 2, zero, (1 - zero) / 2])
    joint = np.einsum("i,j,k->ijk", one, one, one).ravel()
    counts = np.bincount(signs[0] * 9 + signs[1] * 3 + signs[2], minlength=27)
    assert chi_square(counts, joint) > ALARM


@pytest.mark.parametrize("scores", [[0, 0, 0], [3, 1, 0, 3], [-5, 0, 2, 4, 4]])
@pytest.mark.parametrize("way", ["one by one", "many at once"])
def test_selections_follow_permute_and_flip(scores, way):
    """False-alarm probability 1e-7."""
    sensitivity, epsilon, times = Fraction(1), Fraction(4, 5), 6000
    source = OpenDPNoise()
    row = np.array(scores)

    if way == "many at once":
        picks = source.select_many(
            np.tile(row, (times, 1)), sensitivity=sensitivity, epsilon=epsilon
        )
    else:
        picks = [source.select(row, sensitivity=sensitivity, epsilon=epsilon) for _ in range(times)]

    exact = permute_and_flip(scores, 2 * sensitivity / epsilon)
    assert chi_square(np.bincount(picks, minlength=row.size), exact) > ALARM


@given(
    st.lists(st.integers(-8, 8), min_size=2, max_size=5),
    st.data(),
    st.integers(1, 3),
    st.fractions(Fraction(1, 4), 3),
)
def test_permute_and_flip_costs_twice_the_sensitivity_over_the_scale(scores, data, reach, epsilon):
    """The price of the docstring, on exact probabilities of neighbouring scores."""
    move = st.lists(st.integers(-reach, reach), min_size=len(scores), max_size=len(scores))
    neighbour = np.add(scores, data.draw(move))
    scale = 2 * reach / epsilon

    here, there = permute_and_flip(scores, scale), permute_and_flip(neighbour, scale)

    assert np.abs(np.log(here / there)).max() <= float(epsilon) + 1e-9


def responses(categories, epsilon):
    """Exact probabilities of the truth 0 and of each lie."""
    truth = np.exp(float(epsilon)) / (np.exp(float(epsilon)) + categories - 1)
    return [truth, *[(1 - truth) / (categories - 1)] * (categories - 1)]


@pytest.mark.parametrize(
    ("categories", "epsilon"),
    [(2, Fraction(1, 10)), (2, Fraction(3)), (3, Fraction(1)), (14, Fraction(1, 2)),
     (14, Fraction(4)), (60, Fraction(2))],
)  # fmt: skip
def test_responses_follow_the_law_of_randomised_response(categories, epsilon):
    """A chi-square test over truths and lies of 40,000 answers; false alarms: 1e-7 each."""
    truths = np.random.default_rng(5).integers(categories, size=40_000)

    answers = OpenDPNoise().respond(truths, categories=categories, epsilon=epsilon)

    # Levels that are moved so that the truth is 0 have the same law whatever the truth is.
    counts = np.bincount((answers - truths) % categories, minlength=categories)
    assert chi_square(counts, responses(categories, epsilon)) > ALARM


def test_responses_to_different_truths_have_the_same_law():
    """Each truth by itself, 12,000 answers; false alarms: 4e-7 in all."""
    for truth in range(4):
        answers = OpenDPNoise().respond(np.full(12_000, truth), categories=4, epsilon=Fraction(1))
        law = np.roll(responses(4, 1), truth)
        assert chi_square(np.bincount(answers, minlength=4), law) > ALARM


@given(categories=st.integers(2, 5000), epsilon=st.fractions(Fraction(1, 1 << 30), 60))
@settings(max_examples=200)
def test_the_odds_of_a_response_never_cost_more_than_epsilon(categories, epsilon):
    """In a hundred digits: truth against a lie, and a lie against the truth."""
    odds = response_odds(categories, epsilon)

    with localcontext() as context:
        context.prec = 100
        h, eps = (Decimal(x.numerator) / Decimal(x.denominator) for x in (odds, epsilon))
        truth_over_lie = (categories - 1) * h.exp()

        assert truth_over_lie <= eps.exp()
        assert 1 / truth_over_lie <= eps.exp()
        # And hardly less: what rounding gives away is below 2^-38.
        if odds < 40:
            assert truth_over_lie * Decimal(2**-38).exp() >= eps.exp()


@given(odds=st.fractions(-10, 40).filter(lambda x: abs(x) >= Fraction(1, 1 << 40)))
def test_the_coin_of_a_response_is_rounded_towards_lies(odds):
    """P(G odd) = exp(-1/scale) P(G even) for G geometric: heads is a lie for positive odds, the
    truth for negative ones."""
    asked = []

    class Probe(OpenDPNoise):
        def _laplace(self, values, scale):
            asked.append(scale)
            return values

    Probe()._lies(odds, 1)

    (scale,) = asked
    assert scale == Fraction(float(scale))
    truth = 1 / scale if odds > 0 else -1 / scale
    assert odds - abs(odds) * Fraction(1, 1 << 51) <= truth <= odds


def test_the_parity_of_a_folded_draw_has_the_odds_that_the_coin_needs():
    """Summed up exactly over z = -400..399 at scale 5/2: G = z, or -z - 1 below 0."""
    z = np.arange(-400, 400)
    weights = np.exp(-np.abs(z) / 2.5)
    odd = np.where(z >= 0, z, -(z + 1)) & 1 == 1

    assert weights[odd].sum() / weights[~odd].sum() == pytest.approx(np.exp(-1 / 2.5), rel=1e-12)


def test_a_response_at_next_to_no_price_is_uniform():
    """40,000 answers; false alarms: 1e-7."""
    epsilon = Fraction(1, 1 << 31)

    answers = OpenDPNoise().respond(np.zeros(40_000, dtype=int), categories=5, epsilon=epsilon)

    assert chi_square(np.bincount(answers, minlength=5), [0.2] * 5) > ALARM


def test_a_response_at_a_high_price_is_the_truth(noise):
    """A lie has probability exp(-40): a false alarm below 1e-13."""
    truths = np.arange(3000).reshape(3, 1000) % 7

    answers = noise.respond(truths, categories=7, epsilon=Fraction(10**6))

    assert np.array_equal(answers, truths)
    assert noise.drawn == {("randomised-response", Fraction(1, 10**6)): 3000}


def test_one_level_and_no_record_are_responses_too(noise):
    assert (
        noise.respond(np.zeros(4, dtype=int), categories=1, epsilon=Fraction(1)).tolist() == [0] * 4
    )
    assert noise.respond(np.zeros(0, dtype=int), categories=3, epsilon=Fraction(1)).size == 0


@pytest.mark.parametrize(
    ("codes", "categories", "epsilon", "words"),
    [
        ([0, 3], 3, Fraction(1), "outside the 3 categories"),
        ([-1], 3, Fraction(1), "outside the 3 categories"),
        ([0.5], 3, Fraction(1), "not whole"),
        ([0], 0, Fraction(1), "1 to 2\\^31 categories"),
        ([0], 3, Fraction(0), "epsilon must be a Fraction above 0"),
        ([0], 3, 0.5, "epsilon must be a Fraction above 0"),
    ],
)
def test_what_no_response_can_be_given_for_is_refused(noise, codes, categories, epsilon, words):
    with pytest.raises(InternalError, match=words):
        noise.respond(np.array(codes), categories=categories, epsilon=epsilon)


def test_recording_noise_moves_responses_and_writes_down_the_scale():
    noise = RecordingNoise(added=[1, 0])

    assert noise.respond(np.array([2, 2, 2]), categories=3, epsilon=Fraction(1, 2)).tolist() == [
        0,
        2,
        0,
    ]
    assert noise.calls == [Call("randomised-response", (3,), Fraction(2))]


def test_seeded_responses_repeat_themselves_and_have_the_right_law():
    """Chi-square on 40,000 answers; false alarms cannot come, since the seed is fixed."""
    first, second = (
        SeededNoise(4).respond(np.zeros(40_000, dtype=int), categories=4, epsilon=Fraction(1))
        for _ in range(2)
    )

    assert np.array_equal(first, second)
    assert chi_square(np.bincount(first, minlength=4), responses(4, 1)) > ALARM


def test_uniform_numbers_are_uniform_and_reject_the_uneven_end():
    """False-alarm probability 1e-7."""
    numbers = module._uniform_below(7, 70_000)

    assert chi_square(np.bincount(numbers, minlength=7), np.full(7, 1 / 7)) > ALARM
    assert (module._uniform_below(2**62 + 1, 1000) <= 2**62).all()  # A quarter is rejected.
    assert (module._uniform_below(1, 10) == 0).all()
    assert module._uniform_below(3, 0).size == 0


def test_a_forked_process_draws_other_noise():
    code = (
        "import os, numpy as np; from fractions import Fraction\n"
        "from shoal.hazmat.noise import OpenDPNoise\n"
        "draw = lambda: OpenDPNoise().discrete_laplace(np.zeros(4, np.int64),"
        " scale=Fraction(10**15)).tolist()\n"
        "draw()\n"
        "for _ in range(2):\n"
        "    if os.fork() == 0:\n"
        "        print(draw(), flush=True); os._exit(0)\n"
        "    os.wait()\n"
        "print(draw())\n"
    )

    lines = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()

    assert len(lines) == len(set(lines)) == 3


# Shapes and threads


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (3, 5), (2, 0), ()])
def test_noise_keeps_the_shape(noise, shape):
    noisy = noise.discrete_laplace(np.zeros(shape, np.int32), scale=Fraction(3))

    assert noisy.shape == shape
    assert noisy.dtype == np.int64


@pytest.mark.parametrize("size", [module._CHUNK * 2 - 1, module._CHUNK * 2, module._CHUNK * 5 + 3])
def test_threads_keep_each_value_in_its_place(size):
    """False-alarm probability below size * exp(-1e6)."""
    values = np.arange(size) * 10**9

    noisy = OpenDPNoise(threads=4).discrete_laplace(values, scale=Fraction(100))

    assert (np.abs(noisy - values) < 10**8).all()


def test_a_sum_beyond_int64_is_cut_off_and_does_not_wrap():
    """False-alarm probability below 1e-50: each end is as likely as not at this scale."""
    edge = np.full(200, module.LIMIT)
    scale = Fraction(2**66)

    high = OpenDPNoise().discrete_laplace(edge, scale=scale)

    assert (high == 2**63 - 1).any()
    assert (high == -(2**63)).any()


def test_a_certain_winner_always_wins(noise):
    """False-alarm probability below 1e-400."""
    scores = np.tile([0, 10**6, 10], (50, 1))

    assert (noise.select_many(scores, sensitivity=Fraction(1), epsilon=Fraction(1)) == 1).all()
    assert noise.select(scores[0], sensitivity=Fraction(1), epsilon=Fraction(1)) == 1


def test_no_row_and_one_candidate_are_selections_too(noise):
    price = {"sensitivity": Fraction(1), "epsilon": Fraction(1)}

    assert noise.select_many(np.zeros((0, 3), np.int64), **price).shape == (0,)
    assert noise.select_many(np.zeros((4, 1), np.int64), **price).tolist() == [0] * 4
    assert noise.select(np.array([-7]), **price) == 0


# Refusals: the same for the real noise and the fakes


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, np.nan], "not finite"),
        ([1.0, np.inf], "not finite"),
        ([1.0, -np.inf], "not finite"),
        ([0.5], "not whole"),
        ([2.0**54], "not whole"),
        ([True], "bool"),
        (["1"], "whole numbers"),
        ([2**62 + 1], "beyond"),
        ([-(2**62) - 1], "beyond"),
        (np.array([2**64 - 1], np.uint64), "beyond"),
        (np.array([1j]), "complex"),
        ([None], "object"),
    ],
)
def test_numbers_that_noise_cannot_protect_are_refused(noise, values, words):
    with pytest.raises(InternalError, match=words):
        noise.discrete_laplace(np.asarray(values), scale=Fraction(1))
    with pytest.raises(InternalError, match=words):
        noise.select(np.asarray(values), sensitivity=Fraction(1), epsilon=Fraction(1))
    with pytest.raises(InternalError, match=words):
        noise.select_many(np.asarray(values)[None], sensitivity=Fraction(1), epsilon=Fraction(1))


@pytest.mark.parametrize("bad", [0, -1, Fraction(-1, 2), 0.5, float("nan"), float("inf"), "1"])
def test_scale_sensitivity_and_epsilon_are_exact_and_positive(noise, bad):
    values = np.zeros(2, np.int64)

    with pytest.raises(InternalError, match="scale must be a Fraction above 0"):
        noise.discrete_laplace(values, scale=bad)
    with pytest.raises(InternalError, match="sensitivity must be a Fraction above 0"):
        noise.select(values, sensitivity=bad, epsilon=Fraction(1))
    with pytest.raises(InternalError, match="epsilon must be a Fraction above 0"):
        noise.select_many(values[None], sensitivity=Fraction(1), epsilon=bad)


def test_scores_have_the_right_dimensions_and_a_bound_of_their_own(noise):
    price = {"sensitivity": Fraction(1), "epsilon": Fraction(1)}

    with pytest.raises(InternalError, match="1-dimensional"):
        noise.select(np.zeros((2, 2), np.int64), **price)
    with pytest.raises(InternalError, match="1-dimensional"):
        noise.select(np.zeros(0, np.int64), **price)
    with pytest.raises(InternalError, match="2-dimensional"):
        noise.select_many(np.zeros(2, np.int64), **price)
    with pytest.raises(InternalError, match="beyond"):
        noise.select(np.array([2**61 + 1]), **price)


def test_an_error_shows_no_value(noise):
    with pytest.raises(InternalError) as refusal:
        noise.discrete_laplace(np.array([123456.75]), scale=Fraction(1))

    assert "123456" not in str(refusal.value)


# The fakes


def test_every_source_fits_the_protocol_and_counts_its_draws(noise):
    source: Noise = noise
    source.discrete_laplace(np.zeros((2, 3), np.int64), scale=Fraction(5, 2))
    source.select(np.zeros(4, np.int64), sensitivity=Fraction(1), epsilon=Fraction(1))
    source.select_many(np.zeros((5, 2), np.int64), sensitivity=Fraction(1), epsilon=Fraction(1))
    source.discrete_gaussian(np.zeros((2, 2), np.int64), scale=Fraction(3))
    source.select_by_weight(np.zeros(4, np.int64), scale=Fraction(3))

    assert noise.drawn == {
        ("discrete-gaussian", Fraction(3)): 4,
        ("exponential-mechanism", Fraction(3)): 1,
        ("discrete-laplace", Fraction(5, 2)): 6,
        ("permute-and-flip", Fraction(2)): 6,
    }


def test_recording_noise_adds_what_it_was_given_and_writes_down_exact_scales():
    noise = RecordingNoise(added=[1, 2])

    noisy = noise.discrete_laplace(np.array([[10, 10], [10, 10]]), scale=Fraction(1, 3))
    picked = noise.select_many(
        np.array([[1, 5], [5, 5]]), sensitivity=Fraction(1), epsilon=Fraction(1, 10)
    )

    assert noisy.tolist() == [[11, 12], [11, 12]]
    assert picked.tolist() == [1, 0]
    assert noise.calls == [
        Call("discrete-laplace", (2, 2), Fraction(1, 3)),
        Call("permute-and-flip", (2, 2), Fraction(20)),
    ]


def test_seeded_noise_repeats_itself_and_has_the_right_distributions():
    """Seeded, so the outcome is always the same."""
    scale, zeros = Fraction(5, 2), np.zeros(40_000, np.int64)
    rows = np.tile([3, 1, 0, 3], (6000, 1))

    first, again = SeededNoise(7), SeededNoise(7)
    draws = first.discrete_laplace(zeros, scale=scale)
    picks = first.select_many(rows, sensitivity=Fraction(1), epsilon=Fraction(1))

    assert (draws == again.discrete_laplace(zeros, scale=scale)).all()
    assert chi_square(*laplace_cells(draws, scale, 12)) > ALARM
    assert chi_square(np.bincount(picks), permute_and_flip([3, 1, 0, 3], 2)) > ALARM


# The import


def test_opendp_is_loaded_by_the_first_draw_and_not_before():
    code = (
        "import sys, numpy as np; from fractions import Fraction\n"
        "from shoal.budget import budget_file\n"
        "from shoal.hazmat import accounting, fakes, noise\n"
        "source = noise.OpenDPNoise()\n"
        "assert not any(name.startswith('opendp') for name in sys.modules)\n"
        "source.discrete_laplace(np.zeros(3, np.int64), scale=Fraction(1))\n"
        "assert 'opendp.measurements' in sys.modules\n"
        "assert 'opendp.prelude' not in sys.modules\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-(2**53), 2**53), max_size=20), positive)
def test_whole_floats_and_integers_are_treated_alike(values, scale):
    whole = RecordingNoise(added=3).discrete_laplace(np.array(values, np.int64), scale=scale)
    floats = RecordingNoise(added=3).discrete_laplace(np.array(values, float), scale=scale)

    assert (whole == floats).all()


def test_uniform_numbers_stay_below_their_bound_and_are_in_no_budget(noise):
    drawn = noise.uniform(7, size=500)

    assert drawn.dtype == np.int64
    assert set(drawn) == set(range(7))  # one is missing with probability below 7 (6/7)^500 < 1e-32
    assert noise.uniform(1 << 62, size=3).max() < 1 << 62
    assert noise.uniform(5, size=0).size == 0
    assert not noise.drawn
    with pytest.raises(
        InternalError, match="whole numbers for the random number generator to draw from"
    ):
        noise.uniform(0, size=1)


def test_uniform_numbers_cannot_be_foreseen():
    """Two draws of eight numbers below 2^62 are equal with probability 2^-496."""
    first, second = (OpenDPNoise().uniform(1 << 62, size=8) for _ in range(2))

    assert not set(first.tolist()) & set(second.tolist())


def test_keys_are_released_by_their_noisy_counts():
    """Of 2,000 draws at the threshold about 1,130 are released; false alarms below 1e-6."""
    noise, counts = OpenDPNoise(), {"at": 20, "beyond": 200, "below": 1}

    drawn = [noise.release_keys(counts, scale=Fraction(3), threshold=20) for _ in range(2000)]

    assert all(set(keys) <= set(counts) and "beyond" in keys for keys in drawn)
    assert 1000 < sum("at" in keys for keys in drawn) < 1270  # P = 0.57
    assert sum("below" in keys for keys in drawn) == 0  # each with probability 3e-10
    assert min(keys["at"] for keys in drawn if "at" in keys) == 20
    assert len({keys["beyond"] for keys in drawn}) > 10
    assert noise.drawn == {("gaussian-threshold", Fraction(3)): 2000}


@pytest.mark.parametrize(
    ("counts", "scale", "threshold"),
    [({"a": 0}, Fraction(1), 5), ({"a": 2}, 0.5, 5), ({"a": 2}, Fraction(1), 0)],
)
def test_keys_that_nobody_has_and_inexact_scales_are_our_bug(noise, counts, scale, threshold):
    with pytest.raises(InternalError):
        noise.release_keys(counts, scale=scale, threshold=threshold)
