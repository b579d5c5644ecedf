# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Build step that pyproject.toml cannot express: the wheel's tag.

The wheel holds a program, not an extension module, so it fits every Python 3 of its platform.
"""

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel


class PlatformWheel(bdist_wheel):
    """A wheel tied to a platform but to no version of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag of any Python 3 on this platform."""
        _python, _abi, platform = super().get_tag()
        return "py3", "none", platform


setup(cmdclass={"bdist_wheel": PlatformWheel})
