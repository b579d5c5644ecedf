# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Campaigns: what tests try for seconds, tried for as long as somebody asks for."""
