# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Interface for programs and notebooks, by the name ``airpath``: docs/python.md shows it."""
