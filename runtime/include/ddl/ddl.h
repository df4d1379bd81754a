/* libddl: collectives for training programs. C interface, complete; ddl.hpp wraps it for C++17.
 *
 * Conventions
 *  - Every function that can fail returns a ddl_status; on failure ddl_last_error() describes it in one sentence.
 *  - Counts are numbers of elements (not bytes) and 64 bits wide. Ranks are 0..size-1.
 *  - Option structs start with their own size, set by the matching DDL_*_INIT macro, so that a program compiled
 *    against an older header keeps working with a newer library.
 *  - Ordered tier: all ranks of a process set call the same collectives in the same order. If they do not, the call
 *    fails with DDL_ERROR_MISMATCH on every rank, before any receive buffer is written. The root of a broadcast may
 *    return before that: then its next call of the process set, or ddl_finalize(), returns the error, which names the
 *    broadcast; that next call does not run.
 *  - Ranks in arguments (root, to, from) and the order of parts in buffers are those of the call's process set:
 *    0..its size-1. Error messages name ranks of the job.
 *  - In place: where a function says so, recv may be (a part of) send; every other overlap of buffers is refused.
 *  - Buffers lie in CPU memory, or in that of a GPU whose vendor's runtime (CUDA, HIP) the program has loaded:
 *    the pointer tells. All buffers of a call, on all ranks, lie in the same kind of memory, and those of one rank and
 *    process set on one GPU; counts and other arguments always lie on the host. NCCL or RCCL executes what it can;
 *    ranks that share a GPU use each other's memory there; the rest goes through CPU memory (docs/guide/gpu.md). An
 *    ordered call by NCCL may return before the ranks have compared it, unless DDL_CHECK=1: then an error, also a
 *    mismatch, comes from the next call of the process set or from ddl_finalize(), ends the set, and leaves the receive
 *    buffers undefined.
 *  - After an error other than invalid argument, busy and mismatch, the contents of receive buffers are undefined.
 *  - Threads: one collective at a time per process set; a second concurrent call returns DDL_ERROR_BUSY and does
 *    nothing. Different process sets may be used by different threads at the same time. ddl_rank() and its siblings
 *    may be called from any thread at any time before ddl_finalize().
 *  - No function throws or lets an exception out. */
#ifndef DDL_DDL_H
#define DDL_DDL_H

#include <stdint.h>

#if defined(__GNUC__)
#define DDL_API __attribute__((visibility("default")))
#else
#define DDL_API
#endif

#if defined(__GNUC__)
#define DDL_INLINE __inline__
#define DDL_DEPRECATED(instead) __attribute__((deprecated(instead)))
#else
#define DDL_INLINE inline
#define DDL_DEPRECATED(instead)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Types and constants. */

/** One membership in a job: created by ddl_init(), owned by the caller until ddl_finalize(). */
typedef struct ddl_context ddl_context;

typedef int32_t ddl_status;
enum {
  DDL_OK = 0,
  DDL_ERROR_INVALID_ARGUMENT = 1, /**< a null pointer, unknown type or op, bad root, overlapping buffers */
  DDL_ERROR_MISMATCH = 2,         /**< the ranks called different collectives; the context stays usable */
  DDL_ERROR_BUSY = 3,             /**< another thread is inside a collective of this process set */
  DDL_ERROR_TIMEOUT = 4,          /**< a rank did not arrive in time; the context is aborted */
  DDL_ERROR_PEER_LOST = 5,   /**< a rank died, or left while another waited for it; the context is aborted */
  DDL_ERROR_ABORTED = 6,     /**< aborted by ddl_abort() or an earlier error, or inherited by a fork */
  DDL_ERROR_BOOTSTRAP = 7,   /**< the ranks could not find each other */
  DDL_ERROR_UNSUPPORTED = 8, /**< valid, but not offered by this build */
  DDL_ERROR_SYSTEM = 9,      /**< a call of the operating system failed; the message names it */
  DDL_ERROR_INTERNAL = 10,   /**< a defect of libddl */
  /** The program of this rank has ended a wait (ddl_set_interrupt_check()), or that of the rank that the message names;
   *  the context is aborted. */
  DDL_ERROR_INTERRUPTED = 11
};

/** An element type. The hexadecimal digits of the number are: kind (1 signed integer, 2 unsigned integer, 3 float, 4
 *  bool), binary logarithm of the size in bytes, and format where a kind has several of one size. 0x304 to 0x30F are
 *  reserved for further 8-bit floats and refused with DDL_ERROR_UNSUPPORTED. The numbers 0 to 12 of version 0.1 stand
 *  for the same types as there. */
typedef int32_t ddl_dtype;
enum {
  DDL_INT8 = 0x100,
  DDL_INT16 = 0x110,
  DDL_INT32 = 0x120,
  DDL_INT64 = 0x130,
  DDL_UINT8 = 0x200,
  DDL_UINT16 = 0x210,
  DDL_UINT32 = 0x220,
  DDL_UINT64 = 0x230,
  DDL_FLOAT8_E4M3FN = 0x300,   /**< one byte, of the Open Compute Project's E4M3: ddl/float8.hpp */
  DDL_FLOAT8_E5M2 = 0x301,     /**< one byte, of its E5M2 */
  DDL_FLOAT8_E4M3FNUZ = 0x302, /**< one byte, of AMD's gfx94x: another bias, no infinity, no negative zero */
  DDL_FLOAT8_E5M2FNUZ = 0x303, /**< the same with E5M2 */
  DDL_FLOAT16 = 0x310,         /**< IEEE 754 binary16: ddl_float16 */
  DDL_BFLOAT16 = 0x311,        /**< the upper half of a float: ddl_bfloat16 */
  DDL_FLOAT32 = 0x320,
  DDL_FLOAT64 = 0x330,
  DDL_BOOL = 0x400 /**< one byte; 0 is false, results are 0 or 1 */
};

