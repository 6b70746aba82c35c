"""``python -m certgp_paper.page RESULTS PAGE PICTURES`` writes the page of a folder of results."""

import sys
from pathlib import Path

from certgp_paper.page.reproduction import write_page

if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python -m certgp_paper.page RESULTS PAGE PICTURES")
    write_page(*map(Path, sys.argv[1:]))
