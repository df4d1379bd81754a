/* Every function of ddl.h from C11, once, as a user would call it.
 * Says "rank R of N: every function works" and exits with 0, or says what does not and exits with 1. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddl/ddl.h"

static ddl_context* context;
static int32_t rank, size;

static void fail(int line, const char* what) {
  fprintf(stderr, "rank %d: line %d: %s: %s\n", rank, line, what, ddl_last_error());
  exit(1);
}
#define EXPECT(condition)                         \
  do {                                            \
    if (!(condition)) fail(__LINE__, #condition); \
  } while (0)
#define CALL(call) EXPECT((call) == DDL_OK)

enum { kMaxRanks = 64 }; /* the maximum number of ranks */

static void transfers(void) {
  int32_t word = rank == 0 ? 42 : -1;
  if (size == 1) return;
  if (rank == 0) CALL(ddl_send(context, &word, 1, DDL_INT32, size - 1, NULL));
  if (rank == size - 1) CALL(ddl_recv(context, &word, 1, DDL_INT32, 0, NULL));
  EXPECT(word == (rank == 0 || rank == size - 1 ? 42 : -1));
}

static void messages(void) {
  ddl_handle* handles[2];
  int32_t sent = rank, received = -1, source = -1, done = -1;
  CALL(ddl_recv_async(context, &received, 1, DDL_INT32, DDL_ANY_RANK, DDL_ANY_TAG, NULL, &source,
                      &handles[0]));
  CALL(ddl_send_async(context, &sent, 1, DDL_INT32, (rank + 1) % size, 3, NULL, &handles[1]));
  CALL(ddl_test(handles[0], &done));
  EXPECT(done == 0 || done == 1);
  CALL(ddl_wait_all(handles, 2));
  EXPECT(received == (rank + size - 1) % size && source == received);
}

static void who(void) {
  EXPECT(rank >= 0 && rank < size && size <= kMaxRanks);
  EXPECT(ddl_local_rank(context) >= 0 && ddl_local_rank(context) < ddl_local_size(context));
  EXPECT(ddl_cross_rank(context) >= 0 && ddl_cross_rank(context) < ddl_cross_size(context));
  EXPECT(strlen(ddl_bootstrap_name(context)) > 0 && strlen(ddl_version()) > 0);
  EXPECT(strcmp(ddl_status_name(DDL_ERROR_TIMEOUT), "timeout") == 0);
  EXPECT(strcmp(ddl_status_name(DDL_ERROR_INTERRUPTED), "interrupted") == 0);
  CALL(ddl_set_interrupt_check(NULL, NULL));
  int32_t changed = 1;
  CALL(ddl_elastic_check(context, &changed));
  CALL(ddl_elastic_finished(context));
  EXPECT(changed == 0 && ddl_elastic_generation(context) == -1 && ddl_elastic_generation(NULL) == -1);
  EXPECT(strcmp(ddl_backend_name(context), "ddl") == 0 && strcmp(ddl_backend_name(NULL), "") == 0);
  EXPECT(ddl_has_feature("mpi-enabled") == 0 && ddl_has_feature("mpi-threads") == 0 &&
         strcmp(ddl_mpi_library(), "") == 0);
  EXPECT(ddl_has_feature("mpi") == 0 || ddl_has_feature("mpi") == 1);
  EXPECT(ddl_has_feature("") == 0 && ddl_has_feature("what nobody has") == 0 && ddl_has_feature(NULL) == 0);
  EXPECT(ddl_dtype_size(DDL_FLOAT64) == sizeof(double) && ddl_dtype_size(DDL_FLOAT8_E5M2) == 1 &&
         ddl_dtype_size(0x304) == 0);
}

