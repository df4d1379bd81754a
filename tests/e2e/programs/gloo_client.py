"""What a program with Horovod and Gloo does at its start, by the standard library alone.

    gloo_client.py [ROUNDS [PROCESS_SET [SLOW_RANK]]]      PROCESS_SET: numbers of ranks with commas, or ""

Each rank forms the contexts "global", "local_HOSTNAME" and "cross_LOCAL_RANK" by the store at
HOROVOD_GLOO_RENDEZVOUS_ADDR and _PORT: it writes its address, reads those of the others, connects to all, waits for
all, and takes its address back. Ranks of PROCESS_SET form one more. Then it closes all connections and begins again,
ROUNDS times. SLOW_RANK takes its addresses back late, when others may have begun again: that of a host with fewer ranks
than another, whose last rank then waits for it nowhere. Like Horovod, a program without HOROVOD_GLOO_RENDEZVOUS_ADDR is
a job of one rank.
"""
import fcntl
import http.client
import os
import secrets
import socket
import struct
import sys
import time

TIMEOUT = float(os.environ.get("HOROVOD_GLOO_TIMEOUT_SECONDS", "30"))
ADDRESS_BYTES = 136
TOKEN_BYTES = 16
POLL_SECONDS = 0.010
ATTEMPTS, PAUSE_SECONDS = 3, 0.5
SLOW_SECONDS = 0.2


def number(name, default):
    return int(os.environ.get("HOROVOD_" + name, default))


def own_address():
    """That of HOROVOD_GLOO_IFACE, otherwise that of the host's name if a socket can have it."""
    interface = os.environ.get("HOROVOD_GLOO_IFACE", "").split(",")[0]
    if interface:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            request = struct.pack("256s", interface.encode()[:15])
            return socket.inet_ntoa(fcntl.ioctl(asked, 0x8915, request)[20:24])  # SIOCGIFADDR
    try:
        address = socket.gethostbyname(socket.gethostname())
        with socket.socket() as tried:
            tried.bind((address, 0))
        return address
    except OSError:
        return "127.0.0.1"


class Store:
    """A client as Horovod's: a connection for each request, and three attempts."""

    def __init__(self, host, port, scope):
        self.host, self.port, self.scope = host, port, scope

    def request(self, method, key, body=None):
        """The value, or None if there is none."""
        path = f"/{self.scope}/{key}"
        for attempt in range(ATTEMPTS):
            if attempt > 0:
                time.sleep(PAUSE_SECONDS)
            connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT)
            try:
                connection.request(method, path, body)
                answer = connection.getresponse()
                value = answer.read()
                why = f"{answer.status} {value!r}"
                if answer.status == 200 and answer.getheader("Content-Length") != str(len(value)):
                    why = "200 without Content-Length"
                elif answer.status == 200:
                    return value
                elif answer.status == 404 and method == "GET":
                    return None
            except (OSError, http.client.HTTPException) as error:
                why = repr(error)
            finally:
                connection.close()
        raise RuntimeError(f"HTTP request failed: {method} http://{self.host}:{self.port}{path}: {why}")

    def wait_for(self, key):
        deadline = time.monotonic() + TIMEOUT
        while self.request("GET", key) is None:
            if time.monotonic() > deadline:
                raise RuntimeError(f"timeout: /{self.scope}/{key} did not appear within {TIMEOUT:g} s")
            time.sleep(POLL_SECONDS)
        return self.request("GET", key)


def receive(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise RuntimeError("a peer has closed its connection")
        data += part
    return data


class Context:
    """Connections of a rank with all others of a scope."""

    def __init__(self, store, rank, size, pause):
        self.rank, self.size = rank, size
        self.peers = {}
        with socket.create_server((own_address(), 0), backlog=max(size, 1)) as listener:
            listener.settimeout(TIMEOUT)
            self.rendezvous(store, listener)
        self.barrier()
        time.sleep(pause)
        store.request("DELETE", str(rank))

    def rendezvous(self, store, listener):
        rank, size = self.rank, self.size
        token = secrets.token_bytes(TOKEN_BYTES)
        store.request("PUT", f"rank_{rank}", socket.gethostname().encode())
        for before in range(rank):
            store.request("GET", f"rank_{before}")
        host, port = listener.getsockname()
        blob = struct.pack("!4sH", socket.inet_aton(host), port) + token
        store.request("PUT", str(rank), blob.ljust(ADDRESS_BYTES, b"\0") * (size - 1))
        blobs = {peer: store.wait_for(str(peer)) for peer in range(size) if peer != rank}
        for peer, value in blobs.items():
            if len(value) != ADDRESS_BYTES * (size - 1):
                raise RuntimeError(f"the address of rank {peer} in {store.scope} has {len(value)} bytes")
        for peer in range(rank):
            mine = blobs[peer][ADDRESS_BYTES * (rank - 1):]
            address, its_port = struct.unpack("!4sH", mine[:6])
            connection = socket.create_connection((socket.inet_ntoa(address), its_port), timeout=TIMEOUT)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # An address of an earlier round would be one of a socket that is closed, or has another token.
            connection.sendall(struct.pack("!I", rank) + mine[6:6 + TOKEN_BYTES])
            self.peers[peer] = connection
        while len(self.peers) < size - 1:
            connection, _ = listener.accept()
            connection.settimeout(TIMEOUT)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            (peer,) = struct.unpack("!I", receive(connection, 4))
            if receive(connection, TOKEN_BYTES) != token or peer in self.peers or not rank < peer < size:
                raise RuntimeError(f"rank {peer} has connected to rank {rank} of {store.scope} by a wrong address")
            self.peers[peer] = connection

    def barrier(self):
        distance = 1
        while distance < self.size:
            self.peers[(self.rank + distance) % self.size].sendall(b"b")
            receive(self.peers[(self.rank - distance) % self.size], 1)
            distance *= 2

    def close(self):
        for connection in self.peers.values():
            connection.close()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    process_set = [int(word) for word in sys.argv[2].split(",") if word] if len(sys.argv) > 2 else []
    slow_rank = int(sys.argv[3]) if len(sys.argv) > 3 else -1
    rank, size = number("RANK", 0), number("SIZE", 1)
    host, port = os.environ.get("HOROVOD_GLOO_RENDEZVOUS_ADDR"), number("GLOO_RENDEZVOUS_PORT", 0)
    local_rank = number("LOCAL_RANK", 0)
    wanted = [
        ("global", rank, size),
        ("local_" + os.environ.get("HOROVOD_HOSTNAME", "localhost"), local_rank, number("LOCAL_SIZE", 1)),
        (f"cross_{local_rank}", number("CROSS_RANK", 0), number("CROSS_SIZE", 1)),
    ]
    if rank in process_set:
        wanted.append(("global_process_set_hash_5eed", process_set.index(rank), len(process_set)))
    rounds = rounds if host else 0
    for _ in range(rounds):
        contexts = []
        for scope, its_rank, its_size in wanted:
            contexts.append(Context(Store(host, port, scope), its_rank, its_size,
                                    SLOW_SECONDS if rank == slow_rank else 0))
        for context in contexts:
            context.close()
    print(f"rank {rank} of {size}: {rounds} rounds", flush=True)


main()