/** 16-bit floats by their bits. They and 8-bit floats are combined as float, over all ranks, and rounded once (to
 *  nearest, ties to even). ddl/half.hpp and ddl/float8.hpp convert them in C++. */
typedef struct ddl_float16 {
  uint16_t bits;
} ddl_float16;
typedef struct ddl_bfloat16 {
  uint16_t bits;
} ddl_bfloat16;

typedef int32_t ddl_op;
enum {
  DDL_SUM = 0, /**< integers wrap around; not for bool */
  /** Sum divided by the number of ranks; integers round toward zero, and only sums of 64 bits wrap around before. Not
   *  for bool. */
  DDL_AVERAGE = 1,
  DDL_MIN = 2,     /**< NaN in any input gives NaN */
  DDL_MAX = 3,     /**< NaN in any input gives NaN */
  DDL_PRODUCT = 4, /**< integers wrap around; not for bool */
  DDL_BIT_AND = 5, /**< this and the following: integers and bool */
  DDL_BIT_OR = 6,
  DDL_BIT_XOR = 7,
  DDL_LOGICAL_AND = 8,  /**< 1 if every input is not 0, else 0 */
  DDL_LOGICAL_OR = 9,   /**< 1 if any input is not 0, else 0 */
  DDL_LOGICAL_XOR = 10, /**< 1 if an odd number of inputs is not 0, else 0 */
  /** Allreduces of 16-bit floats, float and double alone, on whole tensors: two become
   *  (1 - a.b / (2 a.a)) a + (1 - a.b / (2 b.b)) b, so the sum if they are orthogonal and the average if they are equal.
   *  Neighbours are combined, then neighbouring pairs, and so on, in the order of the process set's ranks; a last one
   *  without a partner goes to the next level unchanged. Dots are summed in double; a tensor whose square is below
   *  1.49e-154 is added with the factor 1. Of 16-bit floats, results between two levels are floats. Named tensors that are executed together
   *  are tensors of their own; ranks that have joined give zeros. Each rank keeps memory for one or two more
   *  copies of them, of 16-bit floats three or four. Memory of GPUs goes through CPU memory. */
  DDL_ADASUM = 11
};

/** The process set of all ranks of the job. */
#define DDL_WORLD ((uint64_t)0)
/** No process set: the result on a rank that is not a member of the new set. */
#define DDL_NO_PROCESS_SET (~(uint64_t)0)

typedef struct ddl_init_options {
  uint32_t struct_size;
  uint32_t reserved;
  double timeout_seconds; /**< of every collective that names none; 0 = DDL_TIMEOUT_SECONDS or no deadline */
} ddl_init_options;
#define DDL_INIT_OPTIONS_INIT \
  { (uint32_t)sizeof(ddl_init_options), 0u, 0.0 }

/** How one collective is to run. A null pointer stands for the defaults. */
typedef struct ddl_call_options {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t process_set;   /**< whose ranks make the call: DDL_WORLD or one that this rank is a member of */
  double timeout_seconds; /**< 0 = the context's; the call fails with DDL_ERROR_TIMEOUT after this long */
  /** For buffers in memory of a GPU: the stream (cudaStream_t, hipStream_t) with their data; NULL = the default stream.
   *  The call comes after what is on the stream, and what is put on it later comes after the call. A rank without
   *  elements says by a stream that the others' buffers lie on GPUs. Refused with buffers in CPU memory, for a
   *  barrier, and while the stream records a graph (DDL_ERROR_UNSUPPORTED). */
  void* stream;
  /** For calls with an operation: every input is first multiplied by prescale, and the result by postscale at the
   *  end, in the type that elements are combined in (float for 16-bit floats; integers are multiplied as double and
   *  truncated toward zero). Finite and not 0; the same on every rank; 1 = unchanged. Not for bool. */
  double prescale;
  double postscale;
} ddl_call_options;
#define DDL_CALL_OPTIONS_INIT \
  { (uint32_t)sizeof(ddl_call_options), 0u, DDL_WORLD, 0.0, (void*)0, 1.0, 1.0 }

/* Joining and leaving the job. */

/** Joins the job that this process was started in and stores the context in *context.
 *  Bootstraps are tried in this order: PMIx (ddlrun, mpirun, srun --mpi=pmix), the MPI that
 *  executes the collectives, if one does, PMI-1 (MPICH's mpirun, srun --mpi=pmi2),
 *  then singleton (a world of one).
 *  If no launcher answers although the environment says that several processes were started, this fails with
 *  DDL_ERROR_BOOTSTRAP instead of silently making worlds of one.
 *  Collective: returns when all ranks have called it, or when DDL_START_TIMEOUT_SECONDS have passed. A rank on which
 *  it fails must exit with a code other than 0: the other ranks are not notified and wait for it until the launcher
 *  ends them. At most one context is alive per process; a new one may be created after ddl_finalize(). options may be
 *  null. Starts one sleeping thread that watches for dead peers. */
DDL_API ddl_status ddl_init(const ddl_init_options* options, ddl_context** context);

/** Leaves the job and frees the context, also when it was aborted; unless it returns DDL_ERROR_BUSY, the context is
 *  gone. Not collective: a rank may leave while others still work, but not while they wait for it. Null is allowed
 *  and does nothing. In a child forked without exec it does nothing either. */
DDL_API ddl_status ddl_finalize(ddl_context* context);

/* Elastic jobs: ddlrun --elastic continue. When a rank is lost, the calls of the others fail with DDL_ERROR_PEER_LOST.
 * They finalize their contexts and join again, and the job goes on with those that there are. */

