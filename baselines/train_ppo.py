"""Training a navigator: cloning demonstrations, then MaskablePPO on shaped reward. It reads references: it makes a
policy, and is none.

    train_navigator(cohort, Path("navigator"), demonstrations=[Path("demos")], steps=100_000)

A training folder holds

    training.json        what was asked for, and of which cohort
    checkpoints/*.zip    the policy after so many steps; the first is the clone
    best.zip             the one that did best on the validation split: what `ppo:FOLDER` plays; replaced by none but a
                         better one
    curve.csv            a row a checkpoint: the learning curve
    tensorboard/         the same and PPO's own numbers, for TensorBoard

Each environment has one of the budgets, so that one navigator plays under all. At first the value function alone
learns, as a clone's knows nothing, and its guesses would undo what was cloned.

Needs PyTorch, stable-baselines3, sb3-contrib and TensorBoard (extra `rl`). One thread: a training's numbers do not
depend on the number of cores, and several seeds train side by side.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import filelock
import gymnasium as gym
import numpy as np
import tensorboard  # type: ignore[import-untyped]  # noqa: F401  # if it lacks, that is told before all is cloned
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

import wsigym
from wsigym.cohorts import Cohort
from wsigym.cohorts.writing import write_text
from wsigym.envs import RoiBudget
from wsigym.errors import CohortError, InvalidArgumentError, RunError

from .checks import MAX_SEED, check_seed
from .cloning import MOVE_BATCHES, PLACE_BATCHES, Moves, clone
from .demonstrations import read_demonstrations
from .learned_scorer import one_thread
from .navigator import VIEW_PX, channels_first, navigator_env
from .navigator_net import NavigatorFeatures
from .ppo_policy import BEST, load_model, px_of
from .training_curve import CURVE, VALIDATION, read_curve, write_curve

__all__ = ["TrainSettings", "Trained", "mean_iou", "train_navigator"]

ENVIRONMENTS = 16
"""Episodes at a time."""

PPO: dict[str, Any] = {
    "batch_size": 128,
    "n_epochs": 4,
    "clip_range": 0.1,
    "ent_coef": 0.002,
    "gae_lambda": 0.95,
    "target_kl": 0.03,
    "policy_kwargs": {"features_extractor_class": NavigatorFeatures, "net_arch": [128, 64], "ortho_init": False},
}
"""Small steps, as it starts from a clone."""

VALUE_UPDATES = 3
"""The first updates, of which only the value function learns."""

CHECKPOINTS, SETTINGS, TENSORBOARD, LOCK = "checkpoints", "training.json", "tensorboard", ".lock"


@dataclass(frozen=True)
class TrainSettings:
    """What a training folder is trained with; the same when it goes on.

    Attributes:
        seed: of the network's start, batches, the queries drawn and the moves tried, 0 to 2^32 - 1.
        budgets: of the environments, in turn, each with 1 ROI or more; the first is what the policy is chosen by.
        magnifications: (lowest, highest) of the queries, or None for all.
        px: side of the images, 36 or more.
        gamma: discount, 0 to 1.
        learning_rate: of PPO, above 0.
        rollout: steps of each of the 16 environments between two updates of PPO, 1 or more.
        place_batches, move_batches: of cloning.
    """

    seed: int = 0
    budgets: tuple[str, ...] = ("base", "tight", "loose")
    magnifications: tuple[float, float] | None = None
    px: int = VIEW_PX
    gamma: float = 0.99
    learning_rate: float = 1e-4
    rollout: int = 128
    place_batches: int = PLACE_BATCHES
    move_batches: int = MOVE_BATCHES

    @property
    def queries(self) -> dict[str, Any] | None:
        return None if self.magnifications is None else {"magnification": self.magnifications}


@dataclass(frozen=True)
class Trained:
    """A training so far: its steps, the mean IoU of the best policy on val, at which step that was, and seconds."""

    folder: Path
    steps: int
    best_iou: float
    best_step: int
    seconds: float


Progress = Callable[[int, int, str], None]
"""Called with what is done, of what in all, and what that is."""


def train_navigator(
    cohort: Cohort,
    out: Path,
    *,
    steps: int,
    demonstrations: Sequence[Path] = (),
    settings: TrainSettings | None = None,
    check_every: int = 6_144,
    progress: Progress | None = None,
) -> Trained:
    """Train on the split train, choose on val, and write the folder `out`, which is new, empty, or has a training of
    the same arguments, which then goes on where it stood.

    Args:
        steps: of the environments, in all; 0 clones only.
        demonstrations: folders of `write_demonstrations`, with images of `settings.px`; none: PPO starts from nothing.
        settings: None: the defaults.
        check_every: steps between checkpoints. Each is played on all queries of val.

    A training that was not interrupted is the same for the same arguments, cohort and versions.

    Raises `InvalidArgumentError` for values out of range, `CohortError` for slides that do not bear their annotations,
    `RunError` for a folder of something else, that another process trains in, or whose checkpoints, curve or best
    policy are lost or broken, and for a network that grows without bounds.
    """
    settings = settings or TrainSettings()
    if min(steps, settings.place_batches, settings.move_batches) < 0 or check_every < 1:
        raise InvalidArgumentError(
            f"steps {steps}, batches {settings.place_batches} and {settings.move_batches}: each is 0 or more; "
            f"check_every {check_every}: 1 or more."
        )
    check_seed(settings.seed)
    if settings.rollout < 1:
        raise InvalidArgumentError(
            f"rollout is {settings.rollout}; an update takes 1 step of each environment or more."
        )
    if not 0 < settings.learning_rate < math.inf:
        raise InvalidArgumentError(f"learning_rate is {settings.learning_rate:g}; it is above 0, such as 1e-4.")
    if not settings.budgets:
        raise InvalidArgumentError("no budget was given to train with; name one or more, such as base.")
    for budget in settings.budgets:
        if RoiBudget.of(budget).most == 0:
            raise InvalidArgumentError(
                f"budget {budget} has no ROI to look at, so that finishing alone could be learned; give 1 or more."
            )
    for split in ("train", "val"):
        if faults := cohort.check_slides(split):
            raise CohortError(faults)
    _env_of(cohort, "val", settings.budgets[0], settings).close()  # what is wrong with it is told before cloning
    with _locked(out), one_thread():
        training = _Training(cohort, out, settings, progress or (lambda done, asked, what: None))
        training.begin(demonstrations)
        training.go_on(steps, check_every)
        return training.result()


def mean_iou(
    policy: MaskableActorCriticPolicy,
    cohort: Cohort,
    split: str,
    budget: str,
    settings: TrainSettings,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Mean IoU by magnification such as "10x", and of all queries as "all", of the likeliest moves."""
    env = _env_of(cohort, split, budget, settings)
    scores: dict[str, list[float]] = {}
    query_ids = env.get_wrapper_attr("drawn_query_ids")
    for done, query_id in enumerate(query_ids, 1):
        observation, info = env.reset(options={"query_id": query_id})
        over = False
        while not over:
            mask = info["action_mask"].astype(np.bool_)
            action, _ = policy.predict(channels_first(observation), deterministic=True, action_masks=mask)
            observation, _, over, _, info = env.step(int(action))
        scores.setdefault(f"{info['magnification']:g}x", []).append(info["iou"])
        if progress:
            progress(done, len(query_ids), f"queries of {split}")
    env.close()
    every = [score for found in scores.values() for score in found]
    by_magnification = sorted(scores, key=lambda name: float(name[:-1]))
    return {name: float(np.mean(scores[name])) for name in by_magnification} | {"all": float(np.mean(every))}


