"""What the tests on a device share: the environment with the SDK."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ttexplore.backends.ttnn import Ttnn
from ttexplore.backends.ttnn.environment import default_environment_folder


@pytest.fixture(scope="session")
def environment() -> Path:
    """The folder of the device environment; without it the test is skipped, in CI it fails."""
    if missing := Ttnn().missing():
        if os.environ.get("CI") == "true":
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    return default_environment_folder()
