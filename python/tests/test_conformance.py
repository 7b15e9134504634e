"""Every idiom of conformance/idioms.py gives the same model in one process and with 1, 2 and 3 workers of a run."""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

from conftest import DROVER

torch = pytest.importorskip("torch")
from conformance import idioms  # noqa: E402
from test_launch import environment_for  # noqa: E402

SCRIPT = pathlib.Path(idioms.__file__)
DEADLINE = 100  # seconds that no run should take

pytestmark = pytest.mark.skipif(not DROVER, reason="DROVER_BIN is not set")


@functools.lru_cache(maxsize=None)
def alone(name):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, SCRIPT, name, "alone", folder], capture_output=True, text=True,
                              timeout=DEADLINE)
        assert done.returncode == 0, done.stderr
        return torch.load(pathlib.Path(folder, f"{name}-0.pt"))


def drover(folder, name, workers, *flags):
    command = [DROVER, "launch", "--quiet", "--python", sys.executable, "--workers", str(workers), "--run-file",
               str(folder / "run.db"), *flags, str(SCRIPT), name, "drover", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, cwd=folder,
                          env=environment_for(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return [torch.load(folder / f"{name}-{rank}.pt") for rank in range(workers)]


def ddp(folder, name, workers):
    processes = []
    for rank in range(workers):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(workers), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(20_000 + os.getpid() % 30_000)}
        processes.append(subprocess.Popen([sys.executable, SCRIPT, name, "ddp", folder], env=environment,
                                          stderr=subprocess.PIPE, text=True))
    for process in processes:
        said = process.communicate(timeout=DEADLINE)[1]
        assert process.returncode == 0, said
    return [torch.load(folder / f"{name}-{rank}.pt") for rank in range(workers)]


def assert_same(results, expected, tolerance=1e-5):
    for result in results:
        assert result.keys() == expected.keys()
        for key, value in expected["state"].items():
            torch.testing.assert_close(result["state"][key], value, rtol=tolerance, atol=tolerance, msg=key)
        for key in ("norms", "kept", "means"):
            if key in expected:
                for mine, other in zip(result[key], expected[key]):
                    torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5, msg=key)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(idioms.IDIOMS))
def test_equals_one_process(tmp_path, name, workers):
    assert_same(drover(tmp_path, name, workers, "--shards", "2" if workers == 3 else "1"), alone(name))


if os.environ.get("DROVER_TEST_DDP"):  # minutes; it is about the loops, not about Drover
    DIFFERENT = ("saved_during_the_run", "running_statistics")

    @pytest.mark.parametrize("name", sorted(set(idioms.IDIOMS) - set(DIFFERENT)))
    def test_distributed_data_parallel_agrees(tmp_path, name):
        """The suite asks for what DDP does."""
        assert_same(ddp(tmp_path, name, 2), alone(name))
