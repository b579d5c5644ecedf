# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Error traces captured from a radio: numbered packets of known content, sent and found again."""