/** Why a process joins. */
enum {
  DDL_ELASTIC_FIRST = 0,   /**< it has not been in the job before */
  DDL_ELASTIC_CHANGED = 1, /**< ddl_elastic_check() has said so, and all ranks leave at the same step */
  DDL_ELASTIC_LOST = 2     /**< a call has failed because another rank was lost */
};

typedef struct ddl_elastic_join_options {
  uint32_t struct_size;
  uint32_t reserved;
  double timeout_seconds; /**< as in ddl_init_options; not of the join itself, which may wait for hours */
  uint64_t commits;       /**< how many states this process has saved, or taken over: where the job goes on */
  uint64_t reason;        /**< DDL_ELASTIC_FIRST, ... */
} ddl_elastic_join_options;
#define DDL_ELASTIC_JOIN_OPTIONS_INIT \
  { (uint32_t)sizeof(ddl_elastic_join_options), 0u, 0.0, 0u, 0u }

/** Joins the job, for the first time or again: returns when ddlrun has made a generation of which this process is a
 *  rank, and its ranks are connected. If one of them is lost before, this process joins the next one. The process's
 *  earlier context must have been finalized. In a job that is not elastic, the same as ddl_init(), which in an elastic
 *  one joins for the reason DDL_ELASTIC_FIRST. The rank, the size and the other ranks may be others each time; the local
 *  rank of ddlrun's LOCAL_RANK stays. Errors: as ddl_init(). options may be null. */
DDL_API ddl_status ddl_elastic_join(const ddl_elastic_join_options* options, ddl_context** context);

/** The number of the generation, from 0; -1: the job is not elastic, or context is null. */
DDL_API int32_t ddl_elastic_generation(const ddl_context* context);

/** What ddl_elastic_check() finds. If the job changes, finalize the context, and join again for the reason
 *  DDL_ELASTIC_CHANGED. If it drains (by ddlrun --state-dir only), save the state in the folder DDL_ELASTIC_STATE_DIR,
 *  finalize, and exit with DDL_ELASTIC_EXIT_DRAINED. */
enum {
  DDL_ELASTIC_STAYS = 0,   /**< go on */
  DDL_ELASTIC_CHANGES = 1, /**< processes wait to become ranks, or hosts are to leave */
  DDL_ELASTIC_DRAINS = 2   /**< the job is to end, and another one will go on from its state */
};
enum { DDL_ELASTIC_EXIT_DRAINED = 119 };

/** What the job is to do: *change becomes the same on all ranks. Collective over the world, an ordered call; it costs an
 *  allreduce of 4 bytes. In a job that is not elastic: DDL_ELASTIC_STAYS, and no call. If a rank has submitted a named
 *  tensor, in any process set, that is not complete: DDL_ERROR_INVALID_ARGUMENT on all ranks, with the tensor's name. */
DDL_API ddl_status ddl_elastic_check(ddl_context* context, int32_t* change);

/** This rank's work is done: from now on the job does not change, and a rank that ends with 0 has not failed. A process
 *  of an elastic job that ends without it has left. Not collective. Without effect in a job that is not elastic. */
DDL_API ddl_status ddl_elastic_finished(ddl_context* context);

/** Ends the whole job because this rank has found a reason, such as a loss that is not a number. code becomes the
 *  job's exit code: its low 8 bits, or 1 where these are 0. text is one sentence for people, or null; control
 *  characters in it become blanks.
 *  Every call of any rank that is waiting, or begins later, fails with DDL_ERROR_ABORTED, and its ddl_last_error()
 *  names this rank, its host and pid, the code, and the first 431 bytes of text, unless the context had been aborted
 *  for another cause before. If several ranks abort the job, each reports itself, and the launcher takes one. This
 *  rank writes the same to standard error, unless that is a full pipe. Then it asks the launcher to end the job.
 *  Depending on the bootstrap it calls PMIx_Abort(), which takes code and text, or MPI_Abort() or the abort of PMI-1,
 *  which take the code. ddlrun reports rank, host, code and, by PMIx, text, and exits with code; another launcher may
 *  exit with the code of a rank that ended because of this one.
 *  Finally this process ends with code, as by _exit(): no destructor and no atexit() handler runs, and unwritten
 *  output of stdio is lost (call fflush() first).
 *  Not collective. From any thread, also while others are inside calls: a call of this rank that fails, ddl_finalize()
 *  and a second ddl_abort() wait for the end of the process. Not while ddl_finalize() runs, and not from a signal
 *  handler. Returns only if it has done nothing: DDL_ERROR_INVALID_ARGUMENT if context is null, DDL_ERROR_ABORTED in
 *  a child forked without exec. */
DDL_API ddl_status ddl_abort(ddl_context* context, int32_t code, const char* text);

/* Ranks. */

DDL_API int32_t ddl_rank(const ddl_context* context);       /**< 0..size-1 */
DDL_API int32_t ddl_size(const ddl_context* context);       /**< number of ranks in the job */
DDL_API int32_t ddl_local_rank(const ddl_context* context); /**< 0..local_size-1 on this host */
DDL_API int32_t ddl_local_size(const ddl_context* context); /**< number of ranks on this host */
/** Index of this host among the hosts that have this local rank. */
DDL_API int32_t ddl_cross_rank(const ddl_context* context);
DDL_API int32_t ddl_cross_size(const ddl_context* context); /**< number of hosts that have this local rank */
/** Which bootstrap made the context: "pmix", "mpi", "pmi" or "singleton". Static storage. */
DDL_API const char* ddl_bootstrap_name(const ddl_context* context);
/** Which backend executes the context's collectives: "ddl", libddl's own algorithms, or "mpi", the site's MPI,
 *  whose name ddl_mpi_library() gives (DDL_CPU_OPERATIONS chooses). "" if context is null. Static storage. */
