# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Effects with their intervals: by hand, beside scipy's tests, and what five pairs can show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from airpath.analysis.effects import paired_effect, unpaired_effect
from airpath.analysis.statistics import p_value

FIRST = np.array([10.0, 12.0, 9.0, 11.0, 14.0])
SECOND = np.array([15.0, 20.0, 13.0, 19.0, 21.0])


def test_a_ratio_of_pairs_is_that_of_student_by_logarithms() -> None:
    effect = paired_effect([(FIRST, SECOND)])
    expected = stats.ttest_rel(np.log(SECOND), np.log(FIRST))
    low, high = expected.confidence_interval(0.95)
    assert effect.is_ratio
    assert effect.paired
    assert effect.p == pytest.approx(float(expected.pvalue), rel=1e-12)
    assert (effect.low, effect.high) == pytest.approx((math.exp(low), math.exp(high)))
    ratios = SECOND / FIRST
    assert effect.estimate == pytest.approx(math.prod(ratios.tolist()) ** (1 / 5))
    assert (effect.first, effect.second) == (5, 5)


def test_five_pairs_can_be_told_apart_which_ranks_cannot() -> None:
    effect = paired_effect([(FIRST, SECOND)])
    assert effect.p is not None
    assert effect.p < 0.001
    assert p_value(FIRST, SECOND, paired=True) == pytest.approx(0.0625), "the least there is"


def test_independent_sides_are_compared_as_welch_does() -> None:
    first, second = FIRST, np.array([30.0, 11.0, 19.0, 24.0, 15.0, 40.0, 22.0])
    effect = unpaired_effect([(first, second)])
    expected = stats.ttest_ind(np.log(second), np.log(first), equal_var=False)
    low, high = expected.confidence_interval(0.95)
    assert effect.p == pytest.approx(float(expected.pvalue), rel=1e-9)
    assert (effect.low, effect.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert (effect.first, effect.second) == (5, 7)


def test_counts_with_zeros_are_subtracted() -> None:
    first, second = np.array([0.0, 2.0, 1.0, 3.0]), np.array([4.0, 5.0, 6.0, 5.0])
    effect = paired_effect([(first, second)])
    expected = stats.ttest_rel(second, first)
    assert not effect.is_ratio
    assert effect.estimate == 3.5
    assert effect.p == pytest.approx(float(expected.pvalue))


def test_blocks_of_one_seed_are_one_pair() -> None:
    # By hand: the logarithms of the ratios are 1 and 3 in one block, 0 and 1 in the other; a seed's
    # are 0.5 and 2, mean 1.25, standard error 0.75, and Student's t for one degree is 12.706.
    one, other = np.ones(2), np.ones(2)
    effect = paired_effect([(one, np.exp([1.0, 3.0])), (other, np.exp([0.0, 1.0]))])
    assert math.log(effect.estimate) == pytest.approx(1.25)
    assert math.log(effect.high) == pytest.approx(1.25 + 12.7062047 * 0.75)
    assert [math.log(each) for each in effect.of_blocks] == pytest.approx([2.0, 0.5])
    assert effect.p == pytest.approx(float(stats.ttest_1samp([0.5, 2.0], 0).pvalue))


def test_blocks_of_independent_sides_have_the_variance_of_their_mean() -> None:
    random = np.random.default_rng(3)
    blocks = [
        (random.normal(0, 1, 6), random.normal(1, 2, 9)),
        (random.normal(5, 3, 7), random.normal(5, 1, 5)),
    ]
    effect = unpaired_effect(blocks)
    terms = [(side.var(ddof=1) / len(side), len(side) - 1) for block in blocks for side in block]
    variance = sum(term for term, _ in terms) / 4
    freedom = sum(term for term, _ in terms) ** 2 / sum(term**2 / df for term, df in terms)
    assert not effect.is_ratio
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(variance)
    assert effect.high - effect.estimate == pytest.approx(half)


def test_where_nothing_is_left_to_chance_there_is_no_test() -> None:
    same = paired_effect([(np.full(5, 3.0), np.full(5, 3.0))])
    assert same.p is None
    assert not same.differs
    double = paired_effect([(FIRST, FIRST * 2)])
    assert double.p is None
    assert double.estimate == pytest.approx(2)
    assert double.differs
    assert double.low == double.high


def test_a_single_value_shows_nothing() -> None:
    with pytest.raises(ValueError, match="an effect of 1 pairs"):
        paired_effect([(FIRST[:1], SECOND[:1])])
    with pytest.raises(ValueError, match="fewer than two values"):
        unpaired_effect([(FIRST[:1], SECOND)])
