__version__ = "0.3.0-dev"  # that of version.go, as TestVersion checks
