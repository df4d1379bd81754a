// Which calls the ranks make for named tensors, and in which order they execute them.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/src/api/c_abi.h"
#include "runtime/src/wire/control_links.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::Engine;
using ddl::runtime::test::ThreadJob;

namespace {

ThreadJob job_of_calls(int ranks, int hosts) {
  ThreadJob job;
  job.ranks = ranks;
  job.timeout_seconds = 20;
  // A rank that gets no CPU for half a second does not let the others ask what is the matter.
  job.batch_patience = std::chrono::seconds(20);
  if (hosts > 1) job.hosts.resize(static_cast<std::size_t>(hosts));
  for (int rank = 0; rank < ranks && hosts > 1; ++rank)
    job.hosts[static_cast<std::size_t>(rank % hosts)].push_back(rank);
  return job;
}

Engine::Counts counts_of(ddl_context* context) {
  const auto set = ddl::runtime::set_of(context, DDL_WORLD);
  return (*set)->engine()->counts();
}

/// Many small tensors and some large ones, as those of ResNet-50, of 1/16 of its size.
std::vector<std::size_t> sizes_of_step() {
  std::vector<std::size_t> sizes(161);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = i % 3 == 0 ? 4000 + 300 * i : 4 + i;
  return sizes;
}

}  // namespace

TEST_CASE("a step like the one before makes one call for each batch, and no round of agreement") {
  ThreadJob job = job_of_calls(GENERATE(2, 4), GENERATE(1, 2));
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    const std::vector<std::size_t> sizes = sizes_of_step();
    std::vector<std::vector<float>> values;
    for (const std::size_t size : sizes) values.emplace_back(size, 1.0f);
    std::mt19937 random(static_cast<unsigned>(rank));
    const auto run_step = [&] {
      std::vector<std::size_t> order(sizes.size());
      std::iota(order.begin(), order.end(), 0);
      // Backwards, but not strictly: threads of a framework finish in any order.
      std::reverse(order.begin(), order.end());
      for (std::size_t at = 0; at + 5 < order.size(); at += 5)
        std::shuffle(order.begin() + static_cast<std::ptrdiff_t>(at),
                     order.begin() + static_cast<std::ptrdiff_t>(at + 5), random);
      std::vector<ddl_handle*> handles(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) {
        auto& own = values[order[i]];
        expect_ok(ddl_allreduce_async(context, ("gradient " + std::to_string(order[i])).c_str(), own.data(),
                                      own.data(), own.size(), DDL_FLOAT32, DDL_AVERAGE, nullptr, &handles[i]),
                  "allreduce_async");
      }
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "wait_all");
    };
    for (int step = 0; step < 3; ++step) run_step();

    std::uint64_t batches = 0;
    for (int step = 0; step < 20; ++step) {
      const Engine::Counts before = counts_of(context);
      run_step();
      const Engine::Counts after = counts_of(context);
      expect(after.rounds == before.rounds,
             std::to_string(after.rounds - before.rounds) + " rounds in step " + std::to_string(step));
      expect(after.agreed == before.agreed, "batches that were agreed on");
      const std::uint64_t calls = after.predicted - before.predicted;
      expect(calls >= 1 && calls <= 17, std::to_string(calls) + " calls");
      expect(batches == 0 || calls == batches,
             "steps with " + std::to_string(batches) + " and " + std::to_string(calls) + " batches");
      batches = calls;
    }
  });
}

