/* The declarations of ddl.h of version 0.1, as programs were compiled with them. Not to be changed. */
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
typedef struct ddl_context ddl_context;
typedef int32_t ddl_status;
enum {
  DDL_OK = 0,
  DDL_ERROR_INVALID_ARGUMENT = 1,
  DDL_ERROR_MISMATCH = 2,
  DDL_ERROR_BUSY = 3,
  DDL_ERROR_TIMEOUT = 4,
  DDL_ERROR_PEER_LOST = 5,
  DDL_ERROR_ABORTED = 6,
  DDL_ERROR_BOOTSTRAP = 7,
  DDL_ERROR_UNSUPPORTED = 8,
  DDL_ERROR_SYSTEM = 9,
  DDL_ERROR_INTERNAL = 10
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
  DDL_FLOAT16 = 10,
  DDL_BFLOAT16 = 11,
  DDL_BOOL = 12
};
typedef struct ddl_float16 {
  uint16_t bits;
} ddl_float16;
typedef struct ddl_bfloat16 {
  uint16_t bits;
} ddl_bfloat16;
typedef int32_t ddl_op;
enum {
  DDL_SUM = 0,
  DDL_AVERAGE = 1,
  DDL_MIN = 2,
  DDL_MAX = 3,
  DDL_PRODUCT = 4,
  DDL_BIT_AND = 5,
  DDL_BIT_OR = 6,
  DDL_BIT_XOR = 7,
  DDL_LOGICAL_AND = 8,
  DDL_LOGICAL_OR = 9,
  DDL_LOGICAL_XOR = 10
};
#define DDL_WORLD ((uint64_t)0)
#define DDL_NO_PROCESS_SET (~(uint64_t)0)
typedef struct ddl_init_options {
  uint32_t struct_size;
  uint32_t reserved;
  double timeout_seconds;
} ddl_init_options;
#define DDL_INIT_OPTIONS_INIT \
  { (uint32_t)sizeof(ddl_init_options), 0u, 0.0 }
typedef struct ddl_call_options {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t process_set;
  double timeout_seconds;
  void* stream;
  double prescale;
  double postscale;
} ddl_call_options;
#define DDL_CALL_OPTIONS_INIT \
  { (uint32_t)sizeof(ddl_call_options), 0u, DDL_WORLD, 0.0, (void*)0, 1.0, 1.0 }
DDL_API ddl_status ddl_init(const ddl_init_options* options, ddl_context** context);
DDL_API ddl_status ddl_finalize(ddl_context* context);
DDL_API int32_t ddl_rank(const ddl_context* context);
DDL_API int32_t ddl_size(const ddl_context* context);
DDL_API int32_t ddl_local_rank(const ddl_context* context);
DDL_API int32_t ddl_local_size(const ddl_context* context);
DDL_API int32_t ddl_cross_rank(const ddl_context* context);
DDL_API int32_t ddl_cross_size(const ddl_context* context);
DDL_API const char* ddl_bootstrap_name(const ddl_context* context);
DDL_API const char* ddl_cpu_operations(const ddl_context* context);
DDL_API ddl_status ddl_allreduce(ddl_context* context, const void* send, void* recv, uint64_t count,
                                 ddl_dtype dtype, ddl_op op, const ddl_call_options* options);
DDL_API ddl_status ddl_reduce(ddl_context* context, const void* send, void* recv, uint64_t count,
                              ddl_dtype dtype, ddl_op op, int32_t root, const ddl_call_options* options);
DDL_API ddl_status ddl_reduce_scatter(ddl_context* context, const void* send, void* recv,
                                      const uint64_t* counts, ddl_dtype dtype, ddl_op op,
                                      const ddl_call_options* options);
DDL_API ddl_status ddl_scan(ddl_context* context, const void* send, void* recv, uint64_t count,
                            ddl_dtype dtype, ddl_op op, const ddl_call_options* options);
DDL_API ddl_status ddl_broadcast(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype,
                                 int32_t root, const ddl_call_options* options);
DDL_API ddl_status ddl_allgather(ddl_context* context, const void* send, void* recv, uint64_t count,
                                 ddl_dtype dtype, const ddl_call_options* options);
DDL_API ddl_status ddl_allgatherv(ddl_context* context, const void* send, void* recv, const uint64_t* counts,
                                  ddl_dtype dtype, const ddl_call_options* options);
DDL_API ddl_status ddl_gather(ddl_context* context, const void* send, void* recv, uint64_t count,
                              ddl_dtype dtype, int32_t root, const ddl_call_options* options);
DDL_API ddl_status ddl_scatter(ddl_context* context, const void* send, void* recv, uint64_t count,
                               ddl_dtype dtype, int32_t root, const ddl_call_options* options);
DDL_API ddl_status ddl_alltoall(ddl_context* context, const void* send, void* recv, uint64_t count,
                                ddl_dtype dtype, const ddl_call_options* options);
DDL_API ddl_status ddl_alltoallv(ddl_context* context, const void* send, const uint64_t* send_counts,
                                 void* recv, uint64_t recv_capacity, uint64_t* recv_counts, ddl_dtype dtype,
                                 const ddl_call_options* options);
DDL_API ddl_status ddl_send(ddl_context* context, const void* buffer, uint64_t count, ddl_dtype dtype,
                            int32_t to, const ddl_call_options* options);
DDL_API ddl_status ddl_recv(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype, int32_t from,
                            const ddl_call_options* options);
DDL_API ddl_status ddl_alloc(ddl_context* context, uint64_t bytes, void** memory);
DDL_API ddl_status ddl_free(ddl_context* context, void* memory);
DDL_API ddl_status ddl_barrier(ddl_context* context, const ddl_call_options* options);
DDL_API ddl_status ddl_process_set_create(ddl_context* context, const int32_t* ranks, int32_t count,
                                          uint64_t* process_set);
DDL_API ddl_status ddl_process_set_split(ddl_context* context, uint64_t parent, int32_t color, int32_t key,
                                         uint64_t* process_set);
DDL_API ddl_status ddl_process_set_free(ddl_context* context, uint64_t process_set);
DDL_API int32_t ddl_process_set_rank(const ddl_context* context, uint64_t process_set);
DDL_API int32_t ddl_process_set_size(const ddl_context* context, uint64_t process_set);
DDL_API ddl_status ddl_process_set_ranks(const ddl_context* context, uint64_t process_set, int32_t* ranks);
DDL_API int32_t ddl_mpi_built(void);
DDL_API int32_t ddl_nccl_built(void);
DDL_API int32_t ddl_cuda_built(void);
DDL_API int32_t ddl_rocm_built(void);
DDL_API int32_t ddl_mpi_enabled(void);
DDL_API int32_t ddl_mpi_threads_supported(void);
DDL_API const char* ddl_mpi_library(void);
DDL_API const char* ddl_last_error(void);
DDL_API const char* ddl_status_name(ddl_status status);
DDL_API const char* ddl_algorithm_table(void);
DDL_API const char* ddl_version(void);
#ifdef __cplusplus
}
#endif
#endif
