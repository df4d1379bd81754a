"""Does what processes of TensorFlow (TF_CONFIG) or MXNet (DMLC_*) do when they find each other, and no more.

Each task listens where it is told to, and calls all others. A task that serves then waits for ever.
"""
import json
import os
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
            with socket.create_connection(address, timeout=5) as connection:
                connection.sendall(word.encode() + b"\n")
                answer = connection.makefile().readline().strip()
                if answer:
                    return answer
        except OSError:
            pass
        if time.monotonic() > DEADLINE:
            sys.exit(f"{word}: nobody answers at {address}")
        time.sleep(0.02)


def answer_calls(server, name, heard, complete):
    """Answers with the name until the process ends; notes who has called, and when all have."""
    while True:
        connection, _ = server.accept()
        with connection:
            heard.add(connection.makefile().readline().strip())
            connection.sendall(name.encode() + b"\n")
        complete.set_if(heard)


class Complete(threading.Event):
    def __init__(self, others):
        super().__init__()
        self.others = set(others)

    def set_if(self, heard):
        if heard >= self.others:
            self.set()


def serve(address, name, others):
    """A thread that answers; the event is set when all others have called."""
    complete = Complete(others)
    complete.set_if(set())
    threading.Thread(target=answer_calls, args=(listen(address), name, set(), complete), daemon=True).start()
    return complete


def split_address(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def end_or_serve(name, serves):
    print(f"{name}: met all", flush=True)
    if serves:
        time.sleep(3600)


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
    complete = serve(("", tasks[name][1]), name, others)
    for other in others:
        assert call(tasks[other], name) == other
    assert complete.wait(60), f"{name}: not all have called"
    end_or_serve(name, kind == "ps" or (kind == "worker" and "chief" in cluster and "ps" in cluster))


def mxnet():
    role = os.environ["DMLC_ROLE"]
    workers, servers = int(os.environ["DMLC_NUM_WORKER"]), int(os.environ["DMLC_NUM_SERVER"])
    root = os.environ["DMLC_PS_ROOT_URI"], int(os.environ["DMLC_PS_ROOT_PORT"])
    assert "PORT" not in os.environ
    if role == "scheduler":
        expected = workers + servers
        with listen(("", root[1])) as server:
            nodes = []
            while len(nodes) < expected:
                connection, _ = server.accept()
                nodes.append((connection, connection.makefile().readline().split()))
            counts = [sum(words[0] == kind for _, words in nodes) for kind in ("worker", "server")]
            assert counts == [workers, servers], counts
            for connection, _ in nodes:
                connection.sendall(b"scheduler\n")
    else:
        # As each node of ps-lite: it is known by the address that it tells the scheduler.
        own = listen((os.environ["DMLC_NODE_HOST"], 0))
        assert call(root, f"{role} {os.environ['DMLC_NODE_HOST']} {own.getsockname()[1]}") == "scheduler"
    end_or_serve(f"{role}", role != "worker")


{"tensorflow": tensorflow, "mxnet": mxnet}[sys.argv[1]]()
