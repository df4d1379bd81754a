"""Does what processes of TensorFlow (TF_CONFIG) or MXNet (DMLC_*) do when they find each other, and no more.

Each task listens where it is told to, and calls all others. A task that serves then waits for ever.
"""
import json
import os
import signal
import socket
import sys
import threading
import time

DEADLINE = time.monotonic() + 60


def listen(address):
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    server = socket.socket(family)
    # As gRPC's servers and those of ZeroMQ do.
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(address)
    server.listen(64)
    return server


def call(address, word):
    """Sends a word and returns the answer."""
    while True:
        try:
            with socket.create_connection(address, timeout=60) as connection:
                connection.sendall(word.encode() + b"\n")
                answer = connection.makefile().readline().strip()
                if answer:
                    return answer
        except OSError:
            pass
        if time.monotonic() > DEADLINE:
            sys.exit(f"{word}: nobody answers at {address}")
        time.sleep(0.02)


def answer_calls(server, name, heard, events):
    """Answers with the name until the process ends; notes what was said."""
    while True:
        connection, _ = server.accept()
        with connection:
            heard.add(connection.makefile().readline().strip())
            connection.sendall(name.encode() + b"\n")
        for event in events:
            event.set_if(heard)


class Complete(threading.Event):
    def __init__(self, others):
        super().__init__()
        self.others = set(others)

    def set_if(self, heard):
        if heard >= self.others:
            self.set()


def serve(address, name, others):
    """A thread that answers; the events are set when all others have called, and have said that they were met."""
    called, met = Complete(others), Complete(f"{other} was met" for other in others)
    both = [called, met]
    for event in both:
        event.set_if(set())
    threading.Thread(target=answer_calls, args=(listen(address), name, set(), both), daemon=True).start()
    return both


def split_address(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def serve_for_ever():
    signal.pause()


def tensorflow():
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, task = config["cluster"], config["task"]
    kind, index = task["type"], task["index"]
    assert set(cluster) <= {"chief", "worker", "ps", "evaluator"}, cluster
    assert index < len(cluster[kind]), config
    assert len(cluster.get("chief", [])) <= 1 and len(cluster.get("evaluator", [])) <= 1, cluster
    tasks = {f"{of} {i}": split_address(text) for of, texts in cluster.items() for i, text in enumerate(texts)}
    assert len(set(tasks.values())) == len(tasks), tasks
    name = f"{kind} {index}"
    others = [one for one in tasks if one != name]
    called, met = serve(("", tasks[name][1]), name, others)
    for other in others:
        assert call(tasks[other], name) == other
    assert called.wait(60), f"{name}: not all have called"
    print(f"{name}: met all", flush=True)
    for other in others:
        call(tasks[other], f"{name} was met")
    if kind == "ps" or (kind == "worker" and "chief" in cluster and "ps" in cluster):
        serve_for_ever()
    assert met.wait(60), f"{name}: not all were met"


def gather(server, workers, servers):
    """The scheduler answers when all nodes have called."""
    nodes = []
    while len(nodes) < workers + servers:
        connection, _ = server.accept()
        nodes.append((connection, connection.makefile().readline().split()))
    counts = [sum(words[0] == kind for _, words in nodes) for kind in ("worker", "server")]
    assert counts == [workers, servers], counts
    for connection, _ in nodes:
        connection.sendall(b"scheduler\n")
        connection.close()


def mxnet():
    role = os.environ["DMLC_ROLE"]
    workers, servers = int(os.environ["DMLC_NUM_WORKER"]), int(os.environ["DMLC_NUM_SERVER"])
    root = os.environ["DMLC_PS_ROOT_URI"], int(os.environ["DMLC_PS_ROOT_PORT"])
    assert "PORT" not in os.environ
    if role == "scheduler":
        with listen(("", root[1])) as server:
            gather(server, workers, servers)
            print("scheduler: met all", flush=True)
            gather(server, workers, servers)
            serve_for_ever()
    # As each node of ps-lite: it is known by the address that it tells the scheduler.
    own = listen((os.environ["DMLC_NODE_HOST"], 0))
    assert call(root, f"{role} {os.environ['DMLC_NODE_HOST']} {own.getsockname()[1]}") == "scheduler"
    print(f"{role}: met all", flush=True)
    assert call(root, f"{role} has printed that") == "scheduler"
    if role != "worker":
        serve_for_ever()


{"tensorflow": tensorflow, "mxnet": mxnet}[sys.argv[1]]()
