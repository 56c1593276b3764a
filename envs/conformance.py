"""What every environment has to keep, as one call. A new environment inherits its whole test in three lines:

    def test_it_conforms() -> None:
        check_environment("mine/Env-v0")

Each rule plays the environment as `gymnasium.make` makes it, wrappers on, and is blind to what the task is. All rules
run; the error names those that are broken. Episodes are of random actions, and are cut off after `max_steps`.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import itertools
import json
import logging
import os
import pickle
import random
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from wsigym.errors import ConformanceError, UnknownNameError

from .leaks import Secrets, find_secrets, numbers_in, walk

__all__ = ["RULES", "check_environment"]

Env = gym.Env[Any, Any]
Described = dict[str, str]
"""What was seen at one time: places such as `observation['view']`, each with its content as a text."""

Places = dict[str, list[tuple[str, Any]]]
"""What can change in an observation and in an info, with its places."""

SEEDS = 5
"""Episodes that a rule plays, of successive seeds."""

START_SEEDS = 12
"""Seeds over which starts have to differ."""

VECTOR_STEPS = 12

KEPT_CALLS = 10
"""Calls back to which returned memory is compared."""

WRAPPERS_WARNING = "is different from the unwrapped version"


@dataclass(frozen=True)
class Subject:
    """The environment under test, and how it is tested."""

    spec: EnvSpec
    seed: int
    max_steps: int
    secrets: Secrets | None
    shown: tuple[str, ...]

    def make(self, **more: Any) -> Env:
        return gym.make(copy.deepcopy(self.spec), **more)

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + SEEDS)


def check_environment(
    env_id: str | EnvSpec,
    kwargs: Mapping[str, Any] | None = None,
    *,
    rules: Iterable[str] | None = None,
    secrets: Secrets | None = None,
    shown: Iterable[str] = ("search_box", "target"),
    seed: int = 0,
    max_steps: int = 200,
) -> None:
    """Raise `ConformanceError` unless a registered environment keeps every rule (or those named in `rules`).

    `kwargs` go to `gymnasium.make`. `secrets` are the marks that its references carry (see `wsigym.envs.leaks`); the
    rule "leaks" is left out without them. What an info holds under the keys `shown` belongs to the task, and may be
    seen although it is a secret elsewhere. Random actions are seeded with `seed`; the global generators of Python and
    NumPy are moved on, to show that they do not matter.
    """
    spec = copy.deepcopy(gym.spec(env_id) if isinstance(env_id, str) else env_id)
    spec.kwargs.update(kwargs or {})
    subject = Subject(spec, seed, max_steps, secrets, tuple(shown))
    broken = {}
    for name in RULES if rules is None else rules:
        if name not in RULES:
            raise UnknownNameError("rule", name, RULES)
        if name == "leaks" and secrets is None:
            continue
        try:
            RULES[name](subject)
        except _Broken as error:
            broken[name] = str(error)
        except Exception as error:  # the environment's own: whatever it is, the rule is not kept
            broken[name] = f"{type(error).__name__}: {error}"
    if broken:
        raise ConformanceError(spec.id, broken)


class _Broken(Exception):  # noqa: N818  # says of a rule that it is broken
    """A rule is broken; the message says how."""


# -- episodes -----------------------------------------------------------------------------------------------------


def _describe(output: Mapping[str, Any]) -> Described:
    return {place: _text(leaf) for place, leaf in _leaves(output)}


def _leaves(output: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in output.items():
        yield from walk(value, name)


def _text(leaf: Any) -> str:
    if not isinstance(leaf, np.ndarray):
        return f"{type(leaf).__name__} {leaf!r}"
    kind = f"{leaf.dtype} {leaf.shape}"
    if leaf.size <= 8:
        return f"{kind} {leaf.tolist()}"
    return f"{kind} sha256 {hashlib.sha256(np.ascontiguousarray(leaf).tobytes()).hexdigest()[:16]}"


def _outputs(env: Env, seed: int, max_steps: int, actions_seed: int | None = None) -> Iterator[dict[str, Any]]:
    """An episode of random actions, as what each call returned by name. `seed` is the actions' too, by default."""
    env.action_space.seed(seed if actions_seed is None else actions_seed)
    observation, info = env.reset(seed=seed)
    yield {"observation": observation, "info": info}
    yield from _steps(env, max_steps)