DDL_API const char* ddl_backend_name(const ddl_context* context);

/* Ordered collectives. */

/** Combines count elements of every rank with op and gives all ranks the same bits, whatever the timing. Elements are
 *  combined in one fixed order: the ranks of each host in rank order, then the hosts by a tree over neighbours
 *  (docs/reference/libddl.md). In place: recv == send. */
DDL_API ddl_status ddl_allreduce(ddl_context* context, const void* send, void* recv, uint64_t count,
                                 ddl_dtype dtype, ddl_op op, const ddl_call_options* options);

/** Like ddl_allreduce(), with the same bits, but only root receives. recv is used on root alone and may be null
 *  elsewhere. In place on root: recv == send. */
DDL_API ddl_status ddl_reduce(ddl_context* context, const void* send, void* recv, uint64_t count,
                              ddl_dtype dtype, ddl_op op, int32_t root, const ddl_call_options* options);

/** Combines like ddl_allreduce(), with the same bits, and gives each rank a part of the result: rank r receives
 *  counts[r] elements, those that follow the parts of the ranks before it. send holds the sum of counts; counts has
 *  an entry per rank, the same everywhere, and entries may be 0. In place: recv == send + the counts before this
 *  rank. */
DDL_API ddl_status ddl_reduce_scatter(ddl_context* context, const void* send, void* recv,
                                      const uint64_t* counts, ddl_dtype dtype, ddl_op op,
                                      const ddl_call_options* options);

/** Rank r receives the combination of the elements of ranks 0..r, from left to right. Not with DDL_AVERAGE.
 *  In place: recv == send. */
DDL_API ddl_status ddl_scan(ddl_context* context, const void* send, void* recv, uint64_t count,
                            ddl_dtype dtype, ddl_op op, const ddl_call_options* options);

/** Copies count elements of root's buffer into every other rank's buffer. The root may return, and change its buffer,
 *  before the others have called. What is wrong with a call of another rank (DDL_ERROR_MISMATCH, _TIMEOUT, _PEER_LOST)
 *  is then an error of the root's next call of the process set, or of ddl_finalize(). */
DDL_API ddl_status ddl_broadcast(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype,
                                 int32_t root, const ddl_call_options* options);

/** Gathers count elements of every rank into recv, in rank order, on every rank: recv holds size*count elements.
 *  In place: send == recv + rank*count elements. */
DDL_API ddl_status ddl_allgather(ddl_context* context, const void* send, void* recv, uint64_t count,
                                 ddl_dtype dtype, const ddl_call_options* options);

/** Like ddl_allgather() with counts[r] elements of rank r; counts has an entry per rank, the same everywhere, and
 *  entries may be 0. In place: send == recv + the counts before this rank. */
DDL_API ddl_status ddl_allgatherv(ddl_context* context, const void* send, void* recv, const uint64_t* counts,
                                  ddl_dtype dtype, const ddl_call_options* options);

/** Gathers count elements of every rank into root's recv, in rank order. recv holds size*count elements, is used on
 *  root alone and may be null elsewhere. In place on root: send == recv + root*count elements. */
DDL_API ddl_status ddl_gather(ddl_context* context, const void* send, void* recv, uint64_t count,
                              ddl_dtype dtype, int32_t root, const ddl_call_options* options);

/** Rank r receives the r-th count elements of root's send. send holds size*count elements, is used on root alone and
 *  may be null elsewhere. In place on root: recv == send + root*count elements. */
DDL_API ddl_status ddl_scatter(ddl_context* context, const void* send, void* recv, uint64_t count,
                               ddl_dtype dtype, int32_t root, const ddl_call_options* options);

/** Sends the r-th count elements of send to rank r, and receives the elements of rank r as the r-th count elements of
 *  recv; both hold size*count elements. In place: recv == send. */
DDL_API ddl_status ddl_alltoall(ddl_context* context, const void* send, void* recv, uint64_t count,
                                ddl_dtype dtype, const ddl_call_options* options);

/** Sends send_counts[r] elements to rank r, one part after the other in send, and receives every rank's part, one
 *  after the other in rank order, in recv, which has room for recv_capacity elements. recv_counts[r] becomes the
 *  number of elements that came from rank r. Both arrays have an entry per rank and belong to this rank alone. If
 *  some rank has too little room, every rank gets DDL_ERROR_MISMATCH and nothing but recv_counts is written. Not in
 *  place. */
DDL_API ddl_status ddl_alltoallv(ddl_context* context, const void* send, const uint64_t* send_counts,
                                 void* recv, uint64_t recv_capacity, uint64_t* recv_counts, ddl_dtype dtype,
                                 const ddl_call_options* options);

/** Returns when every rank has called it. */
DDL_API ddl_status ddl_barrier(ddl_context* context, const ddl_call_options* options);

/* From one rank to another. */

/** Sends count elements to another rank of the process set, which calls ddl_recv() from this one with the same count
 *  and dtype. The two calls are a collective of these two ranks, matched in the order in which the ranks make such
 *  calls. ddl_send() returns when the elements have been taken from buffer, ddl_recv() when they have been stored in
 *  it. If both ranks send to each other first, they do not deadlock but get DDL_ERROR_MISMATCH; in a ring, let every
 *  second rank receive first.
 *  The first call of two ranks connects them: between hosts this takes a few round trips, and the connection stays.
 *  Counts as a call of the process set: one at a time on each rank. */
DDL_API ddl_status ddl_send(ddl_context* context, const void* buffer, uint64_t count, ddl_dtype dtype,
                            int32_t to, const ddl_call_options* options);

