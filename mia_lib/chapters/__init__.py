"""The loops behind the chapters, one module a paper; notebooks call these and stay readable."""