static void reductions(void) {
  const int64_t one[3] = {rank, 1, -rank};
  int64_t all[3], sum = 0, part = -1, first = rank + 1;
  CALL(ddl_allreduce(context, one, all, 3, DDL_INT64, DDL_SUM, NULL));
  EXPECT(all[0] == (int64_t)size * (size - 1) / 2 && all[1] == size && all[2] == -all[0]);

  CALL(ddl_reduce(context, &one[1], rank == size - 1 ? &sum : NULL, 1, DDL_INT64, DDL_SUM, size - 1, NULL));
  EXPECT(sum == (rank == size - 1 ? size : 0));

  int64_t parts[kMaxRanks];
  uint64_t counts[kMaxRanks];
  for (int r = 0; r < size; ++r) {
    parts[r] = 10 * r + rank;
    counts[r] = 1;
  }
  CALL(ddl_reduce_scatter(context, parts, &part, counts, DDL_INT64, DDL_MAX, NULL));
  EXPECT(part == 10 * rank + size - 1);

  CALL(ddl_scan(context, &first, &first, 1, DDL_INT64, DDL_SUM, NULL));
  EXPECT(first == (int64_t)(rank + 1) * (rank + 2) / 2);

  float scaled = 8;
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.prescale = 0.25;
  options.postscale = 3.0;
  CALL(ddl_allreduce(context, &scaled, &scaled, 1, DDL_FLOAT32, DDL_SUM, &options));
  EXPECT(scaled == 6.0f * (float)size);
}

static void gathers(void) {
  uint16_t letter = (uint16_t)('a' + rank), letters[kMaxRanks];
  memset(letters, 0, sizeof letters);
  CALL(ddl_allgather(context, &letter, letters, 1, DDL_UINT16, NULL));
  for (int r = 0; r < size; ++r) EXPECT(letters[r] == 'a' + r);

  /* Rank r has r elements. */
  uint64_t counts[kMaxRanks];
  uint8_t own[kMaxRanks], bytes[kMaxRanks * kMaxRanks];
  for (int r = 0; r < size; ++r) counts[r] = (uint64_t)r;
  memset(own, rank, sizeof own);
  CALL(ddl_allgatherv(context, own, bytes, counts, DDL_UINT8, NULL));
  for (int r = 0, at = 0; r < size; at += r++) {
    for (int e = 0; e < r; ++e) EXPECT(bytes[at + e] == r);
  }

  memset(letters, 0, sizeof letters);
  CALL(ddl_gather(context, &letter, rank == 0 ? letters : NULL, 1, DDL_UINT16, 0, NULL));
  for (int r = 0; r < size; ++r) EXPECT(letters[r] == (rank == 0 ? 'a' + r : 0));
  letter = 0;
  CALL(ddl_scatter(context, rank == 0 ? letters : NULL, &letter, 1, DDL_UINT16, 0, NULL));
  EXPECT(letter == 'a' + rank);
}

static void exchanges(void) {
  double numbers[kMaxRanks];
  for (int r = 0; r < size; ++r) numbers[r] = 100 * rank + r;
  CALL(ddl_alltoall(context, numbers, numbers, 1, DDL_FLOAT64, NULL));
  for (int r = 0; r < size; ++r) EXPECT(numbers[r] == 100 * r + rank);

  /* r elements for rank r. */
  uint64_t send_counts[kMaxRanks], recv_counts[kMaxRanks];
  int32_t send[kMaxRanks * kMaxRanks], recv[kMaxRanks * kMaxRanks];
  for (int r = 0, at = 0; r < size; at += r++) {
    send_counts[r] = (uint64_t)r;
    for (int e = 0; e < r; ++e) send[at + e] = rank;
  }
  CALL(ddl_alltoallv(context, send, send_counts, recv, kMaxRanks * kMaxRanks, recv_counts, DDL_INT32, NULL));
  for (int r = 0; r < size; ++r) {
    EXPECT(recv_counts[r] == (uint64_t)rank);
    for (int e = 0; e < rank; ++e) EXPECT(recv[r * rank + e] == r);
  }

  int8_t root = (int8_t)rank;
  CALL(ddl_broadcast(context, &root, 1, DDL_INT8, size - 1, NULL));
  EXPECT(root == size - 1);
  CALL(ddl_barrier(context, NULL));
}

