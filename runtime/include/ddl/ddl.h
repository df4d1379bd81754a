/* libddl: collectives for training programs. C interface, complete; ddl.hpp wraps it for C++17.
 *
 * Conventions
 *  - Every function that can fail returns a ddl_status; on failure ddl_last_error() describes it in one sentence.
 *  - Counts are numbers of elements (not bytes) and 64 bits wide. Ranks are 0..size-1.
 *  - Option structs start with their own size, set by the matching DDL_*_INIT macro, so that a program compiled
 *    against an older header keeps working with a newer library.
 *  - Ordered tier: all ranks of a process set call the same collectives in the same order. A rank that calls
 *    something else is told so, on every rank, before any receive buffer is written.
 *  - Threads: one collective at a time per context; a second concurrent call returns DDL_ERROR_BUSY and does
 *    nothing. ddl_rank() and its siblings may be called from any thread at any time before ddl_finalize().
 *  - No function throws or lets an exception out. */
#ifndef DDL_DDL_H
#define DDL_DDL_H

#include <stdint.h>

#if defined(__GNUC__)
#define DDL_API __attribute__((visibility("default")))
#else
#define DDL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** One membership in a job: created by ddl_init(), owned by the caller until ddl_finalize(). */
typedef struct ddl_context ddl_context;

typedef int32_t ddl_status;
enum {
  DDL_OK = 0,
  DDL_ERROR_INVALID_ARGUMENT = 1, /**< a null pointer, unknown type or op, bad root, overlapping buffers */
  DDL_ERROR_MISMATCH = 2,         /**< the ranks called different collectives; the context stays usable */
  DDL_ERROR_BUSY = 3,             /**< another thread is inside a collective of this context */
  DDL_ERROR_TIMEOUT = 4,          /**< a rank did not arrive in time; the context is aborted */
  DDL_ERROR_PEER_LOST = 5,        /**< a rank died, or left while it was waited for; the context is aborted */
  DDL_ERROR_ABORTED = 6,          /**< the context was aborted by an earlier error, or inherited by a fork */
  DDL_ERROR_BOOTSTRAP = 7,        /**< the ranks could not find each other */
  DDL_ERROR_UNSUPPORTED = 8,      /**< valid, but not offered by this build */
  DDL_ERROR_SYSTEM = 9,           /**< the operating system refused something; the sentence names the call */
  DDL_ERROR_INTERNAL = 10         /**< a defect of libddl */
};

typedef int32_t ddl_dtype;
enum {
  DDL_INT32 = 0,
  DDL_INT64 = 1,
  DDL_FLOAT32 = 2,
  DDL_FLOAT64 = 3,
  DDL_UINT8 = 4,
  DDL_INT8 = 5,
  DDL_UINT16 = 6,
  DDL_INT16 = 7,
  DDL_UINT32 = 8,
  DDL_UINT64 = 9,
  DDL_FLOAT16 = 10,  /**< IEEE 754 binary16: ddl_float16 */
  DDL_BFLOAT16 = 11, /**< the upper half of a float: ddl_bfloat16 */
  DDL_BOOL = 12      /**< one byte; 0 is false, results are 0 or 1 */
};

/** 16-bit floats by their bits. Both are combined as float, over all ranks, and rounded once (to nearest, ties to even).
 *  ddl/half.hpp converts them in C++. */
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
  DDL_LOGICAL_AND = 8, /**< 1 if every input is not 0, else 0 */
  DDL_LOGICAL_OR = 9,  /**< 1 if any input is not 0, else 0 */
  DDL_LOGICAL_XOR = 10 /**< 1 if an odd number of inputs is not 0, else 0 */
};

/** All ranks of the job. The only process set of this version. */
#define DDL_WORLD ((uint64_t)0)

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
  uint64_t process_set;   /**< DDL_WORLD */
  double timeout_seconds; /**< 0 = the context's; the call fails with DDL_ERROR_TIMEOUT after this long */
  void* stream; /**< device stream that the buffers belong to; NULL = host memory, all there is here */
} ddl_call_options;
#define DDL_CALL_OPTIONS_INIT \
  { (uint32_t)sizeof(ddl_call_options), 0u, DDL_WORLD, 0.0, (void*)0 }

/** Joins the job that this process was started in and stores the context in *context.
 *  Bootstraps are tried in this order: PMIx (ddlrun, mpirun, srun --mpi=pmix), then singleton (a world of one).
 *  If no launcher answers although the environment says that several processes were started, this fails with
 *  DDL_ERROR_BOOTSTRAP instead of silently making worlds of one.
 *  Collective: returns when all ranks have called it. At most one context is alive per process; a new one may be
 *  created after ddl_finalize(). options may be null. Starts one sleeping thread that watches for dead peers. */
DDL_API ddl_status ddl_init(const ddl_init_options* options, ddl_context** context);

/** Leaves the job and frees the context, also when it was aborted; unless it returns DDL_ERROR_BUSY, the context is gone.
 *  Not collective: a rank may leave while others still work, but not while they wait for it. Null is allowed and does
 *  nothing. In a child forked without exec it does nothing either. */
DDL_API ddl_status ddl_finalize(ddl_context* context);

DDL_API int32_t ddl_rank(const ddl_context* context);       /**< 0..size-1 */
DDL_API int32_t ddl_size(const ddl_context* context);       /**< number of ranks in the job */
DDL_API int32_t ddl_local_rank(const ddl_context* context); /**< 0..local_size-1 on this host */
DDL_API int32_t ddl_local_size(const ddl_context* context); /**< number of ranks on this host */
/** Index of this host among the hosts that have this local rank. */
DDL_API int32_t ddl_cross_rank(const ddl_context* context);
DDL_API int32_t ddl_cross_size(const ddl_context* context); /**< number of hosts that have this local rank */
/** Which bootstrap made the context: "pmix" or "singleton". Static storage. */
DDL_API const char* ddl_bootstrap_name(const ddl_context* context);

/** Combines count elements of every rank with op and gives all ranks the same bits, whatever the timing.
 *  Elements are combined in one fixed order: the ranks of each host in rank order, then the hosts by a tree over neighbours
 *  (docs/reference/libddl.md). recv may be send (in place); a partial overlap is refused. After an error
 *  other than those of arguments, busy and mismatch, what recv holds is undefined. */
DDL_API ddl_status ddl_allreduce(ddl_context* context, const void* send, void* recv, uint64_t count,
                                 ddl_dtype dtype, ddl_op op, const ddl_call_options* options);

/** Copies count elements of root's buffer into every other rank's buffer. */
DDL_API ddl_status ddl_broadcast(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype,
                                 int32_t root, const ddl_call_options* options);

/** Gathers count elements of every rank into recv, in rank order, on every rank: recv holds size*count elements.
 *  In place: send == recv + rank*count elements. */
DDL_API ddl_status ddl_allgather(ddl_context* context, const void* send, void* recv, uint64_t count,
                                 ddl_dtype dtype, const ddl_call_options* options);

/** Returns when every rank has called it. */
DDL_API ddl_status ddl_barrier(ddl_context* context, const ddl_call_options* options);

/** The calling thread's last error in one sentence; "" if there was none. Valid until its next call into libddl. */
DDL_API const char* ddl_last_error(void);
/** A short constant name of a status, such as "timeout". */
DDL_API const char* ddl_status_name(ddl_status status);
/** The library's version, such as "0.1.0". Static storage. */
DDL_API const char* ddl_version(void);

#ifdef __cplusplus
}
#endif

#endif /* DDL_DDL_H */
