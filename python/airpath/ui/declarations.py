# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Declaration of ``airpath ui``."""

from __future__ import annotations

from airpath.declaration import Argument, Declaration, Option

PAGE = (
    Declaration(
        "ui",
        "Build links, drive runs and read results on a web page",
        "airpath.ui.command:ui",
        (
            "airpath ui",
            "airpath ui ~/links --port 8080 --no-browser",
            "airpath ui --host 192.0.2.7 --certificate cert.pem --key key.pem --accounts accounts",
        ),
        (
            Argument(
                "DIR",
                "Directory with scenarios, experiments and results [default: the working "
                "directory]",
                "folder",
                required=False,
            ),
        ),
        (
            Option(
                "--port", ("PORT",), "Port to listen on; 0 for a free one", type="whole", default=0
            ),
            Option(
                "--host",
                ("ADDRESS",),
                "Address to listen on; any but loopback needs --certificate, --key and --accounts",
                default="127.0.0.1",
            ),
            Option("--no-browser", (), "Print the address, and open no browser"),
            Option("--certificate", ("FILE",), "Certificate for TLS, as PEM", type="path"),
            Option("--key", ("FILE",), "Its private key, as PEM", type="path"),
            Option(
                "--accounts",
                ("FILE",),
                "Accounts of those who may open the page from other machines",
                type="path",
            ),
            Option(
                "--add-account",
                ("NAME",),
                "Add an account to the file of --accounts, or change its password, and exit; the "
                "password is read from the terminal, or from standard input",
            ),
        ),
        "The page can run commands as you. Whoever has its address, with the token in it, can too. "
        "Runs go on if the page is closed; Ctrl-C ends those that the page started.",
        "ui",
    ),
)
"""The command that serves the page."""
