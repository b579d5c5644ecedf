# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""End-to-end tests in virtual time: the real command, and a kernel that travels in time."""
