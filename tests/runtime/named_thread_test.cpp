// Named tensors: submitted in any order, from any thread, agreed on, executed together, and handed back.
#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"

using namespace ddl::conformance;
using ddl::runtime::test::ThreadJob;

namespace {

ddl_handle* allreduce(ddl_context* context, const std::string& name, std::vector<float>& values,
                      const ddl_async_options* options = nullptr) {
  ddl_handle* handle = nullptr;
  expect_ok(ddl_allreduce_async(context, name.c_str(), values.data(), values.data(), values.size(),
                                DDL_FLOAT32, DDL_SUM, options, &handle),
            "allreduce_async");
  return handle;
}

/// Its ranks are dealt to the hosts in turn.
ThreadJob job_of(int ranks, int hosts = 1) {
  ThreadJob job;
  job.ranks = ranks;
  job.timeout_seconds = 20;
  if (hosts > 1) job.hosts.resize(static_cast<std::size_t>(std::min(hosts, ranks)));
  for (int rank = 0; rank < ranks && hosts > 1; ++rank)
    job.hosts[static_cast<std::size_t>(rank) % job.hosts.size()].push_back(rank);
  return job;
}

}  // namespace

TEST_CASE("a named tensor is the same as an ordered allreduce") {
  ThreadJob job = job_of(GENERATE(1, 2, 3, 5), GENERATE(1, 2));
  job.spin = std::chrono::microseconds(GENERATE(0, 100));
  job.run([&](ddl_context*& context) {
    for (int step = 0; step < 50; ++step) {
      std::vector<float> values(10, static_cast<float>(ddl_rank(context) + 1));
      expect_ok(ddl_wait(allreduce(context, "loss", values)), "wait");
      const int ranks = ddl_size(context);
      const int sum = ranks * (ranks + 1) / 2;
      for (const float value : values) expect(value == static_cast<float>(sum), "the sum");
    }
  });
}

TEST_CASE("tensors that ranks submit in different orders are executed, step after step") {
  ThreadJob job = job_of(GENERATE(2, 4), GENERATE(1, 2, 3));
  const bool shuffles = GENERATE(false, true);
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context), ranks = ddl_size(context);
    constexpr int kTensors = 40;
    std::mt19937 random(static_cast<unsigned>(rank));
    for (int step = 0; step < 30; ++step) {
      std::vector<int> order(kTensors);
      std::iota(order.begin(), order.end(), 0);
      if (shuffles) std::shuffle(order.begin(), order.end(), random);
      std::vector<std::vector<float>> values(kTensors);
      std::vector<ddl_handle*> handles;
      for (const int tensor : order) {
        auto& own = values[static_cast<std::size_t>(tensor)];
        own.assign(static_cast<std::size_t>(tensor * 37 % 300), static_cast<float>(rank + tensor + step));
        handles.push_back(allreduce(context, "gradient " + std::to_string(tensor), own));
      }
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "wait_all");
      for (int tensor = 0; tensor < kTensors; ++tensor) {
        const int sum = ranks * (ranks - 1) / 2 + ranks * (tensor + step);
        for (const float value : values[static_cast<std::size_t>(tensor)])
          expect(value == static_cast<float>(sum), "the sum");
      }
    }
  });
}