/* Of a rank that makes a set alone: nobody else needs the store, so it may be empty. */
static int32_t put_nothing(void* argument, const char* key, const void* value, uint64_t bytes) {
  (void)argument, (void)key, (void)value, (void)bytes;
  return 0;
}
static int64_t get_nothing(void* argument, const char* key, double seconds, void* value, uint64_t capacity) {
  (void)argument, (void)key, (void)seconds, (void)value, (void)capacity;
  return -1;
}

static void process_sets(void) {
  const int32_t ends[2] = {size - 1, 0};
  uint64_t set = 0, half = 0;
  CALL(ddl_process_set_create(context, ends, size == 1 ? 1 : 2, &set));
  if (rank != 0 && rank != size - 1) EXPECT(set == DDL_NO_PROCESS_SET);
  if (set != DDL_NO_PROCESS_SET) {
    int32_t ranks[2] = {-1, -1};
    EXPECT(ddl_process_set_size(context, set) == (size == 1 ? 1 : 2));
    EXPECT(ddl_process_set_rank(context, set) == (rank == size - 1 ? 0 : 1));
    CALL(ddl_process_set_ranks(context, set, ranks));
    EXPECT(ranks[0] == size - 1 && (size == 1 || ranks[1] == 0));
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.process_set = set;
    int32_t from_first = rank;
    CALL(ddl_broadcast(context, &from_first, 1, DDL_INT32, 0, &options));
    EXPECT(from_first == size - 1);
  }
  CALL(ddl_process_set_split(context, DDL_WORLD, rank % 2, -rank, &half));
  EXPECT(ddl_process_set_size(context, half) == (size + 1 - rank % 2) / 2);
  CALL(ddl_process_set_free(context, half));
  ddl_store store = DDL_STORE_INIT;
  store.put = put_nothing;
  store.get = get_nothing;
  uint64_t own = 0;
  CALL(ddl_process_set_create_by_members(context, &rank, 1, "own", &store, &own));
  EXPECT(ddl_process_set_size(context, own) == 1);
  CALL(ddl_process_set_free(context, own));
  CALL(ddl_process_set_free(context, set));
  EXPECT(ddl_process_set_rank(context, half) == -1);
}

static void shared_memory(void) {
  enum { kCount = 20000 };
  void* memory = NULL;
  CALL(ddl_alloc(context, kCount * sizeof(double), &memory));
  EXPECT(memory != NULL);
  double* values = memory;
  for (int i = 0; i < kCount; ++i) {
    EXPECT(values[i] == 0);
    values[i] = i;
  }
  CALL(ddl_allreduce(context, values, values, kCount, DDL_FLOAT64, DDL_SUM, NULL));
  for (int i = 0; i < kCount; ++i) EXPECT(values[i] == (double)i * size);
  CALL(ddl_free(context, values));
  CALL(ddl_free(context, NULL));
}

static void errors(void) {
  float value = 0;
  EXPECT(ddl_broadcast(context, &value, 1, DDL_FLOAT32, size, NULL) == DDL_ERROR_INVALID_ARGUMENT);
  EXPECT(strstr(ddl_last_error(), "root") != NULL);
  EXPECT(ddl_abort(NULL, 1, "no context") == DDL_ERROR_INVALID_ARGUMENT);
  if (size == 1) return;
  EXPECT(ddl_allreduce(context, &value, &value, rank == 1 ? 0 : 1, DDL_FLOAT32, DDL_SUM, NULL) ==
         DDL_ERROR_MISMATCH);
  EXPECT(strstr(ddl_last_error(), "rank 1 on ") != NULL);
}

int main(void) {
  ddl_init_options options = DDL_INIT_OPTIONS_INIT;
  options.timeout_seconds = 60.0;
  CALL(ddl_init(&options, &context));
  rank = ddl_rank(context);
  size = ddl_size(context);
  who();
  reductions();
  transfers();
  messages();
  gathers();
  exchanges();
  process_sets();
  shared_memory();
  errors();
  CALL(ddl_finalize(context));
  printf("rank %d of %d: every function works\n", rank, size);
  return 0;
}