def _steps(env: Env, max_steps: int) -> Iterator[dict[str, Any]]:
    for _ in range(max_steps):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        yield {
            "observation": observation,
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
            "info": info,
        }
        if terminated or truncated:
            return


def _episode(env: Env, seed: int, max_steps: int) -> list[Described]:
    return [_describe(output) for output in _outputs(env, seed, max_steps)]


def _episodes(spec: EnvSpec, seeds: Iterable[int], max_steps: int) -> list[list[Described]]:
    env = gym.make(spec)
    episodes = [_episode(env, seed, max_steps) for seed in seeds]
    env.close()
    return episodes


def _time(number: int) -> str:
    return f"step {number}" if number else "reset"


def _must_equal(first: list[Described], second: list[Described], what: str) -> None:
    nothing: Described = {}
    for number, (one, other) in enumerate(itertools.zip_longest(first, second, fillvalue=nothing)):
        for place in [*one, *(place for place in other if place not in one)]:
            before, after = one.get(place, "nothing"), other.get(place, "nothing")
            if before != after:
                raise _Broken(f"{what}: {_time(number)}: {place} is {before}, then {after}")


# -- rules --------------------------------------------------------------------------------------------------------


def _gymnasium(subject: Subject) -> None:
    """`gymnasium.utils.env_checker.check_env` passes without a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env = subject.make()
        check_env(env)
        env.close()
    told = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
    told = [message for message in told if WRAPPERS_WARNING not in message]
    if told:
        raise _Broken("; ".join(told))


def _determinism(subject: Subject) -> None:
    """Same seed, same actions: same observations, rewards and infos; again, in a new instance, in another process."""
    spec, steps = subject.spec, subject.max_steps
    env = subject.make()
    first = [_episode(env, seed, steps) for seed in subject.seeds]
    for _ in range(97):
        random.random()
        np.random.random()  # noqa: NPY002  # the global generators must not matter, so they are moved on
    again = [_episode(env, seed, steps) for seed in reversed(subject.seeds)][::-1]
    env.close()
    others = {
        "played again": again,
        "in another instance": _episodes(copy.deepcopy(spec), subject.seeds, steps),
        "in another process": _episodes_elsewhere(spec, subject.seeds, steps),
    }
    for what, episodes in others.items():
        for seed, one, other in zip(subject.seeds, first, episodes, strict=True):
            _must_equal(one, other, f"{what}, seed {seed}")


def _episodes_elsewhere(spec: EnvSpec, seeds: range, max_steps: int) -> list[list[Described]]:
    code = (
        "import json, pickle, sys\n"
        "sys.path[:] = json.loads(sys.stdin.buffer.readline())\n"
        "from wsigym.envs import conformance\n"
        "print(json.dumps(conformance._episodes(*pickle.loads(sys.stdin.buffer.read()))))\n"
    )
    sent = json.dumps(sys.path).encode() + b"\n" + pickle.dumps((spec, seeds, max_steps))
    settings = {**os.environ, "PYTHONHASHSEED": "4711"}  # the order of sets must not matter
    done = subprocess.run([sys.executable, "-c", code], input=sent, env=settings, capture_output=True, check=False)
    if done.returncode:
        raise _Broken(f"in another process: {done.stderr.decode(errors='replace').strip().split(chr(10))[-1]}")
    episodes: list[list[Described]] = json.loads(done.stdout.decode().strip().split("\n")[-1])
    return episodes


def _fresh_memory(subject: Subject) -> None:
    """No two calls return shared memory, and writing to what was returned changes nothing."""
    env = subject.make()
    for seed in subject.seeds:
        clean = _episode(env, seed, subject.max_steps)
        spoilt: list[Described] = []
        kept: deque[tuple[int, Places]] = deque(maxlen=KEPT_CALLS)
        for number, output in enumerate(_outputs(env, seed, subject.max_steps)):
            spoilt.append(_describe(output))
            places = {name: list(_changeable(output[name], name)) for name in ("observation", "info")}
            for earlier, kept_places in kept:
                shared = _shared(kept_places, places)
                if shared:
                    calls = f"seed {seed}: {_time(earlier)} and {_time(number)}"
                    raise _Broken(f"{calls} return the same memory in {shared}; return a copy each time")
            kept.append((number, places))
            _spoil([value for name in places for _, value in places[name]])
        _must_equal(clean, spoilt, f"seed {seed}, after writing to what was returned before")
    env.close()


def _shared(earlier: Places, later: Places) -> str:
    """A place of `later` that shares memory, or a container that can change, with `earlier`; "" if there is none."""
    for name in later:
        identities = {id(value) for _, value in earlier[name]}
        arrays = [value for _, value in earlier[name] if isinstance(value, np.ndarray)]
        for place, value in later[name]:
            array = isinstance(value, np.ndarray)
            if id(value) in identities or (array and any(np.shares_memory(each, value) for each in arrays)):
                return place
    return ""


def _changeable(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The arrays in nested data, and the dicts, lists and sets around them."""
    if isinstance(value, np.ndarray | dict | list | set):
        yield where, value
    if isinstance(value, Mapping):
        for key in value:
            yield from _changeable(value[key], f"{where}[{key!r}]")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _changeable(each, f"{where}[{index}]")


