# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Playing a course of rate, delay, loss and place over an active run.

``course.py`` reads files, ``player.py`` plays them through the run's control socket, ``command.py``
is ``airpath drive``; the page of ``airpath ui`` plays with the same player.
"""
