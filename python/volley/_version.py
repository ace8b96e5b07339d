__version__ = "0.3.0-dev"  # that of version.go, as TestVersion checks
__commit__ = ""  # of the sources: make wheel and make sdist fill it in, with .dirty where files have changed