def _spoil(values: list[Any]) -> None:
    for value in values:
        if not isinstance(value, np.ndarray):
            value.clear()
        elif value.flags.writeable and value.dtype.kind in "iufb":
            value[...] = 1


def _in_space(subject: Subject) -> None:
    """Observations lie in their space with its dtypes; every number is finite; ends are bools."""
    env = subject.make()
    for seed in subject.seeds:
        for number, output in enumerate(_outputs(env, seed, subject.max_steps)):
            time = f"seed {seed}, {_time(number)}"
            for place, leaf in _leaves(output):
                numbers = leaf if isinstance(leaf, np.ndarray | np.number | float) else 0
                if np.asarray(numbers).dtype.kind in "fc" and not np.isfinite(numbers).all():
                    raise _Broken(f"{time}: {place} is not finite: {_text(leaf)}")
            outside = _outside(env.observation_space, output["observation"], "observation")
            if outside:
                raise _Broken(f"{time}: {outside}")
            if not number:
                continue
            if not isinstance(output["reward"], int | float | np.number):
                raise _Broken(f"{time}: the reward is {_text(output['reward'])}; a number is needed")
            for end in ("terminated", "truncated"):
                if not isinstance(output[end], bool):
                    raise _Broken(f"{time}: {end} is {_text(output[end])}; a bool is needed")
    env.close()


def _outside(space: spaces.Space[Any], value: Any, where: str) -> str:
    """What of `value` lies outside `space`, "" if nothing."""
    if isinstance(space, spaces.Dict) and isinstance(value, Mapping) and set(space.spaces) == set(value):
        found = (_outside(space[name], value[name], f"{where}[{name!r}]") for name in space.spaces)
        return next(filter(None, found), "")
    if isinstance(space, spaces.Box) and isinstance(value, np.ndarray) and value.dtype != space.dtype:
        return f"{where} is {_text(value)}; its space has dtype {space.dtype}"
    return "" if value in space else f"{where} is {_text(value)}, outside {space}"


def _starts_differ(subject: Subject) -> None:
    """Different seeds give different starts."""
    env = subject.make()
    seeds = range(subject.seed, subject.seed + START_SEEDS)
    starts = []
    for seed in seeds:
        observation, info = env.reset(seed=seed)
        starts.append(_describe({"observation": observation, "info": info}))
    env.close()
    if all(start == starts[0] for start in starts):
        raise _Broken(f"the start is the same for all seeds from {seeds.start} to {seeds.stop - 1}")


def _observations_change(subject: Subject) -> None:
    """What is done changes what is seen: some observation of some random episode differs from the first."""
    env = subject.make()
    for seed in range(subject.seed, subject.seed + START_SEEDS):
        seen = [_describe({"observation": output["observation"]}) for output in _outputs(env, seed, subject.max_steps)]
        if any(later != seen[0] for later in seen):
            env.close()
            return
    raise _Broken(f"in {START_SEEDS} random episodes no observation differed from the episode's first one")