TEST_CASE(
    "large tensors, in parts, have the bits of ordered calls, and a step still has no round of agreement") {
  ThreadJob job = job_of_calls(GENERATE(2, 3), GENERATE(1, 2));
  job.fusion_bytes = 40000;
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    std::mt19937 random(static_cast<unsigned>(rank));
    std::uniform_real_distribution<float> any(-3.0f, 3.0f);
    // 10, 1 and 3 parts, the last in place and with scales.
    std::vector<float> large(99991), small(10), scaled(30000);
    for (auto* const values : {&large, &small, &scaled})
      std::generate(values->begin(), values->end(), [&] { return any(random); });
    ddl_call_options scales = DDL_CALL_OPTIONS_INIT;
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    scales.prescale = options.prescale = 0.3;
    std::vector<float> wanted_large(large.size()), wanted_small(small.size()), wanted_scaled(scaled.size());
    const auto sum = [&](const std::vector<float>& from, std::vector<float>& to, ddl_op op,
                         const ddl_call_options* given) {
      expect_ok(ddl_allreduce(context, from.data(), to.data(), from.size(), DDL_FLOAT32, op, given),
                "ordered");
    };
    sum(large, wanted_large, DDL_SUM, nullptr);
    sum(small, wanted_small, DDL_SUM, nullptr);
    sum(scaled, wanted_scaled, DDL_AVERAGE, &scales);
    Engine::Counts before;
    for (int step = 0; step < 6; ++step) {
      std::vector<float> own_large(large.size()), own_small(small.size()), own_scaled = scaled;
      std::array<ddl_handle*, 3> handles{};
      const auto submit = [&](const char* name, const std::vector<float>& from, std::vector<float>& to,
                              ddl_op op, const ddl_async_options* given, std::size_t at) {
        expect_ok(ddl_allreduce_async(context, name, from.data(), to.data(), from.size(), DDL_FLOAT32, op,
                                      given, &handles[at]),
                  name);
      };
      submit("large", large, own_large, DDL_SUM, nullptr, 0);
      submit("small", small, own_small, DDL_SUM, nullptr, 1);
      submit("scaled", own_scaled, own_scaled, DDL_AVERAGE, &options, 2);
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "wait_all");
      expect(own_large == wanted_large, "large");
      expect(own_small == wanted_small, "small");
      expect(own_scaled == wanted_scaled, "scaled");
      const Engine::Counts after = counts_of(context);
      // The first steps are learned. Of the rest, each begins with a predicted part, which the others follow.
      if (step > 2) {
        expect(after.predicted - before.predicted == 3, "predicted calls");
        expect(after.agreed - before.agreed == 9 + 2,
               "parts: " + std::to_string(after.agreed - before.agreed));
      }
      before = after;
    }
  });
}

TEST_CASE("no wish to agree is lost if the other rank's watching thread gets no CPU for a while") {
  using namespace ddl::runtime;
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  ddl::UniqueFd far(ends[1]);
  const int small = 4096;
  REQUIRE(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);

  SegmentConfig config;
  config.slot_bytes = 64;
  const std::size_t bytes = Segment::bytes_for(1, config);
  std::vector<std::byte> storage(bytes + kLineBytes);
  void* base = storage.data();
  std::size_t space = storage.size();
  REQUIRE(std::align(kLineBytes, bytes, base, space) != nullptr);
  const Segment segment = Segment::create({static_cast<std::byte*>(base), bytes}, 1, config);
  const ddl::UniqueFd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const Members members = {{0, "host0", 1}};
  const AbortDomain abort(segment, members, 0, doorbell.get());
  std::vector<PeerLink> links(1);
  links[0].peer = {1, "host1", 2};
  links[0].control.reset(ends[0]);
  ControlLinks control(links, abort);

  constexpr int kWishes = 300;
  std::vector<std::byte> arrived;
  std::promise<void> is_full;
  std::thread reads([&, full = is_full.get_future()] {
    full.wait();
    std::vector<std::byte> some(1000);
    while (arrived.size() < kWishes * sizeof(ControlFrame)) {
      pollfd entry{far.get(), POLLIN, 0};
      if (::poll(&entry, 1, 5000) <= 0) return;
      const ssize_t got = ::recv(far.get(), some.data(), some.size(), 0);
      if (got <= 0) return;
      arrived.insert(arrived.end(), some.begin(), some.begin() + got);
    }
  });
  // Far more than the socket has space for before anything is read.
  for (int call = 1; call <= kWishes; ++call) {
    if (call == 2) is_full.set_value();
    control.send_wanted(static_cast<std::uint32_t>(call));
  }
  reads.join();
  REQUIRE(arrived.size() == kWishes * sizeof(ControlFrame));
  for (int call = 1; call <= kWishes; ++call) {
    const auto at = static_cast<std::size_t>(call - 1) * sizeof(ControlFrame);
    const auto frame = ControlFrame::parse(std::span(arrived).subspan(at, sizeof(ControlFrame)));
    REQUIRE(frame);
    CHECK(frame->notice.code == call);
  }
}
