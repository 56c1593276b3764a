"""What a navigator sees in a run is what it saw in training; its network, its cloning, its training and its files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cohort_builder import build_cohort
from gymnasium import spaces
from slides_builder import write_slide

from wsigym.baselines.navigator import HashedWords, NavigatorView, navigator_env, navigator_space
from wsigym.baselines.registry import make_policy
from wsigym.baselines.training_curve import CURVE
from wsigym.benchmarks.run_folder import load_run
from wsigym.benchmarks.runner import run
from wsigym.cohorts import Cohort, localization_queries
from wsigym.envs import LocalizationEnv
from wsigym.envs.pan_zoom import FINISH
from wsigym.errors import InvalidArgumentError, RunError
from wsigym.slides import Box

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'wsigym[rl]'")
pytest.importorskip("sb3_contrib", reason="needs sb3-contrib: pip install 'wsigym[rl]'")

from sb3_contrib import MaskablePPO  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

from wsigym.baselines.cloning import Moves, _batch, _mirrored, _transposed, clone  # noqa: E402
from wsigym.baselines.demonstrations import read_demonstrations, write_demonstrations  # noqa: E402
from wsigym.baselines.navigator_net import NOWHERE, NavigatorFeatures  # noqa: E402
from wsigym.baselines.ppo_policy import BEST, load_model  # noqa: E402
from wsigym.baselines.train_ppo import CHECKPOINTS, SETTINGS, TrainSettings, mean_iou, train_navigator  # noqa: E402

PX, SIDE = 36, 2048
NUCLEAR, PINK = (80, 50, 130), (235, 170, 200)
QUICK = TrainSettings(px=PX, budgets=("base",), rollout=64, place_batches=2, move_batches=2)


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    """Ten slides with a dark square each, somewhere else on each: eight to train, two of val."""
    folder = tmp_path_factory.mktemp("squares") / "cohort"
    folder.mkdir()
    rng = np.random.default_rng(5)
    slides, nodes = [], []
    for number in range(10):
        x, y = (int(corner) for corner in rng.integers(0, 4, 2) * 512)
        image = np.full((SIDE, SIDE, 3), PINK, np.uint8)
        image[y : y + 512, x : x + 512] = NUCLEAR
        name = f"s{number}"
        write_slide(folder / f"{name}.svs", image, tile_px=256, compression="jpeg", aperio="|AppMag = 40|MPP = 0.25")
        slides.append({"slide_id": name, "patient_id": name, "split": "train" if number < 8 else "val"})
        box = Box(x, y, 512, 512).to_list()
        nodes.append(
            {"slide_id": name, "node_id": "a", "parent_id": None, "magnification": 10, "box": box, "finding": "dark"}
        )
    return Cohort.load(build_cohort(folder, slides=slides, nodes=nodes, paths=[], pixels=False))


@pytest.fixture(scope="module")
def demos(squares: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demos") / "demos"
    write_demonstrations(squares, out, per_query=4, detours=0.3, view_px=PX)
    return out


@pytest.fixture(scope="module")
def trained(squares: Cohort, demos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "navigator"
    train_navigator(squares, out, steps=0, demonstrations=[demos], settings=QUICK)
    return out


class TestWhatItSees:
    @pytest.mark.parametrize("px", [PX, 96])
    def test_the_same_in_a_run_as_in_training(self, squares: Cohort, px: int) -> None:
        trained_in = navigator_env(cohort=squares, split="train", px=px)
        played_in = LocalizationEnv(squares, split="train")
        rng = np.random.default_rng(0)
        for query_id in trained_in.get_wrapper_attr("query_ids")[:3]:
            expected, info = trained_in.reset(options={"query_id": query_id})
            observation, played_info = played_in.reset(options={"query_id": query_id})
            view = NavigatorView(px, played_in, observation, played_info)
            over = False
            while not over:
                seen = view.observation(observation)
                assert seen.keys() == expected.keys() == navigator_space(px).spaces.keys()
                for name, part in expected.items():
                    np.testing.assert_array_equal(seen[name], part)
                    assert seen[name].dtype == part.dtype
                np.testing.assert_array_equal(view.action_mask(played_info), info["action_mask"])
                action = int(rng.choice(np.flatnonzero(info["action_mask"])))
                expected, _, over, _, info = trained_in.step(action)
                observation, *_, played_info = played_in.step(view.moved(action))
            assert played_info["iou"] == info["iou"]

    def test_its_space(self, squares: Cohort) -> None:
        assert navigator_env(cohort=squares, px=40).observation_space == navigator_space(40)
        first = navigator_space(40, channels_first=True)
        assert first["view"] == spaces.Box(0, 255, (3, 40, 40), np.uint8)

    def test_words(self) -> None:
        one, same, other, none = HashedWords().encode(["Dark glands", "glands, dark", "necrosis", ""])
        np.testing.assert_array_equal(one, same)
        assert one @ one == pytest.approx(1)
        assert one @ other == 0
        assert not none.any()


class TestNetwork:
    def test_padding_of_the_overview_is_no_place(self) -> None:
        network = NavigatorFeatures(navigator_space(PX, channels_first=True))
        seen = {
            name: torch.rand(2, *space.shape) for name, space in navigator_space(PX, channels_first=True).spaces.items()
        }
        seen["overview_extent"] = torch.tensor([[1.0, 0.5], [0.25, 1.0]])
        features, places = network.features_and_target_map(seen)
        assert features.shape == (2, network.features_dim)
        assert places.shape == (2, 9, 9)
        assert (places[0, 5:] == NOWHERE).all()
        assert (places[1, :, 3:] == NOWHERE).all()
        assert (places[0, :4] > NOWHERE).all()

    def test_one_look_is_seen_as_in_a_batch(self) -> None:
        network = NavigatorFeatures(navigator_space(PX, channels_first=True))
        seen = {
            name: torch.rand(3, *space.shape) for name, space in navigator_space(PX, channels_first=True).spaces.items()
        }
        alone = network({name: part[1:2] for name, part in seen.items()})
        torch.testing.assert_close(network(seen)[1:2], alone, rtol=1e-4, atol=1e-5)


class TestCloning:
    def test_mirrors_and_turns_agree_with_the_moves(self, squares: Cohort, demos: Path) -> None:
        moves = Moves.of(read_demonstrations(demos), squares)
        batch = _batch(moves, np.arange(40))
        for axis in (0, 1):
            twice = _mirrored(_mirrored(batch, axis), axis)
            for name, part in batch.items():
                torch.testing.assert_close(twice[name], part)
        turned = _transposed(_mirrored(batch, 0))
        x, y = batch["place"].T
        torch.testing.assert_close(turned["place"], torch.stack([y, 1 - x], dim=1))
        left = batch["optimal"][:, 0] > 0
        assert left.any()
        assert (turned["optimal"][left, 3] > 0).all(), "left mirrored is right, transposed is down"

    def test_padding_stays_right_and_below(self) -> None:
        overview = torch.ones(1, 3, 4, 4)
        overview[:, :, :, :3] = torch.tensor([0.1, 0.2, 0.3])
        batch = {name: overview.clone() for name in ("overview", "view", "view_quarter", "view_sixteenth")}
        batch |= {"overview_extent": torch.tensor([[0.75, 1.0]]), "view_box": torch.zeros(1, 4)}
        batch |= {"place": torch.tensor([[0.0, 0.0]]), "mask": torch.ones(1, 7), "optimal": torch.ones(1, 7)}
        mirrored = _mirrored(batch, 0)
        torch.testing.assert_close(mirrored["overview"][0, 0, 0], torch.tensor([0.3, 0.2, 0.1, 1.0]))
        assert mirrored["view_box"].tolist() == [[0, 0, 0, 0]], "nothing was looked at"

    def test_a_clone_finds_what_its_teacher_finds(self, squares: Cohort, demos: Path) -> None:
        env = DummyVecEnv([lambda: navigator_env(cohort=squares, split="train", px=PX)])
        arguments = {"features_extractor_class": NavigatorFeatures, "net_arch": [64], "ortho_init": False}
        model = MaskablePPO("MultiInputPolicy", env, policy_kwargs=arguments, seed=0, device="cpu")
        moves, done = Moves.of(read_demonstrations(demos), squares), []
        cloned = clone(
            model.policy, moves, place_batches=60, move_batches=120, seed=0, progress=lambda *at: done.append(at)
        )
        assert done[-1] == (180, 180)
        assert cloned.steps == len(moves)
        assert cloned.move_loss < 1.0
        assert mean_iou(model.policy, squares, "val", "base", QUICK)["all"] > 0.6

    def test_places_are_where_the_valid_boxes_are(self, squares: Cohort, demos: Path) -> None:
        places = Moves.of(read_demonstrations(demos), squares).places
        boxes = [reference.boxes[0] for _, reference in localization_queries(squares, "train")]
        centres = {tuple(round(part / SIDE, 3) for part in box.centre) for box in boxes}
        assert {tuple(round(float(part), 3) for part in place) for place in places} == centres

    def test_what_cannot_be_cloned(self, squares: Cohort, demos: Path) -> None:
        with pytest.raises(InvalidArgumentError, match="no demonstration to clone"):
            Moves.of([], squares)
        other = Cohort.load(build_cohort(demos.parent / "other", slides=[{"slide_id": "s1", "split": "train"}]))
        with pytest.raises(InvalidArgumentError, match=r"which the split train of cohort 'tiny' does not ask"):
            Moves.of(read_demonstrations(demos), other)


class TestTraining:
    def test_the_return_rises(self, squares: Cohort, demos: Path, tmp_path: Path) -> None:
        """From a clone that has hardly learned: twelve updates of PPO, after three of the value function alone."""
        settings = TrainSettings(
            px=PX, budgets=("base",), rollout=64, place_batches=30, move_batches=5, learning_rate=1e-3
        )
        arguments: dict[str, Any] = {"demonstrations": [demos], "settings": settings}
        trained = train_navigator(squares, tmp_path / "t", steps=15_360, check_every=5_120, **arguments)
        rows = list(csv.DictReader((tmp_path / "t" / CURVE).read_text(encoding="utf-8").splitlines()))
        assert [int(row["steps"]) for row in rows] == [0, 5_120, 10_240, 15_360]
        assert float(rows[3]["train_return"]) > float(rows[1]["train_return"]) + 0.1
        assert float(rows[3]["val_all"]) > float(rows[0]["val_all"])
        assert trained.best_iou == pytest.approx(max(float(row["val_all"]) for row in rows))

    def test_progress_tells_what_goes_on(self, squares: Cohort, demos: Path, tmp_path: Path) -> None:
        told: list[tuple[int, int, str]] = []
        settings = TrainSettings(**{**vars(QUICK), "rollout": 1})
        train_navigator(
            squares,
            tmp_path / "t",
            steps=16,
            demonstrations=[demos],
            settings=settings,
            progress=lambda *at: told.append(at),
        )
        cloned, played = [(n, 4, "batches of cloning") for n in range(1, 5)], [(n, 2, "queries of val") for n in (1, 2)]
        assert told == [*cloned, *played, (16, 16, "steps"), *played]

    def test_the_same_seed_gives_the_same_policy(self, squares: Cohort, demos: Path, tmp_path: Path) -> None:
        found = []
        for name in ("a", "b"):
            train_navigator(squares, tmp_path / name, steps=1024, demonstrations=[demos], settings=QUICK)
            found.append(load_model(tmp_path / name / CHECKPOINTS / "000001024.zip").policy.state_dict())
        for name, value in found[0].items():
            assert torch.equal(value, found[1][name]), name

    def test_it_goes_on(self, squares: Cohort, demos: Path, tmp_path: Path) -> None:
        out = tmp_path / "t"
        first = train_navigator(squares, out, steps=1024, demonstrations=[demos], settings=QUICK)
        second = train_navigator(squares, out, steps=2048, demonstrations=[demos], settings=QUICK)
        assert (first.steps, second.steps) == (1024, 2048)
        assert second.seconds > first.seconds
        assert [path.name for path in sorted((out / CHECKPOINTS).iterdir())] == [
            "000000000.zip",
            "000001024.zip",
            "000002048.zip",
        ]
        assert (out / "tensorboard").is_dir()
        with pytest.raises(RunError, match=r"seed: 0, now 3"):
            train_navigator(
                squares, out, steps=1024, demonstrations=[demos], settings=TrainSettings(**{**vars(QUICK), "seed": 3})
            )

    def test_a_broken_checkpoint(self, squares: Cohort, demos: Path, tmp_path: Path) -> None:
        out = tmp_path / "t"
        train_navigator(squares, out, steps=1024, demonstrations=[demos], settings=QUICK)
        last = out / CHECKPOINTS / "000001024.zip"
        last.write_bytes(last.read_bytes()[:5000])
        with pytest.raises(
            RunError, match=r"000001024\.zip is no policy that can be read .* go on from the one before"
        ):
            train_navigator(squares, out, steps=2048, demonstrations=[demos], settings=QUICK)
        last.unlink()
        assert train_navigator(squares, out, steps=1024, demonstrations=[demos], settings=QUICK).steps == 1024

    def test_it_goes_on_with_the_largest_seed(self, squares: Cohort, tmp_path: Path) -> None:
        settings = TrainSettings(**{**vars(QUICK), "seed": 2**32 - 1, "rollout": 1})
        for steps in (16, 32):
            assert train_navigator(squares, tmp_path / "t", steps=steps, settings=settings).steps == steps

    @pytest.mark.parametrize(
        ("cells", "said"),
        [
            ("steps,seconds,val_all\n0,1.0,0.2\n16,ab", r"curve\.csv cannot be read .* begins at the last checkpoint"),
            ("a,b\n1,2\n", "seconds"),
            ("steps,seconds,val_all\n0,1.0\n", "cannot be read"),
        ],
    )
    def test_a_broken_curve(self, squares: Cohort, trained: Path, demos: Path, cells: str, said: str) -> None:
        curve = trained / CURVE
        whole = curve.read_text(encoding="utf-8")
        curve.write_text(cells, encoding="utf-8")
        with pytest.raises(RunError, match=said):
            train_navigator(squares, trained, steps=0, demonstrations=[demos], settings=QUICK)
        curve.write_text(whole, encoding="utf-8")

    def test_killed_between_a_checkpoint_and_its_row(self, squares: Cohort, tmp_path: Path) -> None:
        settings = TrainSettings(**{**vars(QUICK), "rollout": 1})
        train_navigator(squares, tmp_path, steps=16, settings=settings)
        curve = tmp_path / CURVE
        rows = curve.read_text(encoding="utf-8").splitlines()
        curve.write_text("\n".join(rows[:2]) + "\n", encoding="utf-8")
        train_navigator(squares, tmp_path, steps=32, settings=settings)
        assert [line.split(",")[0] for line in curve.read_text(encoding="utf-8").splitlines()[1:]] == ["0", "16", "32"]

    def test_the_best_is_made_anew_where_it_was_removed(self, squares: Cohort, trained: Path, demos: Path) -> None:
        before = (trained / BEST).read_bytes()
        (trained / BEST).unlink()
        train_navigator(squares, trained, steps=0, demonstrations=[demos], settings=QUICK)
        after = load_model(trained / BEST).policy.state_dict()
        (trained / BEST).write_bytes(before)
        for name, value in load_model(trained / BEST).policy.state_dict().items():
            assert torch.equal(value, after[name]), name

    def test_a_network_that_grows_without_bounds(self, squares: Cohort, tmp_path: Path) -> None:
        settings = TrainSettings(**{**vars(QUICK), "rollout": 1, "learning_rate": 1e30})
        with pytest.raises(RunError, match=r"grew without bounds after 0 steps\. .* below 1e\+30"):
            train_navigator(squares, tmp_path, steps=96, settings=settings)
        assert [path.name for path in (tmp_path / CHECKPOINTS).iterdir()] == ["000000000.zip"]

    def test_checkpoints_without_settings(self, squares: Cohort, tmp_path: Path) -> None:
        (tmp_path / CHECKPOINTS).mkdir()
        (tmp_path / CHECKPOINTS / "000000000.zip").write_bytes(b"")
        with pytest.raises(RunError, match="exists and is not an empty folder"):
            train_navigator(squares, tmp_path, steps=0, settings=QUICK)

    def test_nothing_is_cloned_where_val_cannot_be_played(self, squares: Cohort, tmp_path: Path) -> None:
        """Told at once, not after twenty minutes of cloning."""
        told: list[str] = []
        slides = [{"slide_id": "s0", "split": "train"}, {"slide_id": "s1", "split": "val"}]
        box = Box(0, 0, 512, 512).to_list()
        nodes = [
            {
                "slide_id": name,
                "node_id": "a",
                "parent_id": None,
                "magnification": magnification,
                "box": box,
                "finding": "x",
            }
            for name, magnification in (("s0", 10), ("s1", 40))
        ]
        cohort = Cohort.load(build_cohort(tmp_path / "c", slides=slides, nodes=nodes, paths=[]))
        write_demonstrations(cohort, tmp_path / "demos", view_px=PX)
        settings = TrainSettings(**{**vars(QUICK), "magnifications": (10, 10)})
        with pytest.raises(InvalidArgumentError, match="no query is within"):
            train_navigator(
                cohort,
                tmp_path / "t",
                steps=0,
                demonstrations=[tmp_path / "demos"],
                settings=settings,
                progress=lambda done, asked, what: told.append(what),
            )
        assert not told
        assert not (tmp_path / "t").exists()

    def test_demonstrations_of_another_cohort(self, squares: Cohort, demos: Path, tmp_path: Path) -> None:
        slides = [{"slide_id": "s1", "split": "train"}, {"slide_id": "s2", "split": "val"}]
        other = Cohort.load(build_cohort(tmp_path / "other", slides=slides))
        with pytest.raises(InvalidArgumentError, match="was played on another cohort"):
            train_navigator(other, tmp_path / "t", steps=0, demonstrations=[demos], settings=QUICK)

    def test_broken_settings(self, squares: Cohort, tmp_path: Path) -> None:
        (tmp_path / SETTINGS).write_text("{", encoding="utf-8")
        with pytest.raises(RunError, match="cannot be read"):
            train_navigator(squares, tmp_path, steps=0, settings=QUICK)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"seed": -1}, "seed is -1"),
            ({"seed": 2**32}, "seed is 4294967296"),
            ({"budgets": ()}, "no budget"),
            ({"px": 20}, "36"),
            ({"gamma": 2}, "gamma is 2"),
            ({"learning_rate": float("inf")}, "learning_rate is inf"),
        ],
    )
    def test_bad_settings(self, squares: Cohort, tmp_path: Path, changed: dict[str, Any], message: str) -> None:
        settings = TrainSettings(**{**vars(QUICK), **changed})
        with pytest.raises(InvalidArgumentError, match=message):
            train_navigator(squares, tmp_path / "t", steps=0, settings=settings)

    def test_demonstrations_of_another_size(self, squares: Cohort, demos: Path, tmp_path: Path) -> None:
        settings = TrainSettings(px=48, budgets=("base",))
        with pytest.raises(InvalidArgumentError, match=r"images of 36 px, and the navigator is to see 48"):
            train_navigator(squares, tmp_path / "t", steps=0, demonstrations=[demos], settings=settings)
        assert train_navigator(squares, tmp_path / "t", steps=0, settings=settings).steps == 0, "nothing is in the way"


class TestPlaying:
    def test_in_a_run_as_in_training(self, squares: Cohort, trained: Path, tmp_path: Path) -> None:
        expected = mean_iou(load_model(trained / BEST).policy, squares, "val", "base", QUICK)["all"]
        run(
            "evipath/localization",
            policies=[f"ppo:{trained}", f"ppo:{trained / BEST}"],
            budgets=["base"],
            cohort=squares.root,
            split="val",
            out=tmp_path / "run",
        )
        scores: dict[str, list[float]] = {}
        for record in load_run(tmp_path / "run").records:
            assert record.outcome == "scored"
            scores.setdefault(record.policy, []).append(record.score or 0.0)
        assert len(scores) == 2
        for found in scores.values():
            assert np.mean(found) == pytest.approx(expected)

    def test_without_images_or_text(self, squares: Cohort, trained: Path, tmp_path: Path) -> None:
        arguments: dict[str, Any] = {"policies": [f"ppo:{trained}"], "cohort": squares.root, "split": "val"}
        run("evipath/localization", out=tmp_path / "run", blind=["images", "text"], budgets=["base"], **arguments)
        assert {record.outcome for record in load_run(tmp_path / "run").records} == {"scored"}

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match="there is no such policy"):
            make_policy(f"ppo:{tmp_path / 'none.zip'}")

    def test_another_file(self, tmp_path: Path) -> None:
        (tmp_path / "text.zip").write_text("text", encoding="utf-8")
        with pytest.raises(InvalidArgumentError, match="is no policy that can be read"):
            make_policy(f"ppo:{tmp_path / 'text.zip'}")

    def test_another_observation_space(self, squares: Cohort, tmp_path: Path) -> None:
        from wsigym.envs.ready_made import localization_pan_zoom

        env = DummyVecEnv([lambda: localization_pan_zoom(cohort=squares, view_px=PX, overview_px=PX)])
        MaskablePPO("MultiInputPolicy", env, n_steps=8, batch_size=8, device="cpu").save(tmp_path / "other.zip")
        with pytest.raises(InvalidArgumentError, match=r"trained in another environment: .* differ in target\."):
            make_policy(f"ppo:{tmp_path / 'other.zip'}")

    def test_other_actions(self, squares: Cohort, tmp_path: Path) -> None:
        from gymnasium.wrappers import TransformAction

        env = navigator_env(cohort=squares, px=PX)
        fewer = TransformAction(env, lambda action: action, spaces.Discrete(3))
        vector = DummyVecEnv([lambda: fewer])
        MaskablePPO("MultiInputPolicy", vector, n_steps=8, batch_size=8, device="cpu").save(tmp_path / "other.zip")
        with pytest.raises(InvalidArgumentError, match=r"actions are Discrete\(3\) and not Discrete\(7\)\."):
            make_policy(f"ppo:{tmp_path / 'other.zip'}")

    def test_a_finished_episode_moves_nothing(self, squares: Cohort) -> None:
        env = LocalizationEnv(squares, split="train")
        observation, info = env.reset(seed=0)
        view = NavigatorView(PX, env, observation, info)
        assert json.dumps(np.asarray(view.moved(FINISH)["box"]).tolist()) == "[0.0, 0.0, 1.0, 1.0]"