def _pickling(subject: Subject) -> None:
    """A copy through pickle, before and in the middle of an episode, goes on as the original does."""
    fresh = subject.make()
    before = pickle.loads(pickle.dumps(fresh))
    for seed in subject.seeds:
        episode = _episode(fresh, seed, subject.max_steps)
        _must_equal(episode, _episode(before, seed, subject.max_steps), f"a pickled copy, seed {seed}")
        for played in range(len(episode) - 1):
            list(itertools.islice(_outputs(fresh, seed, subject.max_steps), played + 1))
            copied = pickle.loads(pickle.dumps(fresh))
            rest = [_describe(output) for output in _steps(copied, len(episode) - 1 - played)]
            _must_equal(
                episode[played + 1 :], rest, f"a copy pickled after {played} steps, seed {seed}, counted from there"
            )
            if played == 3:
                break
    fresh.close()


def _vector(subject: Subject) -> None:
    """Sync and Async vector environments, shared memory or not, agree in all three autoreset modes."""
    makers = [partial(gym.make, copy.deepcopy(subject.spec)) for _ in range(2)]
    for mode in AutoresetMode:
        expected = _vector_outputs(SyncVectorEnv(makers, autoreset_mode=mode), subject.seed)
        for shared_memory in (True, False):
            with warnings.catch_warnings():
                # AsyncVectorEnv forks; from Python 3.12 on, doing so beside any native thread warns.
                warnings.filterwarnings("ignore", ".*multi-threaded.*", DeprecationWarning)
                envs = AsyncVectorEnv(makers, shared_memory=shared_memory, autoreset_mode=mode)
            found = _vector_outputs(envs, subject.seed)
            _must_equal(expected, found, f"Sync, then Async with shared_memory={shared_memory}, autoreset {mode.name}")


def _vector_outputs(envs: VectorEnv[Any, Any, Any], seed: int) -> list[Described]:
    try:
        envs.action_space.seed(seed)
        observation, info = envs.reset(seed=seed)
        described = [_describe({"observation": observation, "info": info})]
        for _ in range(VECTOR_STEPS):
            observation, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
            output = {"observation": observation, "reward": reward, "terminated": terminated, "truncated": truncated}
            described.append(_describe({**output, "info": info}))
            over = np.logical_or(terminated, truncated)
            if envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED and over.any():
                observation, info = envs.reset(options={"reset_mask": over})
                described.append(_describe({"observation": observation, "info": info}))
        return described
    finally:
        envs.close()


def _spec(subject: Subject) -> None:
    """The spec survives JSON, and makes the same environment from it."""
    env = subject.make()
    if env.spec is None:
        raise _Broken("the environment has no spec; make it with gymnasium.make")
    copied = EnvSpec.from_json(env.spec.to_json())
    expected = _episode(env, subject.seed, subject.max_steps)
    env.close()
    (found,) = _episodes(copied, [subject.seed], subject.max_steps)
    _must_equal(expected, found, "made from the spec's JSON")


def _closing(subject: Subject) -> None:
    """`close()` is harmless when repeated, before and after an episode."""
    for played in (False, True):
        env = subject.make()
        if played:
            _episode(env, subject.seed, subject.max_steps)
        env.close()
        env.close()


def _rendering(subject: Subject) -> None:
    """Every render mode works at each step, with frames of one shape, and looking changes nothing."""
    plain = subject.make()
    expected = _episode(plain, subject.seed, subject.max_steps)
    modes = plain.metadata.get("render_modes", [])
    plain.close()
    for mode in modes:
        env = subject.make(render_mode=mode)
        shapes, seen = set(), []
        for output in _outputs(env, subject.seed, subject.max_steps):
            frame: Any = env.render()
            seen.append(_describe(output))
            if mode == "rgb_array":
                ok = isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.shape[2:] == (3,)
                if not ok:
                    raise _Broken(f"render_mode {mode!r} gives {_text(frame)}; uint8 (height, width, 3) is needed")
                shapes.add(frame.shape)
        if len(shapes) > 1:
            raise _Broken(f"render_mode {mode!r} gives frames of different shapes: {sorted(shapes)}")
        _must_equal(expected, seen, f"without and with render_mode {mode!r}")
        env.close()