/** Receives what another rank of the process set sends with ddl_send() to this one. */
DDL_API ddl_status ddl_recv(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype, int32_t from,
                            const ddl_call_options* options);

/* Messages: from one rank to another, without waiting for it.
 *
 * A message has a sender, a receiver, a process set and a tag, and is matched as MPI matches messages: a receive takes
 * the first message that fits it, in the order in which they were sent, and a message goes into the first receive that
 * fits it, in the order in which they were posted.
 *  - Messages are independent of ordered calls, ddl_send() and ddl_recv() among them, and of named tensors. Any number
 *    may be open, and whatever the order in which two ranks send and receive, they do not deadlock.
 *  - A buffer belongs to the message until its handle is complete. It lies in CPU memory; DDL_ERROR_UNSUPPORTED: it
 *    lies on a GPU.
 *  - options.timeout_seconds, or the context's default, limits each ddl_wait() of the message. A rank that gives up, or
 *    dies, ends the context for all ranks, as with other calls. A rank that leaves (ddl_finalize()) while another waits
 *    for its message does the same.
 *  - Every handle ends with ddl_wait(), also after ddl_finalize(), by which open messages fail with DDL_ERROR_ABORTED.
 *    What has been sent before, and whose handle is complete, still arrives.
 *  - The first message of a rank starts one thread, which sleeps while there is nothing to do. The first message to a
 *    rank connects to it; the connection stays.
 *  - All these functions may be called from any thread at the same time. */

/** A message, or a named tensor (below), that was submitted. */
typedef struct ddl_handle ddl_handle;

/** A receive from any rank of the process set, or with any tag. */
#define DDL_ANY_RANK (-1)
#define DDL_ANY_TAG (-1)

/** Sends count elements to a rank of the process set, which may be this one, with a tag, 0 or above. The handle is
 *  complete when buffer may be written again. Messages of up to 32 KiB are copied, and usually complete at once. */
DDL_API ddl_status ddl_send_async(ddl_context* context, const void* buffer, uint64_t count, ddl_dtype dtype,
                                  int32_t to, int32_t tag, const ddl_call_options* options,
                                  ddl_handle** handle);

/** Receives a message of a rank, or of any (DDL_ANY_RANK), with a tag, or with any (DDL_ANY_TAG). It must have as many
 *  bytes as count elements of dtype: otherwise the receive fails with DDL_ERROR_MISMATCH, and so does the message if its
 *  handle is not complete; both ranks can go on. *source, unless null, becomes the sender; it must be valid until the
 *  handle is complete. */
DDL_API ddl_status ddl_recv_async(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype,
                                  int32_t from, int32_t tag, const ddl_call_options* options, int32_t* source,
                                  ddl_handle** handle);

/* Memory. */

/** Allocates zeroed memory of this size, aligned to a page, that all ranks of this host can reach. It is used like
 *  any other memory; if the buffers of all ranks of a large call lie in such memory, the call copies less and is
 *  faster. Not collective. Pages are charged when they are first written. Together the ranks of a host can allocate
 *  twice the machine's memory. ddl_free() or ddl_finalize() frees it, whichever comes first. May be called from any
 *  thread. */
DDL_API ddl_status ddl_alloc(ddl_context* context, uint64_t bytes, void** memory);

/** Frees memory that ddl_alloc() or a named tensor gave to this rank; null is allowed. Not while a call uses it. */
DDL_API ddl_status ddl_free(ddl_context* context, void* memory);

/* Named tensors.
 *
 * A program may submit tensors by name, from any thread and in any order, and go on computing. The ranks agree on
 * what to execute, combine several tensors into one call where that is faster, and complete each tensor's handle.
 *  - Every rank of the process set submits a tensor of the same name, with the same kind of call, type, operation,
 *    scales, root and number of elements (but for allgatherv and alltoallv). If they differ, this tensor alone fails
 *    on every rank with DDL_ERROR_MISMATCH, and the message names two of the ranks. A name may be used again when the
 *    handle is complete.
 *  - Buffers belong to the call until its handle is complete. Results have the bits of the ordered collectives.
 *  - Every handle ends with ddl_wait(), also after ddl_finalize(): then it tells whether the tensor was complete. Open
 *    tensors of a rank that leaves a process set fail with DDL_ERROR_ABORTED, and those of the other ranks with
 *    DDL_ERROR_PEER_LOST.
 *  - The first tensor of a process set starts one thread, which sleeps while there is nothing to do. A thread that
 *    waits executes tensors itself.
 *  - All these functions may be called from any thread at the same time, beside ordered collectives too. ddl_finalize()
 *    returns DDL_ERROR_BUSY while a thread waits.
 *  - If MPI executes the collectives and the program has initialised it below MPI_THREAD_MULTIPLE, tensors make
 *    progress only while a thread that may call MPI is inside ddl_wait(), ddl_wait_all() or ddl_join(). */

/** Called when a tensor has been executed or has failed, once: on a thread that waits for some tensor, on libddl's
 *  own, or, for a tensor that is open when this rank leaves, on the thread that is inside ddl_finalize() or
 *  ddl_process_set_free(). message is "" or the error, valid during the call. It may submit tensors, also of the
 *  same name, and call ddl_test(); it must not wait, join, or make ordered calls. The tensor's handle is complete when
 *  it has returned. */
typedef void (*ddl_completion)(void* argument, ddl_status status, const char* message);