TEST_CASE("every kind of named tensor gives what its ordered collective gives") {
  ThreadJob job = job_of(GENERATE(1, 2, 4), GENERATE(1, 2));
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context), ranks = ddl_size(context);
    const auto at = [](int index) { return static_cast<std::size_t>(index); };
    for (int step = 0; step < 5; ++step) {
      // Rank r gives r + step elements of value r.
      const std::vector<std::int32_t> own(at(rank + step), rank);
      void* gathered = nullptr;
      std::vector<std::uint64_t> gathered_counts(at(ranks));
      std::vector<std::int64_t> parameters(7, rank == 1 % ranks ? step : -1);
      std::vector<std::uint64_t> send_counts(at(ranks)), received_counts(at(ranks));
      std::vector<std::int16_t> sent;
      for (int to = 0; to < ranks; ++to) {
        send_counts[at(to)] = static_cast<std::uint64_t>(to * rank);
        sent.insert(sent.end(), at(to * rank), static_cast<std::int16_t>(10 * rank + to));
      }
      void* received = nullptr;
      const std::vector<double> terms(at(2 * ranks), rank + 1);
      const std::vector<std::uint64_t> two_each(at(ranks), 2);
      std::vector<double> sums(2);
      std::array<ddl_handle*, 4> handles{};
      expect_ok(ddl_allgatherv_async(context, "ids", own.data(), own.size(), &gathered,
                                     gathered_counts.data(), DDL_INT32, nullptr, &handles[0]),
                "allgatherv");
      expect_ok(ddl_broadcast_async(context, "parameters", parameters.data(), parameters.size(), DDL_INT64,
                                    1 % ranks, nullptr, &handles[1]),
                "broadcast");
      expect_ok(ddl_alltoallv_async(context, "tokens", sent.data(), send_counts.data(), &received,
                                    received_counts.data(), DDL_INT16, nullptr, &handles[2]),
                "alltoallv");
      expect_ok(ddl_reduce_scatter_async(context, "shard", terms.data(), sums.data(), two_each.data(),
                                         DDL_FLOAT64, DDL_AVERAGE, nullptr, &handles[3]),
                "reduce_scatter");
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "wait_all");
      const auto* id = static_cast<const std::int32_t*>(gathered);
      for (int from = 0; from < ranks; ++from) {
        expect(gathered_counts[at(from)] == at(from + step), "the number from each rank");
        for (int i = 0; i < from + step; ++i) expect(*id++ == from, "gathered");
      }
      expect(parameters == std::vector<std::int64_t>(7, step), "broadcast");
      const auto* token = static_cast<const std::int16_t*>(received);
      for (int from = 0; from < ranks; ++from) {
        expect(received_counts[at(from)] == at(from * rank), "the number from each rank");
        for (int i = 0; i < from * rank; ++i) expect(*token++ == 10 * from + rank, "received");
      }
      for (const double sum : sums) expect(sum == (ranks + 1) / 2.0, "average");
      expect_ok(ddl_free(context, gathered), "free");
      expect_ok(ddl_free(context, received), "free");
    }
  });
}

TEST_CASE("a tensor that differs between ranks fails on all of them, alone") {
  ThreadJob job = job_of(3);
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    std::vector<float> values(6, 1.0f), others(6, 1.0f);
    const std::array<std::uint64_t, 2> shape{3, 2}, turned{2, 3};
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.shape = rank == 2 ? turned.data() : shape.data();
    options.dimensions = 2;
    for (int step = 0; step < 3; ++step) {
      ddl_handle* const bad = allreduce(context, "weights", values, &options);
      ddl_handle* const good = allreduce(context, "bias", others);
      expect_status(ddl_wait(bad), DDL_ERROR_MISMATCH, "a shape that differs");
      expect_contains(ddl_last_error(),
                      "the ranks gave different tensors the name \"weights\": rank 0 on host0 called "
                      "allreduce(sum, float32, shape [3, 2]), rank 2 on host2 called allreduce(sum, float32, "
                      "shape [2, 3])");
      expect(values.front() == 1.0f, "written");
      expect_ok(ddl_wait(good), "the other tensor");
    }
    expect(others.front() == 27.0f, "the sum");
  });
}

TEST_CASE("a name is refused while a tensor of that name is open, and names have limits") {
  ThreadJob job = job_of(1);
  job.run([&](ddl_context*& context) {
    std::vector<float> values(1), others(1);
    ddl_handle* handle = nullptr;
    const std::array<ddl_tensor, 2> twice{
        {{"a", values.data(), values.data(), 1}, {"a", others.data(), others.data(), 1}}};
    std::array<ddl_handle*, 2> handles{};
    expect_status(
        ddl_grouped_allreduce_async(context, twice.data(), 2, DDL_FLOAT32, DDL_SUM, nullptr, handles.data()),
        DDL_ERROR_INVALID_ARGUMENT, "a name twice");
    expect_contains(ddl_last_error(), "\"a\"");
    for (const std::string& name : {std::string(), std::string(1025, 'x')}) {
      expect_status(ddl_allreduce_async(context, name.c_str(), values.data(), values.data(), 1, DDL_FLOAT32,
                                        DDL_SUM, nullptr, &handle),
                    DDL_ERROR_INVALID_ARGUMENT, "a name");
    }
    expect_status(ddl_allreduce_async(context, "x", values.data(), values.data(), 1, DDL_FLOAT32, DDL_SUM,
                                      nullptr, nullptr),
                  DDL_ERROR_INVALID_ARGUMENT, "no handle and no callback");
    expect_ok(ddl_wait(allreduce(context, std::string(1024, 'x'), values)), "a long name");
    expect_ok(ddl_wait(allreduce(context, "größe/層", values)), "a name in UTF-8");
  });
}

