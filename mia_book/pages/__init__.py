"""From notebooks to pages: parameters, runs, the book, records, sweeps, slides, the command `mia`."""

import sys

# What checks notebooks and charts imports, where it is installed, a grammar of addresses that neither needs and that takes
# seconds.
sys.modules.setdefault("rfc3987_syntax", None)
