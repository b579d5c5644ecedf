# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Tests of the page of ``airpath ui``: its server, and the page in a browser."""
