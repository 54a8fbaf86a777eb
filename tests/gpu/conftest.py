"""What the tests of GPU lanes share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ttexplore.errors import BackendError
from ttexplore.gpu.environment import default_environment_folder, read_environment


@pytest.fixture(scope="session")
def environment() -> Path:
    """The folder of TileLang's environment; without it the test is skipped, in CI it fails."""
    try:
        read_environment()
    except BackendError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    return default_environment_folder()
