"""From notebooks to pages: parameters, runs, the book, records, sweeps, the command `mia`."""
