# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Programs keep their floating-point registers, which the kernel moves only if it must."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from live.harness import User
    from warp.conftest import Warp

SOURCE = Path(__file__).with_name("registers.c")


def test_registers_outlast_whatever_interrupts_a_program(warp: Warp, user: User) -> None:
    program = warp.airpath.folder("registers") / "registers"
    # Who built the kernel has a compiler.
    subprocess.run(["cc", "-O1", "-pthread", "-o", program, SOURCE], check=True)
    program.chmod(0o755)
    result = warp.run("-q", "--", program, user=user).check()
    assert result.out.startswith("0 changed, ")
