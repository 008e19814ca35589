"""The command line: the only reader of arguments and environment.

One command a file; each imports its stages inside the function, so that help stays fast.
"""
