# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Fading channels: files of signal-to-noise ratios, their statistics beside theory."""
