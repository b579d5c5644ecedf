# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Every metric once more, in plain Python, packet by packet and byte by byte.

Written for clarity alone and sharing nothing with the analysis: another reader of captures and
logs, one pass with explicit state instead of whole columns. Analysis must agree with it.
"""
