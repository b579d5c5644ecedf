# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Experiments: sets of replications, described in a file and run unattended."""