def _env_of(cohort: Cohort, split: str, budget: str, settings: TrainSettings) -> gym.Env[Any, Any]:
    return navigator_env(cohort=cohort, split=split, budget=budget, px=settings.px, queries=settings.queries)


class _Training:
    def __init__(self, cohort: Cohort, out: Path, settings: TrainSettings, progress: Progress) -> None:
        self._cohort, self._out, self._settings, self._progress = cohort, out, settings, progress
        self._clock = time.perf_counter()
        self._env = _TimedEnv(
            [self._make(settings.budgets[number % len(settings.budgets)]) for number in range(ENVIRONMENTS)]
        )

    def _make(self, budget: str) -> Callable[[], Any]:
        settings = self._settings
        arguments = {"split": "train", "budget": budget, "reward": "shaped", "gamma": settings.gamma}
        return lambda: navigator_env(cohort=self._cohort, px=settings.px, queries=settings.queries, **arguments)

    def begin(self, demonstrations: Sequence[Path]) -> None:
        """A new training, with its clone as the first checkpoint; or the last checkpoint of the one that is there."""
        asked = {
            "settings": asdict(self._settings),
            "demonstrations": [str(path) for path in demonstrations],
            "cohort": self._cohort.name,
            "cohort_sha256": self._cohort.sha256,
        }
        asked = json.loads(json.dumps(asked))
        file = self._out / SETTINGS
        if file.exists():
            _check_same(file, asked)
        found = [path for path in (self._out / CHECKPOINTS).glob("*.zip") if path.stem.isdecimal()]
        self._rows: list[dict[str, Any]] = []
        self._best_iou, self._best_step = -1.0, 0
        if found:
            self._resume(sorted(found, key=_steps_of))
        else:
            if finished := [name for name in (BEST, CURVE) if (self._out / name).exists()]:
                raise RunError(
                    f"{self._out} has {' and '.join(finished)}, and no checkpoint to go on from. Put them back into "
                    f"{self._out / CHECKPOINTS}, or train in another folder."
                )
            self._model = self._new(demonstrations)
        if not file.exists():  # not sooner, so that demonstrations that cannot be cloned leave no training behind
            write_text(file, json.dumps(asked | {"version": wsigym.__version__}, indent=2) + "\n")
        self._model.set_logger(configure(str(self._out / TENSORBOARD), ["tensorboard"]))

    def _resume(self, checkpoints: Sequence[Path]) -> None:
        last, done = checkpoints[-1], _steps_of(checkpoints[-1])
        before = "Remove that checkpoint to go on from the one before."
        only = "It is the only one: train in another folder."
        self._model = self._loaded(last, before if len(checkpoints) > 1 else only)
        self._rows = [row for row in _curve_so_far(self._out / CURVE) if row["steps"] <= done]
        self._restore_best()
        # The best is scored anew: the curve may have lost its row, or have one of another policy after as many steps,
        # where a checkpoint was removed and trained again.
        if (self._out / BEST).exists():
            best = self._loaded(
                self._out / BEST, "Remove it, and it is made anew from the best checkpoint that is still there."
            )
            self._best_iou, self._best_step = self._val(best)["all"], best.num_timesteps
        self._model.set_env(self._monitored())
        self._model.set_random_seed((self._settings.seed + done) % (MAX_SEED + 1))

    def _loaded(self, file: Path, advice: str) -> MaskablePPO:
        """A policy of this training. Raises `RunError` with `advice` where the file is none."""
        try:
            model = load_model(file)
        except InvalidArgumentError as error:
            raise RunError(f"{error} {advice}") from None
        found, wanted = (px_of(model), model.n_envs), (self._settings.px, ENVIRONMENTS)
        if found != wanted:
            raise RunError(
                f"{file} is of another training: images of {found[0]} px in {found[1]} environments at a time, and not "
                f"{wanted[0]} px in {wanted[1]}. {advice}"
            )
        return model

    def _new(self, demonstrations: Sequence[Path]) -> MaskablePPO:
        settings = self._settings
        seed = settings.seed
        model = MaskablePPO(
            "MultiInputPolicy",
            self._monitored(),
            n_steps=settings.rollout,
            gamma=settings.gamma,
            learning_rate=settings.learning_rate,
            seed=seed,
            device="cpu",
            **PPO,
        )
        if demonstrations:
            played = (each for path in demonstrations for each in read_demonstrations(path, cohort=self._cohort))
            moves = Moves.of(played, self._cohort)
            _check_size(moves, settings.px)
            clone(
                model.policy,
                moves,
                place_batches=settings.place_batches,
                move_batches=settings.move_batches,
                seed=seed,
                progress=lambda done, asked: self._progress(done, asked, "batches of cloning"),
            )
        return model

    def _monitored(self) -> VecMonitor:
        return VecMonitor(self._env)

    def go_on(self, steps: int, check_every: int) -> None:
        """Learn until so many steps are done, with a checkpoint now and then, and at the end."""
        if not self._rows or self._rows[-1]["steps"] < self._model.num_timesteps:  # killed before its row was written
            self.check()
        try:
            while self._model.num_timesteps < steps:
                before = self._model.num_timesteps
                until = min(steps, before + check_every)
                watch = _Watch(
                    lambda done: self._progress(done, steps, "steps"),
                    value_steps=VALUE_UPDATES * ENVIRONMENTS * self._settings.rollout,
                )
                self._env.begin_timing()
                self._model.learn(until - before, callback=watch, reset_num_timesteps=False, tb_log_name="")
                self.check()
        except (KeyboardInterrupt, SystemExit):
            if self._model.num_timesteps > self._rows[-1]["steps"]:
                self.check()
            raise
        except ValueError:  # a distribution of moves that are no numbers
            if all(bool(torch.isfinite(parameter).all()) for parameter in self._model.policy.parameters()):
                raise
            raise RunError(
                f"{self._out}: the network grew without bounds after {self._rows[-1]['steps']} steps. Train in another "
                f"folder with a learning rate below {self._settings.learning_rate:g}."
            ) from None

    def check(self) -> None:
        """Write a checkpoint, and what it is worth."""
        done, share = self._model.num_timesteps, self._env.share()
        scores = self._val(self._model)
        before = self._rows[-1] if self._rows else {"seconds": 0.0}
        seconds = before["seconds"] + time.perf_counter() - self._clock
        self._clock = time.perf_counter()
        returns = [episode["r"] for episode in self._model.ep_info_buffer or ()]
        row = {
            "steps": done,
            "seconds": round(seconds, 1),
            "environment_share": None if share is None else round(share, 4),
            "train_return": round(float(np.mean(returns)), 4) if returns else None,
            **{f"{VALIDATION}{name}": round(score, 4) for name, score in scores.items()},
        }
        self._save(self._checkpoint(done))
        if scores["all"] > self._best_iou:
            self._save(self._out / BEST)
            self._best_iou, self._best_step = scores["all"], done
        self._rows.append(row)
        write_curve(self._out / CURVE, self._rows)
        for name, value in row.items():
            if value is not None:
                self._model.logger.record(f"wsigym/{name}", value)
        self._model.logger.dump(done)

    def _val(self, model: MaskablePPO) -> dict[str, float]:
        settings = self._settings
        return mean_iou(model.policy, self._cohort, "val", settings.budgets[0], settings, self._progress)

    def _save(self, file: Path) -> None:
        file.parent.mkdir(exist_ok=True)
        beside = file.with_suffix(".new.zip")
        self._model.save(beside)
        beside.replace(file)

    def _restore_best(self) -> None:
        """Make `best.zip` anew where somebody removed it, of the best checkpoint that is still there."""
        there = [row for row in self._rows if self._checkpoint(row["steps"]).exists()]
        if there and not (self._out / BEST).exists():
            beside = (self._out / BEST).with_suffix(".new.zip")
            shutil.copyfile(self._checkpoint(max(there, key=lambda row: row["val_all"])["steps"]), beside)
            beside.replace(self._out / BEST)

    def _checkpoint(self, steps: int) -> Path:
        return self._out / CHECKPOINTS / f"{steps:09d}.zip"

    def result(self) -> Trained:
        last = self._rows[-1]
        return Trained(self._out, last["steps"], round(self._best_iou, 4), self._best_step, last["seconds"])


