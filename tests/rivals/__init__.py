# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Emulators measured side by side: ``scripts/bench --only rivals``."""
