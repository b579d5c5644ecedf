# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The case study of Kojo et al. 2001, repeated live."""
