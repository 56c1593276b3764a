"""What PathLang prints, from what its metrics are defined to be: the code's numbers against the published tables.

Tables are rounded to 0.001; half of it is what a comparison allows, and more where a printed number goes in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from wsigym.scoring.macro_f1 import macro_f1_estimate
from wsigym.scoring.paraphrases import prediction_consistency, prompt_stability, relative_changes
from wsigym.scoring.ranks import spearman
from wsigym.scoring.retrieval import Retrieval, chance_recall, retrieval

Rows = list[dict[str, Any]]
Published = Callable[[str], Rows]

ROUNDED = 0.0005 + 1e-9

CLASSES = {"CAMELYON16": 2, "CAMELYON17": 4, "PANDA": 6, "TCGA-GBMLGG": 2, "UniToPatho": 6}

CORRELATIONS = (
    *("pathlang_appA_table2_spearman_mf1", "pathlang_appA_table6_spearman_i2t", "pathlang_appA_table7_spearman_t2i"),
    *("pathlang_appA_table8_spearman_i2i", "pathlang_appA_table10_spearman_v1", "pathlang_appA_table12_spearman_v2"),
)

OPEN_VOCABULARY = (
    *("pathlang_appC_table12_t4_set1", "pathlang_appC_table13_t4_set2"),
    *("pathlang_appC_table14_t4_set3", "pathlang_appC_table15_t4_set4"),
)


def by_model(rows: Rows) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in rows}


def with_first_ranks(ranks: Sequence[int], candidates: int) -> Retrieval:
    """Queries with one relevant candidate each, which stands at these ranks."""
    scores = np.tile(-np.arange(candidates, dtype=float), (len(ranks), 1))
    return retrieval(scores, np.arange(1, candidates + 1) == np.array(ranks)[:, None])


def constant(share: float, classes: int, slides: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Truths of which a share is class 0 and the rest even over the others, and the answer class 0 to all."""
    truths = np.arange(slides) % (classes - 1) + 1
    truths[: round(share * slides)] = 0
    return truths, np.zeros(slides, int)


def lattice_of_nine() -> set[float]:
    """Every rho of nine untied models that one, two or more exchanges give, printed to three digits."""
    return {round(1 - d / 120, 3) for d in range(0, 241, 2)}


def test_the_lattice_is_what_spearman_gives() -> None:
    rng = np.random.default_rng(0)
    order = np.arange(9.0)
    found = {round(spearman(order, rng.permutation(order)) or 0.0, 3) + 0.0 for _ in range(500)}
    assert found <= lattice_of_nine()
    swapped = [order.copy() for _ in range(8)]
    for place, ranking in enumerate(swapped):
        ranking[[place, place + 1]] = ranking[[place + 1, place]]
        assert spearman(order, ranking) == pytest.approx(1 - 2 / 120)


@pytest.mark.parametrize("table", CORRELATIONS)
def test_published_correlations_lie_on_the_lattice(published: Published, table: str) -> None:
    rows = published(table)
    names = [row["aggregation"] for row in rows]
    matrix = np.array([[row[name] for name in names] for row in rows])
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 1).all()
    allowed = lattice_of_nine()
    for first, second in combinations(range(len(names)), 2):
        # 0.8165 and the like print either way.
        assert min(abs(matrix[first, second] - rho) for rho in allowed) <= 0.0011


def test_macro_f1_of_a_constant_prediction_is_over_all_classes(published: Published) -> None:
    cells = by_model(published("pathlang_main_table2_zeroshot"))
    for model, dataset in (("QuiltNet", "CAMELYON16"), ("QuiltNet", "CAMELYON17"), ("BiomedCLIP", "PANDA")):
        classes, share = CLASSES[dataset], cells[model][f"{dataset}.Acc"]
        truths, answers = constant(share, classes)
        found = macro_f1_estimate(truths, answers, range(len(truths)), classes=classes).value
        assert found == pytest.approx(cells[model][f"{dataset}.mF1"], abs=ROUNDED)


