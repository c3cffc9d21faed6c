import os

import pytest


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist the tests run one after another
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """`-n auto`: one process more than processors, for the screen's tests wait as long as they compute."""
    return (os.cpu_count() or 1) + 1
