"""What ``studies/seawind-case/run`` starts: the study, or the comparison of its results."""

from __future__ import annotations

import sys

from seawind_case import compare, study

if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(compare.main(words[1:]) if words[:1] == ["compare"] else study.main(words))
