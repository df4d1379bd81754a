"""A rank of compare.py restart: restarted.py [MODULE]. In the first generation rank 1 ends with an error, once all have
imported the module; each rank prints when that was, and in the second generation when it had the module again.
"""
import importlib
import os
import signal
import sys
import time

if len(sys.argv) > 1:
    importlib.import_module(sys.argv[1])
rank = int(os.environ["RANK"])
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "1":
    print(f"again {time.time()}", flush=True)
    sys.exit(0)
# A fifo: rank 1 waits until rank 0 is there.
open(os.environ["READY"], "w" if rank == 0 else "r", encoding="utf-8").close()
if rank == 0:
    signal.pause()
print(f"ended {time.time()}", flush=True)
os._exit(1)
