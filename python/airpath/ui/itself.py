# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The command ``airpath`` of this installation, for commands of Python's that take long."""

import sys

COMMAND = (sys.executable, "-P", "-c", "from airpath.cli import main; raise SystemExit(main())")
"""Words before those of a command."""
