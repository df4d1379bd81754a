/* More than 2^31 elements and bytes in one call, over the installed interface: says "large counts: rank R of 2 by
 * OPERATIONS" and exits with 0. About 4.5 GiB a rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddl/ddl.h"

static const uint64_t kCount = (1ull << 31) + 1027;

static int failed(const char* call, ddl_status status) {
  if (status == DDL_OK) return 0;
  fprintf(stderr, "%s: %s\n", call, ddl_last_error());
  return 1;
}

/* Differs between neighbours, between ranks and between what stands 2^31 or 2^32 apart. */
static uint8_t value(int rank, uint64_t e) {
  return (uint8_t)((uint64_t)rank * 31 + e + (e >> 13) + (e >> 31) * 7);
}

static int wrong(const char* call, const uint8_t* got, uint64_t count, uint8_t (*wanted)(uint64_t)) {
  for (uint64_t e = 0; e < count; ++e) {
    if (got[e] == wanted(e)) continue;
    fprintf(stderr, "%s: element %llu is wrong\n", call, (unsigned long long)e);
    return 1;
  }
  return 0;
}

static uint8_t summed(uint64_t e) { return (uint8_t)(value(0, e) + value(1, e)); }
static uint8_t of_last(uint64_t e) { return value(1, e); }
static uint8_t gathered(uint64_t e) {
  const uint64_t half = kCount / 2 + 1;
  return value(e < half ? 0 : 1, e < half ? e : e - half);
}

int main(void) {
  ddl_context* context = NULL;
  if (failed("init", ddl_init(NULL, &context))) return 1;
  const int rank = ddl_rank(context);
  const uint64_t half = kCount / 2 + 1;
  uint8_t* const send = malloc(kCount);
  uint8_t* const recv = malloc(2 * half);
  if (ddl_size(context) != 2 || send == NULL || recv == NULL) {
    fprintf(stderr, "needs two ranks and memory\n");
    return 1;
  }
  for (uint64_t e = 0; e < kCount; ++e) send[e] = value(rank, e);
  int bad = failed("allreduce", ddl_allreduce(context, send, recv, kCount, DDL_UINT8, DDL_SUM, NULL)) ||
            wrong("allreduce", recv, kCount, summed);
  bad = bad || failed("allgather", ddl_allgather(context, send, recv, half, DDL_UINT8, NULL)) ||
        wrong("allgather", recv, 2 * half, gathered);
  bad = bad || failed("broadcast", ddl_broadcast(context, send, kCount, DDL_UINT8, 1, NULL)) ||
        wrong("broadcast", send, kCount, of_last);
  memset(recv, 0, kCount);
  if (!bad) {
    bad = rank == 0 ? failed("send", ddl_send(context, send, kCount, DDL_UINT8, 1, NULL))
                    : failed("recv", ddl_recv(context, recv, kCount, DDL_UINT8, 0, NULL)) ||
                          wrong("recv", recv, kCount, of_last);
  }
  if (!bad) printf("large counts: rank %d of 2 by %s\n", rank, ddl_backend_name(context));
  free(send);
  free(recv);
  return bad || failed("finalize", ddl_finalize(context));
}
