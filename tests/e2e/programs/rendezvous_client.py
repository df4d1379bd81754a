"""Each rank writes into the rendezvous of Horovod's Gloo, and reads what all have written."""
import os
import time
import urllib.error
import urllib.request

rank, size = int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"])
scope = f"http://{os.environ['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{os.environ['HOROVOD_GLOO_RENDEZVOUS_PORT']}/global"


def call(method, key, body=None):
    return urllib.request.urlopen(urllib.request.Request(f"{scope}/{key}", body, method=method), timeout=60).read()


def wait_for(key):
    deadline = time.monotonic() + 60
    while True:
        try:
            return call("GET", key)
        except urllib.error.HTTPError as error:
            if error.code != 404 or time.monotonic() > deadline:
                raise
        time.sleep(0.01)  # as Gloo does: nothing tells it of a new key


call("PUT", str(rank), f"written by {rank}".encode())
texts = [wait_for(str(other)).decode() for other in range(size)]
assert texts == [f"written by {other}" for other in range(size)], texts
print(f"rank {rank} read from {' '.join(str(other) for other in range(size))}", flush=True)
