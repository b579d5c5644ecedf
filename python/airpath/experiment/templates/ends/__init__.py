# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Programs of templates that are started by their paths, at the two ends of a link."""
