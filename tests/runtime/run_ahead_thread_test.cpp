// The root of a broadcast returns before the others have called; what was wrong with that call, its next one tells.
#include <future>
#include <latch>

#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::ThreadJob;

namespace {

ddl_status broadcast(ddl_context* context, std::int32_t& value, double timeout_seconds = 0.0) {
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.timeout_seconds = timeout_seconds;
  return ddl_broadcast(context, &value, 1, DDL_INT32, 0, &options);
}

}  // namespace

TEST_CASE("the root of a broadcast does not wait for the others") {
  ThreadJob job;
  job.ranks = GENERATE(2, 3);
  std::latch root_has_returned(1);
  job.run([&](ddl_context*& context) {
    const bool is_root = ddl_rank(context) == 0;
    std::int32_t value = is_root ? 7 : 0;
    if (!is_root) root_has_returned.wait();
    expect_ok(broadcast(context, value), "broadcast");
    if (is_root) root_has_returned.count_down();
    expect(value == 7, "the value of the root");
    // Its buffer is its own again, and further calls see what they should.
    for (std::int32_t round = 0; round < 100; ++round) {
      value = is_root ? round : -1;
      expect_ok(broadcast(context, value), "broadcast");
      expect(value == round, "the value of a later broadcast");
      std::int32_t sum = 1;
      if (round % 3 == 0) {
        expect_ok(ddl_allreduce(context, &sum, &sum, 1, DDL_INT32, DDL_SUM, nullptr), "allreduce");
        expect(sum == job.ranks, "the sum after a broadcast");
      }
    }
  });
}

TEST_CASE(
    "a root that has returned from a broadcast gets its mismatch from the next call, which does not run") {
  ThreadJob job;
  job.ranks = 3;
  const bool finalizes = GENERATE(false, true);
  job.run([&](ddl_context*& context) {
    std::int32_t value = 5;
    ddl_status status = DDL_OK;
    if (ddl_rank(context) == 0) {
      expect_ok(broadcast(context, value), "the broadcast that the others do not make");
      if (finalizes) {
        status = ddl_finalize(context);
        context = nullptr;
      } else {
        status = ddl_allreduce(context, &value, &value, 1, DDL_INT32, DDL_SUM, nullptr);
      }
      expect(value == 5, "the next call has run");
    } else {
      status = ddl_barrier(context, nullptr);
    }
    expect_status(status, DDL_ERROR_MISMATCH, "calls that differ");
    expect_contains(
        ddl_last_error(),
        "rank 0 on host0 called broadcast(root 0, int32, 1 element), rank 1 on host1 called barrier()");
    if (finalizes) return;
    // All have had their error for the same call, so they go on alike.
    std::int32_t sum = 1;
    expect_ok(ddl_allreduce(context, &sum, &sum, 1, DDL_INT32, DDL_SUM, nullptr), "allreduce");
    expect(sum == 3, "the sum after the mismatch");
  });
}

TEST_CASE("a rank that never joins a broadcast is named by the root's next call") {
  ThreadJob job;
  job.ranks = 2;
  std::promise<void> gave_up;
  job.run([&](ddl_context*& context) {
    std::int32_t value = 1;
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    if (ddl_rank(context) == 1) return gave_up.get_future().wait();
    expect_ok(broadcast(context, value), "broadcast");
    const ddl_status status = broadcast(context, value, 0.05);
    const std::string sentence = status == DDL_OK ? "" : ddl_last_error();
    gave_up.set_value();
    expect_status(status, DDL_ERROR_TIMEOUT, "the call after the broadcast");
    expect_contains(
        sentence, "gave up after 0.05 s in broadcast #2 (root 0, int32, 1 element): not arrived: rank 1 on ");
  });
}

TEST_CASE("a rank that leaves instead of joining a broadcast is named by the root's next call") {
  ThreadJob job;
  job.ranks = 2;
  const bool root_finalizes = GENERATE(false, true);
  job.run([&](ddl_context*& context) {
    std::int32_t value = 1;
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    if (ddl_rank(context) == 1) return;
    expect_ok(broadcast(context, value), "broadcast");
    ddl_status status = DDL_OK;
    if (root_finalizes) {
      status = ddl_finalize(context);
      context = nullptr;
    } else {
      status = ddl_barrier(context, nullptr);
    }
    expect_status(status, DDL_ERROR_PEER_LOST, "what follows the broadcast");
    expect_contains(ddl_last_error(), "rank 1 on host1 (pid ");
    expect_contains(ddl_last_error(), "left the job (finalize)");
  });
}