/** How a named tensor is to be executed. A null pointer stands for the defaults. */
typedef struct ddl_async_options {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t process_set; /**< whose ranks make the call */
  /** As in ddl_call_options. The tensor may be used after what is on the stream now; its result is there when the
   *  handle is complete. */
  void* stream;
  double prescale; /**< as in ddl_call_options */
  double postscale;
  /** Of tensors that are ready, those of a higher priority are executed first. The same on every rank. */
  int32_t priority;
  /** The number of tensors in the group. */
  uint32_t group_size;
  /** Tensors with the same group are executed when all group_size of them are ready on all ranks; if one fails, all
   *  do. Null: no group. */
  const char* group;
  ddl_completion completed; /**< null: none */
  void* argument;           /**< of completed */
  /** The sizes of the tensor's dimensions, for comparison and messages; of an allgatherv or alltoallv without the first
   *  one. Null: only the number of elements is compared. */
  const uint64_t* shape;
  uint64_t dimensions; /**< entries of shape */
  /** 1: ranks that have joined give zeros to an allreduce or reduce_scatter, as with Horovod, and an average is divided
   *  by the number of all ranks. 0: these ranks are left out. The same on every rank. */
  uint64_t zeros_if_joined;
  /** 1: the tensor fails with DDL_ERROR_MISMATCH while a rank has joined, as Horovod's gathers and broadcasts do. 0: the
   *  other ranks go on. The same on every rank. */
  uint64_t fails_if_joined;
} ddl_async_options;
#define DDL_ASYNC_OPTIONS_INIT                                                                     \
  {                                                                                                \
    (uint32_t)sizeof(ddl_async_options), 0u, DDL_WORLD, (void*)0, 1.0, 1.0, 0, 0u, (const char*)0, \
        (ddl_completion)0, (void*)0, (const uint64_t*)0, (uint64_t)0, (uint64_t)0, (uint64_t)0     \
  }

/** Submits a tensor for an allreduce. name: UTF-8, at most 1024 bytes, not empty; it is copied. send and recv may be
 *  the same. *handle becomes the tensor's handle; handle may be null if options.completed is not. */
DDL_API ddl_status ddl_allreduce_async(ddl_context* context, const char* name, const void* send, void* recv,
                                       uint64_t count, ddl_dtype dtype, ddl_op op,
                                       const ddl_async_options* options, ddl_handle** handle);

/** A tensor of ddl_grouped_allreduce_async(). */
typedef struct ddl_tensor {
  const char* name;
  const void* send;
  void* recv;
  uint64_t count;
} ddl_tensor;

/** Submits several tensors, all or none; handles has an entry for each, or is null. They need not be a group in the
 *  sense of options.group. */
DDL_API ddl_status ddl_grouped_allreduce_async(ddl_context* context, const ddl_tensor* tensors,
                                               uint64_t count, ddl_dtype dtype, ddl_op op,
                                               const ddl_async_options* options, ddl_handle** handles);

/** Submits count elements of this rank, the same number on all: see ddl_allgather(). The elements of a rank that has
 *  joined are zeros. */
DDL_API ddl_status ddl_allgather_async(ddl_context* context, const char* name, const void* send, void* recv,
                                       uint64_t count, ddl_dtype dtype, const ddl_async_options* options,
                                       ddl_handle** handle);

/** Submits count elements of this rank; each rank may have another number. When it is complete, *result is memory
 *  with the elements of all ranks in rank order, on the GPU of send if it lies on one, which the caller frees with
 *  ddl_free(), and recv_counts, which has an
 *  entry per rank or is null, how many came from each. */
DDL_API ddl_status ddl_allgatherv_async(ddl_context* context, const char* name, const void* send,
                                        uint64_t count, void** result, uint64_t* recv_counts, ddl_dtype dtype,
                                        const ddl_async_options* options, ddl_handle** handle);

/** Submits a tensor for a broadcast of root's buffer. */
DDL_API ddl_status ddl_broadcast_async(ddl_context* context, const char* name, void* buffer, uint64_t count,
                                       ddl_dtype dtype, int32_t root, const ddl_async_options* options,
                                       ddl_handle** handle);

/** Submits send_counts[r] elements for each rank r, one part after the other. *result and recv_counts: as in
 *  ddl_allgatherv_async(). */
DDL_API ddl_status ddl_alltoallv_async(ddl_context* context, const char* name, const void* send,
                                       const uint64_t* send_counts, void** result, uint64_t* recv_counts,
                                       ddl_dtype dtype, const ddl_async_options* options,
                                       ddl_handle** handle);

/** Submits a tensor for a reduce_scatter: see ddl_reduce_scatter(). counts is copied. */
DDL_API ddl_status ddl_reduce_scatter_async(ddl_context* context, const char* name, const void* send,
                                            void* recv, const uint64_t* counts, ddl_dtype dtype, ddl_op op,
                                            const ddl_async_options* options, ddl_handle** handle);

/** Waits until the tensor or message is complete, frees the handle, and returns its status; ddl_last_error() describes a
 *  failure. A tensor is waited for at once, even if others were to be executed first. */
DDL_API ddl_status ddl_wait(ddl_handle* handle);

/** Waits for all handles and frees them; null entries are allowed. Returns the first failure, in the order of the
 *  handles. */
DDL_API ddl_status ddl_wait_all(ddl_handle* const* handles, uint64_t count);

/** *done becomes 1 if the tensor or message is complete, else 0. Does not wait, and does not free the handle. */
DDL_API ddl_status ddl_test(ddl_handle* handle, int32_t* done);

/** Says that this rank has no more data: until all ranks of the process set have joined, it takes part in the others'
 *  named tensors without any. These leave it out: a sum has its other terms, a minimum its other candidates, an average
 *  is divided by the number of ranks that gave data (but see zeros_if_joined); a gather gets nothing from it. A
 *  broadcast from it, and elements that are addressed to it, fail with DDL_ERROR_MISMATCH. Blocks. *last_rank, unless
 *  null, becomes the highest of the ranks that joined last. Until it returns, other threads of this rank get
 *  DDL_ERROR_INVALID_ARGUMENT for ordered calls of the process set and for tensors, and DDL_ERROR_BUSY for another
 *  join. */
