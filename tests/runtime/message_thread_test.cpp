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

TEST_CASE("a receive from any rank fails when the last other one has left") {
  ThreadJob job = ddl::runtime::test::job_on(GENERATE(Hosts{{0, 1, 2}}, Hosts{{0, 2}, {1}}));
  const bool is_posted_first = GENERATE(false, true);
  CAPTURE(is_posted_first);
  std::promise<void> posting;
  std::shared_future<void> has_posted(posting.get_future());
  job.run([&](ddl_context*& context) {
    const int own = ddl_rank(context);
    std::int32_t value = own;
    ddl_handle* handle = nullptr;
    const auto receive = [&] {
      expect_ok(ddl_recv_async(context, &value, 1, DDL_INT32, DDL_ANY_RANK, 2, nullptr, nullptr, &handle),
                "recv");
    };
    if (own != 0) {
      expect_ok(ddl_send_async(context, &value, 1, DDL_INT32, 0, 1, nullptr, &handle), "send");
      expect_ok(ddl_wait(handle), "a small message");
      if (is_posted_first) has_posted.wait();
      const ddl_status left = ddl_finalize(context);
      context = nullptr;
      return expect_ok(left, "finalize");
    }
    for (int other = 1; other < 3; ++other) {
      expect_ok(ddl_recv_async(context, &value, 1, DDL_INT32, other, 1, nullptr, nullptr, &handle), "recv");
      expect_ok(ddl_wait(handle), "the message that connects");
    }
    receive();
    posting.set_value();
    expect_status(ddl_wait(handle), DDL_ERROR_PEER_LOST, "a receive without other ranks");
    expect_contains(ddl_last_error(), "left the job (finalize) during a message that is received");
  });
}

TEST_CASE("a message that has only been announced ends with the rank that sends it") {
  ThreadJob job = ddl::runtime::test::job_on(GENERATE(from_range(kTwo)));
  std::promise<void> leaving;
  std::shared_future<void> leaves(leaving.get_future());
  job.run([&](ddl_context*& context) {
    std::vector<std::int32_t> values(100'000, 7);
    ddl_handle* handle = nullptr;
    if (ddl_rank(context) == 0) {
      expect_ok(ddl_send_async(context, values.data(), values.size(), DDL_INT32, 1, 3, nullptr, &handle),
                "send");
      const ddl_status left = ddl_finalize(context);
      context = nullptr;
      expect_status(ddl_wait(handle), DDL_ERROR_ABORTED, "a message that nobody has received");
      expect_contains(ddl_last_error(), "this rank left the job during a message that is sent");
      leaving.set_value();
      return expect_ok(left, "finalize");
    }
    leaves.wait();
    values.assign(values.size(), -1);
    expect_ok(
        ddl_recv_async(context, values.data(), values.size(), DDL_INT32, 0, 3, nullptr, nullptr, &handle),
        "recv");
    expect_status(ddl_wait(handle), DDL_ERROR_PEER_LOST, "a message whose sender has left");
    expect(values == std::vector<std::int32_t>(values.size(), -1),
           "a buffer of a failed receive was written");
  });
}

TEST_CASE("a rank that frees a process set drops what it has not posted a receive for") {
  ThreadJob job = ddl::runtime::test::job_on(GENERATE(from_range(kTwo)));
  const bool is_sent_first = GENERATE(false, true);
  CAPTURE(is_sent_first);
  std::promise<void> freeing;
  std::shared_future<void> has_freed(freeing.get_future());
  job.run([&](ddl_context*& context) {
    std::uint64_t set = DDL_NO_PROCESS_SET;
    const std::int32_t ranks[] = {0, 1};
    expect_ok(ddl_process_set_create(context, ranks, 2, &set), "a process set");
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.process_set = set;
    std::vector<std::int32_t> large(100'000), posted(100'000);
    ddl_handle* handles[2] = {};
    const int own = ddl_rank(context);
    if (own == 1)
      expect_ok(ddl_recv_async(context, posted.data(), posted.size(), DDL_INT32, 0, 6, &options, nullptr,
                               &handles[0]),
                "recv");
    if (own == 0 && !is_sent_first) has_freed.wait();
    if (own == 0) {
      expect_ok(ddl_send_async(context, large.data(), large.size(), DDL_INT32, 1, 5, &options, &handles[0]),
                "send");
      if (is_sent_first) {
        expect_ok(ddl_send_async(context, &own, 1, DDL_INT32, 1, 1, nullptr, &handles[1]), "send");
        expect_ok(ddl_wait(handles[1]), "a message of the world");
      }
      // As many as take the space for copied messages several times.
      for (int i = 0; i < 400; ++i) {
        ddl_handle* small = nullptr;
        expect_ok(ddl_send_async(context, large.data(), 2000, DDL_INT32, 1, 1000 + i, &options, &small),
                  "a small send");
        const ddl_status sent = ddl_wait(small);
        expect(sent == DDL_OK || sent == DDL_ERROR_ABORTED, "a small send of a set that the receiver frees");
      }
      large.assign(large.size(), 9);
      expect_ok(ddl_send_async(context, large.data(), large.size(), DDL_INT32, 1, 6, &options, &handles[1]),
                "send");
      expect_status(ddl_wait(handles[0]), DDL_ERROR_ABORTED, "a send that nobody receives");
      expect_contains(ddl_last_error(), "rank 1 on host");
      expect_contains(ddl_last_error(), "has freed the process set");
      expect_ok(ddl_wait(handles[1]), "a send whose receive was posted before");
    } else {
      if (is_sent_first) {
        // It comes behind one that is to be dropped.
        std::int32_t value = 0;
        expect_ok(ddl_recv_async(context, &value, 1, DDL_INT32, 0, 1, nullptr, nullptr, &handles[1]), "recv");
        expect_ok(ddl_wait(handles[1]), "a message of the world");
      }
      expect_ok(ddl_process_set_free(context, set), "free");
      freeing.set_value();
      expect_ok(ddl_wait(handles[0]), "a receive that was posted before");
      expect(posted == std::vector<std::int32_t>(posted.size(), 9), "another message");
    }
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    if (own == 0) expect_ok(ddl_process_set_free(context, set), "free");
  });
}

TEST_CASE("messages without a receive take a limited space, also empty ones") {
  ThreadJob job = ddl::runtime::test::job_on(GENERATE(from_range(kTwo)));
  job.run([](ddl_context*& context) {
    constexpr int kFit = (1 << 20) / 64;  // frames
    if (ddl_rank(context) == 0) {
      std::vector<ddl_handle*> handles(kFit + 1);
      std::int32_t done = 0;
      for (ddl_handle*& handle : handles) {
        expect_ok(ddl_send_async(context, &done, 0, DDL_INT32, 1, 2, nullptr, &handle), "send");
        expect_ok(ddl_test(handle, &done), "test");
        expect(done == (&handle != &handles.back() ? 1 : 0), "how far an empty message is");
      }
      expect_ok(ddl_barrier(context, nullptr), "barrier");
      return expect_ok(ddl_wait_all(handles.data(), handles.size()), "all messages");
    }
    expect_ok(ddl_barrier(context, nullptr), "barrier");
    for (int i = 0; i <= kFit; ++i) {
      ddl_handle* handle = nullptr;
      std::int32_t nothing = 0;
      expect_ok(ddl_recv_async(context, &nothing, 0, DDL_INT32, 0, 2, nullptr, nullptr, &handle), "recv");
      expect_ok(ddl_wait(handle), "an empty message");
    }
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
