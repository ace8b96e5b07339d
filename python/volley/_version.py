__version__ = "0.1.0"  # that of version.go, as a test checks
