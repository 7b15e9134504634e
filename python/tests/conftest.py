"""Where the package is, when it is not installed: the one built beside DROVER_BIN, else the sources."""

import importlib.util
import os
import pathlib
import sys

import pytest

SOURCES = pathlib.Path(__file__).resolve().parents[1]
DROVER = os.environ.get("DROVER_BIN")
BUILT = pathlib.Path(DROVER).resolve().parent / "python" if DROVER else None


def is_whole(package):
    """Whether it is there, with its native module."""
    return package is not None and any(pathlib.Path(package.origin).parent.glob("_native*.so"))


if not is_whole(importlib.util.find_spec("drover")):
    sys.path.insert(0, str(BUILT if BUILT and BUILT.is_dir() else SOURCES))

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def same_seed_in_every_test():
    torch.manual_seed(1)


def pytest_sessionfinish(session, exitstatus):
    """With CI=true a skipped test is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and exitstatus == 0 and reporter and reporter.stats.get("skipped"):
        reporter.write_line("tests were skipped, which CI does not accept", red=True)
        session.exitstatus = 1


@pytest.fixture(autouse=True)
def no_run_is_left_joined():
    """A test that fails, or that ends without leaving, must not keep others from joining."""
    yield
    run = sys.modules.get("drover.run")
    if run and run._joined is not None:
        try:
            run._joined.leave("the test is over")
        except Exception:
            run._joined = None