def test_chance_of_recall_and_the_pools(published: Published) -> None:
    pools = {row["set"]: row["pool"] for row in published("pathlang_pools")}
    assert {name: len(pool) for name, pool in pools.items()} == {
        "set1_shared": 20,
        "set3_PANDA_shared": 9,
        "set4_shared": 19,
    }
    assert all(len(set(pool)) == len(pool) for pool in pools.values())
    chance = by_model(published("pathlang_appC_table12_t4_set1"))["Chance"]
    found = chance_recall(len(pools["set1_shared"]))
    assert found.tolist() == pytest.approx([chance[f"R@{k}"] for k in range(1, 11)])
    assert found.mean() == pytest.approx(chance["Mean"])


@pytest.mark.parametrize("table", OPEN_VOCABULARY)
def test_mean_is_over_the_recalls_that_are_displayed(published: Published, table: str) -> None:
    for row in published(table):
        recalls = [value for key, value in row.items() if key.startswith("R@")]
        # A thousand slides have any recalls printed to three digits, if they don't fall.
        hits = np.round(1000 * np.diff(recalls, prepend=0, append=1)).astype(int)
        result = with_first_ranks(np.repeat(np.arange(len(hits)) + 1, hits).tolist(), len(hits))
        shown = result.recall[:, : len(recalls)]
        assert shown.mean(axis=0).tolist() == pytest.approx(recalls)
        assert shown.mean() == pytest.approx(row["Mean"], abs=ROUNDED)
        if len(recalls) == 10:
            assert result.mean_recall.mean() == pytest.approx(row["Mean"], abs=ROUNDED)


def test_three_ranks_of_one_relevant_text_give_a_published_cell(published: Published) -> None:
    assert with_first_ranks([1, 2, 3], 3).ndcg.tolist() == pytest.approx([1, 0.6309, 0.5], abs=5e-5)
    cell = by_model(published("pathlang_appC_table3_i2t"))["QuiltNet"]
    result = with_first_ranks(np.repeat([1, 2, 3], [500, 368, 132]).tolist(), 3)
    found = [result.recall[:, 0].mean(), result.reciprocal_rank.mean(), result.ndcg.mean()]
    assert found == pytest.approx([cell[f"CAMELYON16.{name}"] for name in ("R1", "MRR", "nDCG")], abs=ROUNDED)


@pytest.mark.parametrize("dataset", CLASSES)
def test_recalls_of_texts_are_shares_of_four_prompts_a_class(published: Published, dataset: str) -> None:
    queries = 4 * CLASSES[dataset]
    for row in published("pathlang_appC_table4_t2i"):
        first, fifth = (round(row[f"{dataset}.{name}"] * queries) for name in ("R1", "R5"))
        ranks = [1] * first + [5] * (fifth - first) + [11] * (queries - fifth)
        found = with_first_ranks(ranks, 11)
        assert found.recall[:, [0, 4]].mean(axis=0).tolist() == pytest.approx(
            [row[f"{dataset}.R1"], row[f"{dataset}.R5"]], abs=ROUNDED
        )
        # The lowest MRR that these two allow, and one cell is below it: no ranking gives that cell.
        impossible = (row["model"], dataset) == ("BiomedCLIP", "UniToPatho")
        assert (row[f"{dataset}.MRR"] < found.reciprocal_rank.mean() - ROUNDED) == impossible


def test_ranks_of_texts_are_cut_off(published: Published) -> None:
    row = by_model(published("pathlang_appC_table4_t2i"))["MI-Zero"]
    result = with_first_ranks([1] * 4 + [11] * 4, 11)
    found = [result.recall[:, 0], result.recall[:, 4], result.reciprocal_rank, result.ndcg]
    assert [number.mean() for number in found] == [row[f"CAMELYON16.{name}"] for name in ("R1", "R5", "MRR", "nDCG")]


def test_stability_of_constant_wordings_that_differ(published: Published) -> None:
    accuracies = by_model(published("pathlang_appC_table8_v2_variant_acc"))["QuiltNet"]
    shares = [accuracies[f"CAMELYON16.{style}"] for style in ("Short", "Medium", "Long", "Clinical")]
    # Four constant predictions: 0.402 and 0.598 are the shares of the two classes.
    predictions = np.tile([share > 0.5 for share in shares], (400, 1)).astype(int)
    intervals = by_model(published("pathlang_appC_table11_v2_ci"))["QuiltNet"]
    stability = prompt_stability(predictions, range(400)).estimate
    assert [stability.low, stability.high] == pytest.approx(intervals["CAMELYON16.PSS_ci"], abs=ROUNDED)
    assert stability.value == pytest.approx(-1 / 3)
    # Not pairwise agreement, which is a half.
    assert np.mean([np.mean(predictions[:, a] == predictions[:, b]) for a, b in combinations(range(4), 2)]) == 0.5
    consistency = prediction_consistency(predictions, range(400))
    assert [consistency.low, consistency.high] == intervals["CAMELYON16.PC_ci"]


