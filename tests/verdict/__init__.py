# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The verdict under attack: distortions of runs, each with a ground truth of its own."""
