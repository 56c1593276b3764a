"""A training's folder: what it may be, what is told of a damaged one, and that nothing finished in it is lost."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import build_cohort

from wsigym.baselines.training_curve import CURVE, read_curve
from wsigym.cohorts import Cohort
from wsigym.errors import InvalidArgumentError, RunError

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'wsigym[rl]'")
pytest.importorskip("sb3_contrib", reason="needs sb3-contrib: pip install 'wsigym[rl]'")

from sb3_contrib import MaskablePPO  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

from wsigym.baselines import train_ppo  # noqa: E402
from wsigym.baselines.navigator import navigator_env  # noqa: E402
from wsigym.baselines.ppo_policy import BEST, load_model  # noqa: E402
from wsigym.baselines.train_ppo import CHECKPOINTS, Trained, TrainSettings, train_navigator  # noqa: E402

PX = 36
QUICK = TrainSettings(px=PX, budgets=("2",), rollout=1)


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    slides = [{"slide_id": f"s{n}", "split": split} for n, split in enumerate(("train", "val"))]
    return Cohort.load(build_cohort(tmp_path_factory.mktemp("cohort") / "c", slides=slides))


class Scores:
    """Stands in for `mean_iou`: each policy has the score that it was given when it was first seen."""

    def __init__(self, *given: float) -> None:
        self.given, self.known = list(given), dict[str, float]()

    def __call__(self, policy: Any, *_: Any) -> dict[str, float]:
        every = torch.cat([parameter.detach().flatten() for parameter in policy.parameters()])
        key = hashlib.sha256(every.numpy().tobytes()).hexdigest()
        if key not in self.known:
            self.known[key] = self.given.pop(0)
        return {"10x": self.known[key], "all": self.known[key]}


@pytest.fixture(scope="module")
def finished(cohort: Cohort, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    """A training of 32 steps that did best after 16, and the scores of its policies."""
    out, scores = tmp_path_factory.mktemp("finished") / "t", Scores(0.5, 0.9, 0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_ppo, "mean_iou", scores)
        trained = train_navigator(cohort, out, steps=32, check_every=16, settings=QUICK)
    assert (trained.best_iou, trained.best_step) == (0.9, 16)
    return out, scores.known


@pytest.fixture
def training(finished: tuple[Path, dict[str, float]], tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished[0], tmp_path / "t"))


@pytest.fixture
def go_on(
    cohort: Cohort, finished: tuple[Path, dict[str, float]], training: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Trained]:
    """Train to so many steps in all; new policies get the scores given."""

    def train(steps: int, *given: float, **settings: Any) -> Trained:
        scores = Scores(*given)
        scores.known = finished[1]
        monkeypatch.setattr(train_ppo, "mean_iou", scores)
        asked = TrainSettings(**{**vars(QUICK), **settings})
        return train_navigator(cohort, training, steps=steps, check_every=16, settings=asked)

    return train


def content(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if path.name != ".lock"
    }


def step_of(file: Path) -> int:
    return int(load_model(file).num_timesteps)


# -- folders of others ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["best.zip", "curve.csv", "run.json", "cohort.json", "data/metadata.json", "notes"])
def test_a_folder_of_others_stays_as_it_is(cohort: Cohort, tmp_path: Path, name: str) -> None:
    out = tmp_path / "mine"
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("mine", encoding="utf-8")
    before = content(tmp_path)
    with pytest.raises(RunError, match="mine exists and is not an empty folder"):
        train_navigator(cohort, out, steps=0, settings=QUICK)
    assert content(tmp_path) == before
    assert not (out / ".lock").exists()


def test_the_folder_at_hand(cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--out ''`, such as of a variable that is not set."""
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="is not an empty folder"):
        train_navigator(cohort, Path(), steps=0, settings=QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_no_folder(cohort: Cohort, tmp_path: Path, out: str) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match=rf"{out} (exists and is not|cannot be).*[Nn]ame (a new|another) folder"):
        train_navigator(cohort, tmp_path / out, steps=0, settings=QUICK)
    assert content(tmp_path) == {"file": b"mine"}


