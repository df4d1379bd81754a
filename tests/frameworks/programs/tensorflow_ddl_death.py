"""The last rank is killed while the functions of the others wait for it. Their error must name it."""
import os
import signal

# ddlrun asks the others to end; they are to say first what they have seen.
signal.signal(signal.SIGTERM, signal.SIG_IGN)

import ddl.tensorflow as hvd
import tensorflow as tf

hvd.init()
rank, last = hvd.rank(), hvd.size() - 1
# Autograph would leave a file behind, as the process is ended at once.
total = tf.function(lambda x: hvd.allreduce(x) + 1.0, autograph=False)
total(tf.ones(4))
if rank == last:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    total(tf.ones(4))
    print(f"rank {rank}: no error was raised", flush=True)
except tf.errors.OpError as error:
    is_told = f"rank {last} on " in str(error) and " died " in str(error)
    print(f"rank {rank}: {'told' if is_told else 'not told'}: {error}", flush=True)
os._exit(3)