def _ending(subject: Subject) -> None:
    """Random episodes end, and `step()` after a terminated one raises; `reset()` then starts a new one."""
    env = subject.make()
    for seed in subject.seeds:
        (last,) = deque(_outputs(env, seed, subject.max_steps), maxlen=1)
        if not (last["terminated"] or last["truncated"]):
            raise _Broken(f"an episode of random actions, seed {seed}, did not end within {subject.max_steps} steps")
        if last["terminated"]:
            try:
                env.step(env.action_space.sample())
            except Exception:
                continue
            raise _Broken(f"step() after the episode of seed {seed} terminated raised nothing")
    env.close()


def _quiet(subject: Subject) -> None:
    """Making, playing and closing print nothing and warn of nothing."""
    with _listening() as heard:
        _episodes(copy.deepcopy(subject.spec), subject.seeds, subject.max_steps)
    said = {name: text for name, text in heard().items() if text and name != "log"}
    if said:
        raise _Broken("; ".join(f"{name}: {text.strip()[:200]}" for name, text in said.items()))


@contextlib.contextmanager
def _listening() -> Iterator[Callable[[], dict[str, str]]]:
    """What is printed, warned and logged meanwhile, by name."""
    out, err, log = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            warnings.simplefilter("always")
            yield lambda: {
                "stdout": out.getvalue(),
                "stderr": err.getvalue(),
                "log": log.getvalue(),
                "warnings": "\n".join(str(warning.message) for warning in caught),
            }
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


def _leaks(subject: Subject) -> None:
    """Nothing that an agent can see holds a secret.

    A secret text counts wherever it stands. A secret number may come from a random action, so it counts where two
    different courses of actions from one start both show it in the same place.
    """
    first, second = _sightings(subject, 1), _sightings(subject, 2)
    texts = {found for found in first | second if isinstance(found[1], str)}
    leaked = sorted(texts | (first & second), key=str)
    if leaked:
        place, secret = leaked[0]
        raise _Broken(f"{place} holds {secret!r} ({len(leaked)} such places in all)")


def _sightings(subject: Subject, course: int) -> set[tuple[str, str | int]]:
    """Every secret seen in episodes of one course of actions, with its place."""
    assert subject.secrets is not None
    found: set[tuple[str, str | int]] = set()
    with _listening() as heard:
        env = subject.make()
        if env.metadata.get("render_modes"):
            env.close()
            env = subject.make(render_mode=env.metadata["render_modes"][0])
        for name, value in (
            ("observation_space", repr(env.observation_space)),
            ("action_space", repr(env.action_space)),
            ("metadata", env.metadata),
            ("repr", [repr(env), repr(env.unwrapped)]),
        ):
            found.update(find_secrets(value, subject.secrets, name))
        for seed in subject.seeds:
            secrets = subject.secrets
            for number, output in enumerate(_outputs(env, seed, subject.max_steps, 1000 * course + seed)):
                if not number:
                    secrets = secrets.without(_task_numbers([output["info"].get(key) for key in subject.shown]))
                if env.render_mode is not None:
                    output["frame"] = env.render()
                for name in ("observation", "info", "frame"):
                    found.update(find_secrets(output.get(name), secrets, f"seed {seed}: {name}"))
        env.close()
    for name, text in heard().items():
        found.update(find_secrets(text, subject.secrets, name))
    return found


def _task_numbers(shown: list[Any]) -> set[int]:
    """The numbers of what the task shows, and those of the far corners of its boxes (x, y, width, height)."""
    numbers = numbers_in(shown)
    for value in shown:
        if isinstance(value, list | tuple) and len(value) == 4:
            x, y, width, height = value
            numbers |= {x + width, y + height}
    return numbers


RULES: Mapping[str, Callable[[Subject], None]] = {
    "gymnasium": _gymnasium,
    "determinism": _determinism,
    "fresh memory": _fresh_memory,
    "in space": _in_space,
    "starts differ": _starts_differ,
    "observations change": _observations_change,
    "pickling": _pickling,
    "vector": _vector,
    "spec": _spec,
    "closing": _closing,
    "rendering": _rendering,
    "ending": _ending,
    "quiet": _quiet,
    "leaks": _leaks,
}
"""Each rule by name; its docstring says what it demands."""