TEST_CASE("a rank that has joined contributes no data, and the others go on") {
  ThreadJob job = job_of(GENERATE(2, 3, 4), GENERATE(1, 2, 3));
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context), ranks = ddl_size(context);
    // Rank r has data for r + 2 steps.
    for (int step = 0; step < rank + 2; ++step) {
      const int first = std::max(step - 1, 0);  // of those that have data
      std::vector<float> sum(3, static_cast<float>(rank)), least(3, static_cast<float>(rank)),
          mean(300, static_cast<float>(rank));
      std::array<ddl_handle*, 5> handles{};
      handles[0] = allreduce(context, "sum", sum);
      expect_ok(ddl_allreduce_async(context, "min", least.data(), least.data(), 3, DDL_FLOAT32, DDL_MIN,
                                    nullptr, &handles[1]),
                "min");
      expect_ok(ddl_allreduce_async(context, "mean", mean.data(), mean.data(), mean.size(), DDL_FLOAT32,
                                    DDL_AVERAGE, nullptr, &handles[2]),
                "mean");
      void* all = nullptr;
      std::vector<std::uint64_t> counts(static_cast<std::size_t>(ranks));
      expect_ok(ddl_allgatherv_async(context, "all", &rank, 1, &all, counts.data(), DDL_INT32, nullptr,
                                     &handles[3]),
                "allgatherv");
      const int place = rank + 1;
      std::vector<std::int32_t> places(static_cast<std::size_t>(ranks), -1);
      expect_ok(
          ddl_allgather_async(context, "places", &place, places.data(), 1, DDL_INT32, nullptr, &handles[4]),
          "allgather");
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "wait_all");
      float expected = 0;
      for (int contributor = first; contributor < ranks; ++contributor) {
        expected += static_cast<float>(contributor);
        expect(static_cast<const std::int32_t*>(all)[contributor - first] == contributor, "gathered");
      }
      expect(sum[2] == expected, "sum");
      expect(least[1] == static_cast<float>(first), "min");
      expect(mean[299] == expected / static_cast<float>(ranks - first), "mean");
      for (int other = 0; other < ranks; ++other) {
        expect(counts[static_cast<std::size_t>(other)] == (other < first ? 0u : 1u), "counts");
        expect(places[static_cast<std::size_t>(other)] == (other < first ? 0 : other + 1), "places");
      }
    }
    std::int32_t last = -1;
    expect_ok(ddl_join(context, DDL_WORLD, &last), "join");
    expect(last == ranks - 1, "the last rank");
    // And on.
    std::vector<float> ones(4, 1.0f);
    expect_ok(ddl_wait(allreduce(context, "sum", ones)), "after join");
    expect(ones[0] == static_cast<float>(ranks), "the sum of all");
    expect_ok(ddl_join(context, DDL_WORLD, nullptr), "join again");
  });
}

TEST_CASE("a broadcast from a rank that has joined fails, and names it") {
  ThreadJob job = job_of(2);
  job.run([&](ddl_context*& context) {
    if (ddl_rank(context) == 1) {
      std::int32_t value = 3;
      const std::int16_t word = 1;
      const std::array<std::uint64_t, 2> counts{1, 0};
      void* result = nullptr;
      ddl_handle *handle = nullptr, *other = nullptr;
      expect_ok(ddl_broadcast_async(context, "state", &value, 1, DDL_INT32, 0, nullptr, &handle),
                "broadcast");
      expect_status(ddl_wait(handle), DDL_ERROR_MISMATCH, "a root that has joined");
      expect_contains(ddl_last_error(),
                      "cannot be broadcast: its root, rank 0 on host0, has joined and has no data");
      expect_contains(ddl_last_error(), "tensor \"state\" of rank 1 on host");
      expect_ok(ddl_alltoallv_async(context, "words", &word, counts.data(), &result, nullptr, DDL_INT16,
                                    nullptr, &other),
                "alltoallv");
      expect_status(ddl_wait(other), DDL_ERROR_MISMATCH, "data for a rank that has joined");
      expect_contains(ddl_last_error(),
                      "rank 1 on host1 sends 1 element to rank 0 on host0, which has joined");
    }
    expect_ok(ddl_join(context, DDL_WORLD, nullptr), "join");
  });
}

