# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Results at a URL, such as s3://BUCKET/PREFIX: a store, and the folder that mirrors it here."""
