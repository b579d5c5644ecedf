# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Video over a link: a test video, its sender and receiver, and the quality of what arrives."""
