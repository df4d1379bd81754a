"""What Horovod's elastic programs ask of the rendezvous, without Horovod: each rank meets the others, and joins again
when the file "lost0" is there (then "lost1", and so on), until the file "stop" is."""
import os
import signal
import time
import urllib.error
import urllib.request

SERVER = f"http://{os.environ['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{os.environ['HOROVOD_GLOO_RENDEZVOUS_PORT']}"
HOST = os.environ["HOROVOD_HOSTNAME"]
NAMES = ["RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"]


def call(method, path, body=None):
    return urllib.request.urlopen(urllib.request.Request(f"{SERVER}/{path}", body, method=method), timeout=60).read()


def wait_for(path):
    while True:
        try:
            return call("GET", path)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
        time.sleep(0.01)  # as Gloo does: nothing tells it of a new key


def meet(scope, rank, size):
    """Gloo has a barrier of its own before the DELETE; here it is in another scope."""
    call("PUT", f"{scope}/{rank}", b"address")
    for other in range(size):
        wait_for(f"{scope}/{other}")
    call("PUT", f"met_{scope}/{rank}", b"")
    for other in range(size):
        wait_for(f"met_{scope}/{other}")
    call("DELETE", f"{scope}/{rank}")


place, generation = [int(os.environ[f"HOROVOD_{name}"]) for name in NAMES], 0
assert os.environ["HOROVOD_ELASTIC"] == "1"
while True:
    rank, size, local_rank, local_size, cross_rank, cross_size = place
    call("PUT", f"worker_addresses/{HOST}:{local_rank}", b"pickled")
    if os.path.exists("hold"):
        print(f"held: rank {rank}, pid {os.getpid()}\n", end="", flush=True)
        signal.pause()  # until it is ended
    meet("global", rank, size)
    meet(f"local_{HOST}", local_rank, local_size)
    meet(f"cross_{local_rank}", cross_rank, cross_size)
    print(f"generation {generation}: rank {rank} of {size}, local {local_rank} of {local_size}, "
          f"cross {cross_rank} of {cross_size}, pid {os.getpid()}\n", end="", flush=True)
    while not os.path.exists(f"lost{generation}"):
        if os.path.exists("stop"):
            raise SystemExit
        time.sleep(0.01)
    place = [int(one) for one in call("GET", f"rank_and_size/{HOST}:{local_rank}").split(b",")]
    generation += 1