TEST_CASE("the tensors of a group are executed when all are there") {
  ThreadJob job = job_of(2);
  job.run([&](ddl_context*& context) {
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.group = "layer";
    options.group_size = 2;
    for (int step = 0; step < 4; ++step) {
      std::vector<float> weight(5, 1.0f), bias(2, 1.0f), loss(1, 1.0f);
      ddl_handle* const first = allreduce(context, "weight", weight, &options);
      expect_ok(ddl_wait(allreduce(context, "loss", loss)), "another tensor");
      std::int32_t done = 1;
      expect_ok(ddl_test(first, &done), "test");
      expect(done == 0, "a tensor was executed without its group");
      ddl_handle* const second = allreduce(context, "bias", bias, &options);
      expect_ok(ddl_wait(second), "second");
      expect_ok(ddl_wait(first), "first");
      expect(weight[0] == 2.0f && bias[1] == 2.0f, "sums");
    }
  });
}

TEST_CASE("tensors are called back, and nobody has to wait for them") {
  ThreadJob job = job_of(GENERATE(1, 3), GENERATE(1, 2));
  job.run([&](ddl_context*& context) {
    constexpr int kTensors = 20;
    for (int step = 0; step < 3; ++step) {
      std::atomic<int> completed{0};
      std::vector<std::vector<float>> values(kTensors, std::vector<float>(100, 1.0f));
      ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
      options.argument = &completed;
      options.completed = [](void* argument, ddl_status status, const char*) {
        auto& count = *static_cast<std::atomic<int>*>(argument);
        count += status == DDL_OK ? 1 : 1000;
        count.notify_all();
      };
      for (int tensor = 0; tensor < kTensors; ++tensor) {
        auto& own = values[static_cast<std::size_t>(tensor)];
        expect_ok(ddl_allreduce_async(context, std::to_string(tensor).c_str(), own.data(), own.data(),
                                      own.size(), DDL_FLOAT32, DDL_SUM, &options, nullptr),
                  "allreduce");
      }
      for (int seen = 0; seen < kTensors; seen = completed) completed.wait(seen);
      expect(completed == kTensors, "completions");
      for (const auto& own : values) expect(own[99] == static_cast<float>(ddl_size(context)), "the sum");
    }
  });
}

TEST_CASE("named tensors of several process sets and ordered calls go on beside each other") {
  ThreadJob job = job_of(4, GENERATE(1, 2));
  job.run([&](ddl_context*& context) {
    const int rank = ddl_rank(context);
    std::uint64_t half = 0, odd = 0;
    expect_ok(ddl_process_set_split(context, DDL_WORLD, rank / 2, 0, &half), "split");
    expect_ok(ddl_process_set_split(context, DDL_WORLD, rank % 2, 0, &odd), "split");
    const auto in_set = [&](std::uint64_t set, float expected) {
      ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
      options.process_set = set;
      for (int step = 0; step < 100; ++step) {
        std::vector<float> value(50, static_cast<float>(rank));
        expect_ok(ddl_wait(allreduce(context, "value", value, &options)), "wait in a set");
        expect(value[49] == expected, "the sum of a set");
      }
    };
    auto of_half = std::async(std::launch::async, [&] { in_set(half, rank < 2 ? 1.0f : 5.0f); });
    auto of_odd =
        std::async(std::launch::async, [&] { in_set(odd, static_cast<float>(2 * (rank % 2) + 2)); });
    auto of_world = std::async(std::launch::async, [&] { in_set(DDL_WORLD, 6.0f); });
    for (int call = 0; call < 200; ++call) {
      std::int32_t one = 1;
      expect_ok(ddl_allreduce(context, &one, &one, 1, DDL_INT32, DDL_SUM, nullptr), "ordered");
      expect(one == 4, "the ordered sum");
    }
    of_half.get();
    of_odd.get();
    of_world.get();
    expect_ok(ddl_process_set_free(context, half), "free");
    expect_ok(ddl_process_set_free(context, odd), "free");
  });
}

