"""One folder for each chapter; `mia_book.folders` says what it may hold."""