DDL_API ddl_status ddl_join(ddl_context* context, uint64_t process_set, int32_t* last_rank);

/** Says that a training step has ended: what this rank submitted in it is what libddl expects of the next. Not
 *  necessary: it finds steps by the names that come again. Does not block. */
DDL_API ddl_status ddl_step(ddl_context* context, uint64_t process_set);

/* Timelines. */

/** Begins a timeline: all ranks record what they do, and when. Collective over the whole job, as an ordered call of
 *  DDL_WORLD. Path and max_bytes of rank 0 hold: the file that it will write, which is compressed if its name ends
 *  with ".gz", and the size before that; 0 stands for 128 MiB. What does not fit is dropped, the oldest first.
 *  DDL_ERROR_INVALID_ARGUMENT, on all ranks: rank 0 cannot write the file, or a timeline is recorded already. Works
 *  beside a timeline of ddlrun. */
DDL_API ddl_status ddl_timeline_start(ddl_context* context, const char* path, uint64_t max_bytes);

/** Ends it, and rank 0 writes the file: all ranks in one, as Chrome Trace Events. Collective as ddl_timeline_start().
 *  Other ranks return before the file is complete; rank 0 alone returns an error if it cannot be written. Without this
 *  ddl_finalize() does the same, and waits for the ddl_finalize() of all ranks. If the job has failed by then, rank 0
 *  writes what the ranks of its host have recorded, also those that have died; under ddlrun's agents, what it has
 *  recorded itself. */
DDL_API ddl_status ddl_timeline_stop(ddl_context* context);

/** Marks this moment of the calling thread with a name, UTF-8 of which the first 60 bytes count. It is shown in the
 *  timeline (ddl_timeline_start(), ddlrun --timeline-filename), in the report of a failed job, and nowhere else. Not
 *  collective. May be called from any thread, also inside a callback. Takes less than 100 ns, and does nothing if
 *  nobody records events. */
DDL_API ddl_status ddl_mark(ddl_context* context, const char* name);

/** The same for an interval: *range becomes a number by which ddl_range_end() ends it, which may be 0. Ranges of one
 *  thread are shown well only if they are nested or disjoint. */
DDL_API ddl_status ddl_range_begin(ddl_context* context, const char* name, uint64_t* range);
/** Ends a range. From any thread; 0 is allowed and does nothing. */
DDL_API ddl_status ddl_range_end(ddl_context* context, uint64_t range);

/* Process sets. */

/** Makes a process set of some ranks of the job: ranks[0..count-1] become its ranks 0..count-1, in that order.
 *  Collective over the whole job, with the same list everywhere. *process_set becomes the set's number, by which this
 *  process knows it (another may have another number for it), or DDL_NO_PROCESS_SET on ranks that are not in the
 *  list. A set has shared memory, connections and an order of calls of its own; it ends with ddl_process_set_free()
 *  or ddl_finalize(). */
DDL_API ddl_status ddl_process_set_create(ddl_context* context, const int32_t* ranks, int32_t count,
                                          uint64_t* process_set);

/** Splits a process set: the ranks that give the same color, 0 or above, form one new set, ordered by key and, where
 *  keys are equal, by their rank in parent. A rank that gives a negative color is in none and gets
 *  DDL_NO_PROCESS_SET. Collective over parent. */
DDL_API ddl_status ddl_process_set_split(ddl_context* context, uint64_t parent, int32_t color, int32_t key,
                                         uint64_t* process_set);

/** A key-value store of the program, such as a server that all ranks reach, through which the members of a new process
 *  set find each other. Keys are text, values are bytes: a few hundred of them for each member. They may hold the key
 *  by which members on different hosts recognise each other, so only the job's user should be able to read them. */
typedef struct ddl_store {
  uint32_t struct_size;
  uint32_t reserved;
  /** Stores the value, in place of an earlier one. 0; another number: the store has failed. */
  int32_t (*put)(void* argument, const char* key, const void* value, uint64_t bytes);
  /** Waits up to this number of seconds, at most 0.5, for a value, and copies its first capacity bytes. Returns its
   *  size, which may be above capacity; -1: none has come; another number below 0: the store has failed. */
  int64_t (*get)(void* argument, const char* key, double seconds, void* value, uint64_t capacity);
  void* argument;         /**< of both */
  double timeout_seconds; /**< how long a member waits for the others; 0 = DDL_START_TIMEOUT_SECONDS */
} ddl_store;
#define DDL_STORE_INIT                                                                         \
  {                                                                                            \
    (uint32_t)sizeof(ddl_store), 0u, (int32_t(*)(void*, const char*, const void*, uint64_t))0, \
        (int64_t(*)(void*, const char*, double, void*, uint64_t))0, (void*)0, 0.0              \
  }

/** Makes a process set of some ranks of the job as ddl_process_set_create() does, but is collective over these ranks
 *  alone: the others may be inside any call, and so may other threads of the members. name: the same on all members,
 *  not empty, of no other set that a member is in. It may be used again when the set has been freed, by the same ranks.
 *  The functions of the store are called by this thread, and not after this function has returned; they must not call
 *  libddl. A rank that makes several sets waits for the members of each: ranks make them in the same order, or on
 *  several threads.
 *  If it fails on one member, it fails on all that wait, and the context can still be used, unless a rank has died or
 *  the job was aborted. DDL_ERROR_TIMEOUT: the members that the message names have not called it; DDL_ERROR_MISMATCH:
 *  one has given other ranks for this name; DDL_ERROR_BOOTSTRAP: the store has failed, at the key that the message
 *  names, or holds values of another job, or a member could not join; DDL_ERROR_INTERRUPTED: the program of a member
 *  has ended the wait. */