TEST_CASE("handles that are open when a rank leaves tell so, and those of the others name it") {
  ThreadJob job = job_of(2, GENERATE(1, 2));
  const bool is_early = GENERATE(false, true);
  std::promise<void> left;
  job.run([&](ddl_context*& context) {
    std::vector<float> values(3, 1.0f);
    if (!is_early) expect_ok(ddl_wait(allreduce(context, "first", values)), "the first");
    if (ddl_rank(context) == 1) {
      ddl_handle* const handle = is_early ? nullptr : allreduce(context, "open", values);
      expect_ok(ddl_finalize(context), "finalize");
      context = nullptr;
      left.set_value();
      if (handle == nullptr) return;
      std::int32_t done = 0;
      expect_ok(ddl_test(handle, &done), "test after finalize");
      expect(done == 1, "done");
      expect_status(ddl_wait(handle), DDL_ERROR_ABORTED, "an open handle after finalize");
      expect_contains(ddl_last_error(), "this rank left the process set before the tensor was complete");
      return;
    }
    if (is_early) left.get_future().wait();
    const ddl_status status = ddl_wait(allreduce(context, "never", values));
    expect_status(status, DDL_ERROR_PEER_LOST, "a tensor that the other rank never submits");
    expect_contains(ddl_last_error(), "rank 1 on host1 (pid ");
  });
}

TEST_CASE("what a program waits for comes, though it is not what its last steps let expect") {
  ThreadJob job = job_of(3, GENERATE(1, 2, 3));
  job.run([&](ddl_context*& context) {
    const auto ranks = static_cast<float>(ddl_size(context));
    std::mt19937 common(7), own(static_cast<unsigned>(ddl_rank(context)));
    for (int step = 0; step < 200; ++step) {
      // The same tensors on all ranks, mostly those of the step before, in an order of each rank's own; some are waited
      // for at once, which every rank does for the same ones.
      std::vector<int> tensors;
      for (int tensor = 0; tensor < 8; ++tensor) {
        if (common() % 8 != 0) tensors.push_back(tensor);
      }
      const int waits_after = static_cast<int>(common() % 9);
      std::map<int, std::vector<float>> values;
      std::vector<ddl_handle*> handles;
      const bool shuffles = common() % 2 == 0;
      if (shuffles)
        std::shuffle(tensors.begin() + std::min<int>(waits_after, static_cast<int>(tensors.size())),
                     tensors.end(), own);
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        auto& value = values[tensors[i]];
        value.assign(static_cast<std::size_t>(1 + tensors[i]), 1.0f);
        handles.push_back(allreduce(context, "t" + std::to_string(tensors[i]), value));
        if (static_cast<int>(i) < waits_after) {
          expect_ok(ddl_wait(handles.back()), "wait at once");
          handles.back() = nullptr;
        }
      }
      expect_ok(ddl_wait_all(handles.data(), handles.size()), "wait_all");
      for (const auto& [tensor, value] : values) expect(value.back() == ranks, "the sum");
    }
  });
}

TEST_CASE("a rank may leave with a tensor that no other rank submits") {
  ThreadJob job = job_of(2, GENERATE(1, 2));
  std::promise<void> handed_over;
  job.run([&](ddl_context*& context) {
    std::vector<float> values(3, 1.0f);
    if (ddl_rank(context) == 0) return handed_over.get_future().wait();
    ddl_handle* const handle = allreduce(context, "mine", values);
    std::int32_t done = 1;
    expect_ok(ddl_test(handle, &done), "test");
    expect(done == 0, "done");
    handed_over.set_value();
    const ddl_status left = ddl_finalize(context);
    context = nullptr;
    expect_ok(left, "finalize");
    expect(ddl_wait(handle) != DDL_OK, "a tensor that was never complete");
  });
}

TEST_CASE("an abort reaches tensors that nobody waits for, while the ranks sleep") {
  ThreadJob job = job_of(3, GENERATE(1, 2));
  std::latch all_are_done(3);
  job.run([&](ddl_context*& context) {
    // A group that is never complete, so that all ranks sleep until they hear of the abort.
    std::promise<ddl_status> called_back;
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.group = "group";
    options.group_size = 2;
    options.argument = &called_back;
    options.completed = [](void* argument, ddl_status status, const char*) {
      static_cast<std::promise<ddl_status>*>(argument)->set_value(status);
    };
    std::vector<float> values(3, 1.0f), others(3, 1.0f);
    expect_ok(ddl_allreduce_async(context, "one", values.data(), values.data(), 3, DDL_FLOAT32, DDL_SUM,
                                  &options, nullptr),
              "allreduce");
    expect_ok(ddl_wait(allreduce(context, "other", others)), "another tensor");
    all_are_done.arrive_and_wait();
    if (ddl_rank(context) == 1) (void)ddl_abort(context, 3, "enough");
    const ddl_status status = called_back.get_future().get();
    expect(status == DDL_ERROR_ABORTED, std::string("the status is ") + ddl_status_name(status));
  });
}