def test_a_call_that_fails_leaves_nothing(cohort: Cohort, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for name in ("new", "there"):
        with pytest.raises(InvalidArgumentError, match="holds no demonstrations"):
            train_navigator(cohort, tmp_path / name, steps=0, demonstrations=[tmp_path / "none"], settings=QUICK)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_two_at_once(cohort: Cohort, tmp_path: Path) -> None:
    with (
        train_ppo._locked(tmp_path / "t"),
        pytest.raises(RunError, match="another process trains in this folder"),
    ):
        train_navigator(cohort, tmp_path / "t", steps=0, settings=QUICK)


# -- what is finished stays -------------------------------------------------------------------------------------------


def test_without_its_checkpoints_it_does_not_begin_again(training: Path, go_on: Callable[..., Trained]) -> None:
    shutil.rmtree(training / CHECKPOINTS)
    before = content(training)
    with pytest.raises(RunError, match=r"has best\.zip and curve\.csv, and no checkpoint to go on from"):
        go_on(32, 0.1)
    (training / BEST).unlink()
    with pytest.raises(RunError, match=r"has curve\.csv, and no checkpoint"):
        go_on(32, 0.1)
    assert content(training).items() <= before.items()


@pytest.mark.parametrize("cells", ["", "steps,seconds,val_all\n"])
def test_an_empty_curve(training: Path, go_on: Callable[..., Trained], cells: str) -> None:
    (training / CURVE).write_text(cells, encoding="utf-8")
    before = content(training)
    with pytest.raises(RunError, match=r"curve\.csv cannot be read \(.*it has no row.*best\.zip stays"):
        go_on(48, 0.6)
    assert content(training) == before


def test_without_its_curve_the_best_stays(training: Path, go_on: Callable[..., Trained]) -> None:
    (training / CURVE).unlink()
    before = (training / BEST).read_bytes()
    trained = go_on(48, 0.6)
    assert (trained.best_iou, trained.best_step) == (0.9, 16)
    assert (training / BEST).read_bytes() == before
    assert [(row["steps"], row["val_all"]) for row in read_curve(training / CURVE)] == [(32, 0.3), (48, 0.6)]
    trained = go_on(64, 0.95)
    assert (trained.best_iou, trained.best_step, step_of(training / BEST)) == (0.95, 64, 64)


def test_without_the_checkpoint_that_was_best_it_stays(training: Path, go_on: Callable[..., Trained]) -> None:
    """The steps are trained again, to a policy that is worse; its row says so, and not what the best is worth."""
    for steps in (16, 32):
        (training / CHECKPOINTS / f"{steps:09d}.zip").unlink()
    before = (training / BEST).read_bytes()
    for steps, scores in ((16, [0.6]), (32, [0.7])):
        trained = go_on(steps, *scores)
        assert trained.best_iou == 0.9
        assert (training / BEST).read_bytes() == before


def test_a_best_that_cannot_be_read(training: Path, go_on: Callable[..., Trained]) -> None:
    best = training / BEST
    best.write_bytes(best.read_bytes()[:5000])
    with pytest.raises(RunError, match=r"best\.zip is no policy that can be read .*Remove it, and it is made anew"):
        go_on(32)
    best.unlink()
    trained = go_on(32)
    assert (trained.best_iou, trained.best_step, step_of(best)) == (0.9, 16, 16)
    assert best.read_bytes() == (training / CHECKPOINTS / "000000016.zip").read_bytes()


def test_the_best_of_the_checkpoints_that_are_left(training: Path, go_on: Callable[..., Trained]) -> None:
    (training / BEST).unlink()
    (training / CHECKPOINTS / "000000016.zip").unlink()
    trained = go_on(32)
    assert (trained.best_iou, trained.best_step, step_of(training / BEST)) == (0.5, 0, 0)


def test_a_curve_with_another_column(training: Path, go_on: Callable[..., Trained]) -> None:
    lines = (training / CURVE).read_text(encoding="utf-8").splitlines()
    added = [lines[0] + ",note", *(line + ",1" for line in lines[1:])]
    (training / CURVE).write_text("\n".join(added) + "\n", encoding="utf-8")
    go_on(48, 0.6)
    assert [row["note"] for row in read_curve(training / CURVE)] == [1, 1, 1, None]


# -- checkpoints of others --------------------------------------------------------------------------------------------


def test_a_checkpoint_of_another_image_size(cohort: Cohort, training: Path, go_on: Callable[..., Trained]) -> None:
    vector = DummyVecEnv([lambda: navigator_env(cohort=cohort, px=40)] * train_ppo.ENVIRONMENTS)
    MaskablePPO("MultiInputPolicy", vector, n_steps=1, batch_size=16, device="cpu").save(
        training / CHECKPOINTS / "000000048.zip"
    )
    with pytest.raises(RunError, match=r"000000048\.zip .*images of 40 px .*not 36 px.* go on from the one before"):
        go_on(48)


def test_a_checkpoint_of_another_number_of_environments(
    cohort: Cohort, training: Path, go_on: Callable[..., Trained]
) -> None:
    vector = DummyVecEnv([lambda: navigator_env(cohort=cohort, px=PX)])
    MaskablePPO("MultiInputPolicy", vector, n_steps=16, batch_size=16, device="cpu").save(
        training / CHECKPOINTS / "000000048.zip"
    )
    with pytest.raises(RunError, match=r"000000048\.zip .*in 1 environments at a time, and not 36 px in 16"):
        go_on(48)


def test_the_only_checkpoint_is_broken(training: Path, go_on: Callable[..., Trained]) -> None:
    for steps in (16, 32):
        (training / CHECKPOINTS / f"{steps:09d}.zip").unlink()
    (training / CHECKPOINTS / "000000000.zip").write_bytes(b"")
    with pytest.raises(RunError, match=r"is no policy that can be read .*It is the only one: train in another folder"):
        go_on(32)


def test_files_that_are_no_checkpoint(training: Path, go_on: Callable[..., Trained]) -> None:
    (training / CHECKPOINTS / "1 copy 2.zip").write_bytes(b"")
    assert go_on(32).steps == 32


def test_a_network_that_is_no_number(training: Path, go_on: Callable[..., Trained]) -> None:
    model = load_model(training / BEST)
    with torch.no_grad():
        next(model.policy.parameters()).fill_(float("nan"))
    model.save(training / CHECKPOINTS / "000000048.zip")
    with pytest.raises(InvalidArgumentError, match=r"000000048\.zip: .*no numbers"):
        load_model(training / CHECKPOINTS / "000000048.zip")
    with pytest.raises(RunError, match=r"no numbers.* go on from the one before"):
        go_on(48)


# -- budgets ----------------------------------------------------------------------------------------------------------


def test_budgets_without_a_look(cohort: Cohort, tmp_path: Path) -> None:
    for budget in ("0", "2.5=0,10=0,40=0"):
        settings = TrainSettings(**{**vars(QUICK), "budgets": ("base", budget)})
        with pytest.raises(InvalidArgumentError, match=rf"budget {budget}.*finishing alone"):
            train_navigator(cohort, tmp_path / "t", steps=0, settings=settings)
    assert not (tmp_path / "t").exists()