@pytest.mark.parametrize(
    ("table", "variants"), [("pathlang_appC_table10_v1_ci", 5), ("pathlang_appC_table11_v2_ci", 4)]
)
def test_published_stability_is_not_below_its_floor(published: Published, table: str, variants: int) -> None:
    predictions = np.tile(np.arange(variants) > 0, (50, 1)).astype(int)
    floor = prompt_stability(predictions, range(50)).estimate.value
    assert floor is not None
    lows = [row[key][0] for row in published(table) for key in row if key.endswith("PSS_ci")]
    assert min(lows) == pytest.approx({5: -0.216, 4: -0.333}[variants])
    assert min(lows) >= floor - ROUNDED


def test_means_over_datasets_are_those_of_one_aggregation_nearly(published: Published) -> None:
    single = by_model(published("pathlang_appA_table16_pc_pss_v1"))
    cells = by_model(published("pathlang_appC_table5_v1_pc_pss"))
    mean = {name: np.mean([cells["BiomedCLIP"][f"{dataset}.{name}"] for dataset in CLASSES]) for name in ("PC", "PSS")}
    assert mean["PSS"] == pytest.approx(single["BiomedCLIP"]["hybrid_top1.PSS"], abs=ROUNDED)
    assert mean["PC"] == pytest.approx(0.005)
    # Cells of the best aggregation against the top 1 % alone.
    for model in single.keys() & cells.keys():
        for name in ("PC", "PSS"):
            found = np.mean([cells[model][f"{dataset}.{name}"] for dataset in CLASSES])
            assert found == pytest.approx(single[model][f"hybrid_top1.{name}"], abs=0.007)


def test_accuracy_is_plain_in_one_table_and_balanced_in_another(published: Published) -> None:
    variants = by_model(published("pathlang_appC_table7_v1_variant_acc"))
    plain = {
        model: {name: np.mean([row[f"{name}.v{v}"] for v in range(1, 6)]) for name in CLASSES}
        for model, row in variants.items()
    }
    top1 = by_model(published("pathlang_appA_table9_v1_acc"))["BiomedCLIP"]["Top 1%"]
    assert np.mean(list(plain["BiomedCLIP"].values())) == pytest.approx(top1, abs=0.0015)
    cell = by_model(published("pathlang_appC_table5_v1_pc_pss"))["CONCH"]["CAMELYON16.Acc"]
    assert cell - plain["CONCH"]["CAMELYON16"] > 0.08
    # CONCH nearly always says one class of CAMELYON16, that of 0.402 of the slides.
    truths, answers = constant(0.402, 2)
    assert accuracy_score(truths, answers) == pytest.approx(plain["CONCH"]["CAMELYON16"], abs=0.011)
    assert balanced_accuracy_score(truths, answers) == pytest.approx(cell, abs=0.003)


@pytest.mark.parametrize(
    ("model", "dataset", "all_nine"),
    [("BiomedCLIP", "CAMELYON17", 0.635), ("QuiltNet", "CAMELYON16", 0.402), ("QuiltNet", "CAMELYON17", 0.072)],
)
def test_gains_of_ensembles_are_relative(published: Published, model: str, dataset: str, all_nine: float) -> None:
    row = by_model(published("pathlang_main_table3_ensembling"))[model]
    single = row[f"{dataset}.L1"]
    # All nine together give one class, as one wording alone does.
    wordings = published("pathlang_appC_table7_v1_variant_acc")
    assert all_nine in [by_model(wordings)[model][f"{dataset}.v{v}"] for v in range(1, 6)]
    slack = ROUNDED / single * (1 + all_nine / single) * 100
    assert relative_changes(np.array([single, all_nine]))[1] == pytest.approx(row[f"{dataset}.L9"], abs=slack)
