# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The sections of the report, one module each with ``build(material) -> Section | None``."""