class _Watch(BaseCallback):
    """Tells of progress, and lets the value function alone learn for the first `value_steps`."""

    def __init__(self, told: Callable[[int], None], value_steps: int) -> None:
        super().__init__()
        self._told, self._value_steps = told, value_steps

    def _on_rollout_start(self) -> None:
        for name, parameter in self.model.policy.named_parameters():
            parameter.requires_grad_("value" in name or self.num_timesteps >= self._value_steps)

    def _on_step(self) -> bool:
        self._told(self.num_timesteps)
        return True


class _TimedEnv(DummyVecEnv):
    """Knows its share of the time since `begin_timing`."""

    _since: float | None = None

    def begin_timing(self) -> None:
        self._stepping, self._since = 0.0, time.perf_counter()

    def step_wait(self) -> VecEnvStepReturn:
        started = time.perf_counter()
        stepped = super().step_wait()
        self._stepping += time.perf_counter() - started
        return stepped

    def share(self) -> float | None:
        """0..1; None before the first step."""
        return None if self._since is None else self._stepping / (time.perf_counter() - self._since)


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Hold the training folder; one that was made for it and is empty at the end is removed.

    Raises `RunError` where another process holds it, it has files of something else, or it cannot be made.
    """
    lock = filelock.FileLock(out / LOCK)
    try:
        is_new = not out.exists()
        names = set() if is_new else {path.name for path in out.iterdir()}
        if names - {LOCK} and SETTINGS not in names:
            raise RunError(
                f"{out} exists and is not an empty folder, nor one of a training, which has {SETTINGS}. Name a new "
                "folder, or remove it first."
            )
        out.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise RunError(f"{out}: another process trains in this folder; wait for it, or name another folder.") from None
    except OSError as error:
        raise RunError(f"{out} cannot be a training's folder ({error}). Name another folder.") from None
    try:
        yield
    finally:
        with suppress(OSError):  # such as where another process is in it by now
            if all(path.name == LOCK for path in out.iterdir()):
                (out / LOCK).unlink()
                if is_new:
                    out.rmdir()
        lock.release()


def _check_same(file: Path, asked: dict[str, Any]) -> None:
    """Raises `RunError` where the folder's training was asked for something else."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        there = {**found, **found["settings"]}
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise RunError(f"{file} cannot be read ({error}); train in another folder.") from None
    wanted = {**asked, **asked["settings"]}
    differing = [
        f"{name}: {there.get(name)!r}, now {value!r}"
        for name, value in wanted.items()
        if name != "settings" and there.get(name) != value
    ]
    if differing:
        raise RunError(
            f"{file.parent} holds a training of something else: {'; '.join(differing)}. Give the same again to go on "
            "with it, or name another folder."
        )


def _check_size(moves: Moves, px: int) -> None:
    found = moves.observations["overview"].shape[1]
    if found != px:
        raise InvalidArgumentError(
            f"the demonstrations have images of {found} px, and the navigator is to see {px}; write them with "
            f"--view-px {px}, or train with --view-px {found}."
        )


def _steps_of(checkpoint: Path) -> int:
    return int(checkpoint.stem)


def _curve_so_far(file: Path) -> list[dict[str, Any]]:
    """Its rows, if there is one. Raises `RunError` where they cannot be read."""
    if not file.exists():
        return []
    try:
        rows = read_curve(file)
        if not rows:
            raise ValueError("it has no row")
        return rows
    except (OSError, ValueError, TypeError) as error:
        raise RunError(
            f"{file} cannot be read ({type(error).__name__}: {error}). Put back a whole one; or remove it, and a new "
            f"curve begins at the last checkpoint, while {BEST} stays until a policy does better."
        ) from None
