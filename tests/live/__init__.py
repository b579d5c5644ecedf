# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""End-to-end tests: the real command, real programs, the real kernel."""
