__version__ = "0.2.0"  # that of version.go, as TestVersion checks
