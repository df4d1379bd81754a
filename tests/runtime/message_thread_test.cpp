// Messages with ranks as threads: the conformance suite, waiting, leaving and aborts.
#include <algorithm>
#include <future>
#include <vector>

#include "runtime/src/api/c_abi.h"
#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::Hosts;
using ddl::runtime::test::ThreadJob;

namespace {

/// Two ranks on one host, and on two.
const std::vector<Hosts> kTwo = {{{0, 1}}, {{0}, {1}}};

}  // namespace

TEST_CASE("messages conform, on one host and on several") {
  const Hosts hosts =
      GENERATE(Hosts{{0}}, Hosts{{0, 1}}, Hosts{{0}, {1}}, Hosts{{0, 1, 2}}, Hosts{{0, 2, 4}, {1, 3}});
  ThreadJob job = ddl::runtime::test::job_on(hosts);
  job.spin = std::chrono::microseconds(GENERATE(0, 50));
  job.run([](ddl_context*& context) { check_messages(context, 17); });
}

TEST_CASE("what a rank has sent arrives after it has left") {
  const Hosts hosts = GENERATE(from_range(kTwo));
  ThreadJob job = ddl::runtime::test::job_on(hosts);
  const int messages = GENERATE(1, 200);
  std::promise<void> leaving;
  std::shared_future<void> leaves(leaving.get_future());
  job.run([&](ddl_context*& context) {
    std::vector<std::int32_t> values(4000);
    ddl_handle* handle = nullptr;
    if (ddl_rank(context) == 0) {
      const int copied = std::min(messages, 64);  // what one rank may have under way
      for (int i = 0; i < copied; ++i) {
        values.assign(values.size(), i);
        expect_ok(ddl_send_async(context, values.data(), values.size(), DDL_INT32, 1, 3, nullptr, &handle),
                  "send");
        expect_ok(ddl_wait(handle), "a small message is complete at once");
      }
      leaving.set_value();
      const ddl_status left = ddl_finalize(context);
      context = nullptr;
      return expect_ok(left, "finalize");
    }
    leaves.wait();
    for (int i = 0; i < std::min(messages, 64); ++i) {
      expect_ok(
          ddl_recv_async(context, values.data(), values.size(), DDL_INT32, 0, 3, nullptr, nullptr, &handle),
          "recv");
      expect_ok(ddl_wait(handle), "a message of a rank that leaves");
      expect(values == std::vector<std::int32_t>(values.size(), i), "another message");
    }
  });
}

TEST_CASE("a rank that leaves without having sent is an error for the receive that waits for it") {
  const Hosts hosts = GENERATE(from_range(kTwo));
  ThreadJob job = ddl::runtime::test::job_on(hosts);
  const bool have_met = GENERATE(false, true);
  const bool sends = GENERATE(false, true);
  CAPTURE(have_met, sends);
  job.run([&](ddl_context*& context) {
    const int own = ddl_rank(context);
    std::vector<std::int32_t> values(100'000);
    ddl_handle* handle = nullptr;
    if (have_met) {
      ddl_handle* both[2] = {};
      std::int32_t in = 0, out = own;
      expect_ok(ddl_recv_async(context, &in, 1, DDL_INT32, 1 - own, 1, nullptr, nullptr, &both[0]), "recv");
      expect_ok(ddl_send_async(context, &out, 1, DDL_INT32, 1 - own, 1, nullptr, &both[1]), "send");
      expect_ok(ddl_wait_all(both, 2), "the first messages");
      expect(in == 1 - own, "another message");
    }
    if (own == 0) {
      const ddl_status left = ddl_finalize(context);
      context = nullptr;
      return expect_ok(left, "finalize");
    }
    expect_ok(sends ? ddl_send_async(context, values.data(), values.size(), DDL_INT32, 0, 2, nullptr, &handle)
                    : ddl_recv_async(context, values.data(), values.size(), DDL_INT32, 0, 2, nullptr, nullptr,
                                     &handle),
              "a message for a rank that leaves");
    expect_status(ddl_wait(handle), DDL_ERROR_PEER_LOST, "the message without the other rank");
    expect_contains(ddl_last_error(), "rank 0 on host0 (pid ");
    expect_contains(ddl_last_error(), "left the job (finalize)");
    expect_status(ddl_send_async(context, values.data(), 1, DDL_INT32, 0, 2, nullptr, &handle),
                  DDL_ERROR_ABORTED, "the next message");
  });
}

TEST_CASE("a receive that nobody sends to ends at its time limit") {
  const Hosts hosts = GENERATE(from_range(kTwo));
  ThreadJob job = ddl::runtime::test::job_on(hosts);
  const int from = GENERATE(0, DDL_ANY_RANK);
  std::promise<void> gave_up;
  std::shared_future<void> given_up(gave_up.get_future());
  job.run([&](ddl_context*& context) {
    std::int32_t value = 0;
    ddl_handle* handle = nullptr;
    if (ddl_rank(context) == 0) {
      given_up.wait();
      return expect_status(ddl_barrier(context, nullptr), DDL_ERROR_TIMEOUT, "a call after somebody gave up");
    }
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.timeout_seconds = 0.05;
    expect_ok(ddl_recv_async(context, &value, 1, DDL_INT32, from, 4, &options, nullptr, &handle), "recv");
    const ddl_status status = ddl_wait(handle);
    const std::string sentence = ddl_last_error();
    gave_up.set_value();
    expect_status(status, DDL_ERROR_TIMEOUT, "the receive");
    expect_contains(sentence, "gave up after 0.05 s in a message that is received (int32, 1 element, tag 4)");
    expect_contains(sentence, from == 0 ? "from rank 0 on host0 (pid " : "from any rank");
  });
}

TEST_CASE("an abort ends open messages, and leaving does too") {
  const Hosts hosts = GENERATE(from_range(kTwo));
  ThreadJob job = ddl::runtime::test::job_on(hosts);
  const bool aborts = GENERATE(false, true);
  std::promise<void> posted;
  std::shared_future<void> has_posted(posted.get_future());
  job.run([&](ddl_context*& context) {
    std::vector<std::int32_t> values(100'000);
    ddl_handle* handles[2] = {};
    const int other = 1 - ddl_rank(context);
    expect_ok(ddl_recv_async(context, values.data(), 1, DDL_INT32, other, 4, nullptr, nullptr, &handles[0]),
              "recv");
    expect_ok(
        ddl_recv_async(context, values.data(), 1, DDL_INT32, DDL_ANY_RANK, 4, nullptr, nullptr, &handles[1]),
        "recv from any");
    if (aborts && ddl_rank(context) == 0) {
      posted.set_value();
      expect_status(ddl_wait(handles[0]), DDL_ERROR_ABORTED, "a receive of a job that is aborted");
      expect_contains(ddl_last_error(), "aborted the job with code 5");
      expect_status(ddl_wait(handles[1]), DDL_ERROR_ABORTED, "the other one");
      return;
    }
    if (aborts) {
      has_posted.wait();
      context->context->abort(5, "no more", false);
      expect_status(ddl_wait_all(handles, 2), DDL_ERROR_ABORTED, "receives of the rank that aborts");
      return;
    }
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    const ddl_status left = ddl_finalize(context);
    context = nullptr;
    // The other one may have noticed first.
    if (left == DDL_OK) {
      const ddl_status status = ddl_wait(handles[0]);
      expect(status == DDL_ERROR_ABORTED || status == DDL_ERROR_PEER_LOST,
             "a receive of a rank that has left");
    } else {
      (void)ddl_wait(handles[0]);
    }
    (void)ddl_wait(handles[1]);
  });
}
