"""The public names of every module, and the environment ids, as a user first meets them."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import wsigym

PACKAGES = ["wsigym"] + [
    module.name for module in pkgutil.walk_packages(wsigym.__path__, "wsigym.") if not module.name.endswith("__main__")
]
LIGHT = ("wsigym", "wsigym.errors", "wsigym.slides", "wsigym.envs", "wsigym.envs.registration", "wsigym.envs.policy")
HEAVY = {"torch", "matplotlib", "skimage", "sklearn", "scipy", "cv2", "tiffslide", "openslide", "tifffile", "shapely"}


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_what_there_is(name: str) -> None:
    """Each name of `__all__` exists and is listed once; only a script does without, and defines its `main`."""
    module = importlib.import_module(name)
    if not hasattr(module, "__all__"):
        public = {each for each in vars(module) if not each.startswith("_") and defined_here(module, each)}
        assert public <= {"main"}
        return
    assert len(set(module.__all__)) == len(module.__all__)
    for each in module.__all__:
        assert getattr(module, each) is not None, each


def defined_here(module: object, name: str) -> bool:
    return getattr(getattr(module, name), "__module__", None) == getattr(module, "__name__", None)


@pytest.mark.parametrize("name", LIGHT)
def test_light_modules_stay_light(name: str) -> None:
    told = run(f"import sys, {name}; print(*sorted(sys.modules))")
    assert not HEAVY & {module.split(".")[0] for module in told.split()}


@pytest.mark.parametrize(
    ("before", "env_id"), [("import wsigym", "wsigym/Localization-v0"), ("", "wsigym:wsigym/Localization-v0")]
)
def test_gymnasium_makes_an_id_by_either_name(before: str, env_id: str, tiny_cohort: Path) -> None:
    code = f"""
import sys
import gymnasium as gym
{before}
env = gym.make({env_id!r}, cohort=sys.argv[1])
observation, info = env.reset(seed=0)
print(env.spec.id, env.observation_space.contains(observation), info["target"])
env.close()
"""
    assert run(code, str(tiny_cohort)).split()[:2] == ["wsigym/Localization-v0", "True"]


def test_registering_twice_is_harmless() -> None:
    run("import wsigym; from wsigym.envs.registration import register_all; register_all(); register_all()")
