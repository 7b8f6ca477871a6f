"""The one exception that ends a command with one line and exit status 2."""


class InputError(Exception):
    """What was given cannot be used; the message names the file and, where there is one, the line."""


class Unavailable(Exception):
    """What a generated block is made of is not on this machine; the message says what is missing. The block stays."""
