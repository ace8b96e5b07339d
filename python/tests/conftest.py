import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the package as it is here
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has what goes on beside it ignore SIGINT