DDL_API ddl_status ddl_process_set_create_by_members(ddl_context* context, const int32_t* ranks,
                                                     int32_t count, const char* name, const ddl_store* store,
                                                     uint64_t* process_set);

/** Leaves a process set; its number is not used again. Not collective: the others may go on using the set, but not
 *  wait for this rank. DDL_NO_PROCESS_SET is allowed and does nothing; DDL_WORLD is refused. */
DDL_API ddl_status ddl_process_set_free(ddl_context* context, uint64_t process_set);

/** This rank's rank in a process set, and the number of its ranks; -1 if this rank is in no such set. */
DDL_API int32_t ddl_process_set_rank(const ddl_context* context, uint64_t process_set);
DDL_API int32_t ddl_process_set_size(const ddl_context* context, uint64_t process_set);
/** Fills ranks, which has room for ddl_process_set_size() entries: the rank in the job of each rank of the set. */
DDL_API ddl_status ddl_process_set_ranks(const ddl_context* context, uint64_t process_set, int32_t* ranks);

/* Signals. */

/** Whether a wait is to end: not 0 if so. */
typedef int32_t (*ddl_interrupt_check)(void* argument);

/** For bindings of languages whose handlers of signals do not run while a function of C waits, such as Python's:
 *  registers the function that is asked when a signal has been handled by a thread that waits inside libddl, on that
 *  thread. It may run such handlers, and must not call libddl. If it returns 0, the wait goes on. Otherwise the call
 *  fails with DDL_ERROR_INTERRUPTED, unless it is complete by then; the context is aborted, and calls of other ranks fail
 *  with the same status and a message that names this rank. In ddl_init() the others are not notified, as with any
 *  other failure there. The function is also asked without a signal, 20 ms after a wait has begun and whenever it has
 *  become twice as long. Null: nothing is asked, and signals end no wait; that is the default.
 *  One function for the process, from now on; not while another thread is inside libddl. Waits inside an MPI and for a
 *  GPU do not end by it. Does not fail. */
DDL_API ddl_status ddl_set_interrupt_check(ddl_interrupt_check check, void* argument);

/* What this libddl has. */

/** Whether this libddl, or this process, has the named feature: 1 or 0. It is 0 for null and for a name that this
 *  version does not know, so a program may ask an older library about a feature that only a newer one has.
 *    "mpi"          there is a module for an MPI; that for the standard ABI of MPI 5 always is
 *    "nccl"         NCCL or RCCL can be loaded, for collectives of GPU memory
 *    "cuda"         buffers may lie in memory of CUDA devices: NVIDIA's driver library can be loaded here
 *    "rocm"         buffers may lie in memory of ROCm devices: AMD's HIP runtime can be loaded here
 *    "mpi-enabled"  this process has a context whose collectives MPI executes
 *    "mpi-threads"  the same, and several threads may call that MPI at once (MPI_THREAD_MULTIPLE): the program may
 *                   go on using it beside libddl
 *  May be called at any time, from any thread. */
DDL_API int32_t ddl_has_feature(const char* name);
/** Which MPI executes the collectives of this process's context, such as "Open MPI v4.1.4"; "" if none does.
 *  Static storage. */
DDL_API const char* ddl_mpi_library(void);

/** Bytes of one element; 0 if dtype is not a type of this version. May be called at any time, from any thread. */
DDL_API uint64_t ddl_dtype_size(ddl_dtype dtype);

/* Errors, and the version. */

/** The calling thread's last error in one sentence; "" if there was none. Valid until its next call into libddl. */
DDL_API const char* ddl_last_error(void);
/** A short constant name of a status, such as "timeout". */
DDL_API const char* ddl_status_name(ddl_status status);
/** The table by which algorithms are chosen, as text for people: one rule per line, and the last rule that applies
 *  holds. DDL_ALGORITHM overrides it. Static storage. */
DDL_API const char* ddl_algorithm_table(void);
/** The library's version, such as "0.2.0". Static storage. */
DDL_API const char* ddl_version(void);

/* Names of version 0.1, for programs that were written for it. Not declared if DDL_NO_DEPRECATED is defined. */
#ifndef DDL_NO_DEPRECATED
DDL_DEPRECATED("call ddl_has_feature(\"mpi\")")
static DDL_INLINE int32_t ddl_mpi_built(void) { return ddl_has_feature("mpi"); }
DDL_DEPRECATED("call ddl_has_feature(\"nccl\")")
static DDL_INLINE int32_t ddl_nccl_built(void) { return ddl_has_feature("nccl"); }
DDL_DEPRECATED("call ddl_has_feature(\"cuda\")")
static DDL_INLINE int32_t ddl_cuda_built(void) { return ddl_has_feature("cuda"); }
DDL_DEPRECATED("call ddl_has_feature(\"rocm\")")
static DDL_INLINE int32_t ddl_rocm_built(void) { return ddl_has_feature("rocm"); }
DDL_DEPRECATED("call ddl_has_feature(\"mpi-enabled\")")
static DDL_INLINE int32_t ddl_mpi_enabled(void) { return ddl_has_feature("mpi-enabled"); }
DDL_DEPRECATED("call ddl_has_feature(\"mpi-threads\")")
static DDL_INLINE int32_t ddl_mpi_threads_supported(void) { return ddl_has_feature("mpi-threads"); }
DDL_DEPRECATED("call ddl_backend_name()")
static DDL_INLINE const char* ddl_cpu_operations(const ddl_context* context) {
  return ddl_backend_name(context);
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* DDL_DDL_H */
