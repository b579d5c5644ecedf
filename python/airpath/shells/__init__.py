# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Completions for shells and manual pages, made from what commands declare."""
