# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The page of ``airpath ui``: a server on loopback, and the page that it serves.

The server does nothing by itself that a command does not do: it calls the functions of the Python
interface, starts the engine, and reads the files of runs.
"""
