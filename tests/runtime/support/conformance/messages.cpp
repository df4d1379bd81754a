// Messages without an order: what one rank sends and another receives, while both go on.
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

using Payload = std::vector<std::uint8_t>;

/// The limit up to which messages are copied, and sizes beyond that of one part.
const std::uint64_t kSizes[] = {0, 1, 4, 32'767, 32'768, 32'769, 1'048'579, 8 << 20};

std::uint8_t element(int from, int to, int tag, std::uint64_t index) {
  return static_cast<std::uint8_t>(from * 101 + to * 53 + tag * 17 + static_cast<int>(index % 251));
}

Payload contents(int from, int to, int tag, std::uint64_t size) {
  Payload bytes(size);
  for (std::uint64_t i = 0; i < size; ++i) bytes[i] = element(from, to, tag, i);
  return bytes;
}

/// One that is open.
struct Open {
  Payload bytes;
  std::int32_t source = -7;
  ddl_handle* handle = nullptr;
};

void send(ddl_context* context, Open& open, int to, int tag, const ddl_call_options* options = nullptr) {
  expect_ok(ddl_send_async(context, open.bytes.data(), open.bytes.size(), DDL_UINT8, to, tag, options,
                           &open.handle),
            "send_async to " + std::to_string(to));
}

void receive(ddl_context* context, Open& open, int from, int tag, const ddl_call_options* options = nullptr) {
  expect_ok(ddl_recv_async(context, open.bytes.data(), open.bytes.size(), DDL_UINT8, from, tag, options,
                           &open.source, &open.handle),
            "recv_async from " + std::to_string(from));
}

void wait(Open& open, const std::string& what) {
  const ddl_status status = ddl_wait(std::exchange(open.handle, nullptr));
  expect_ok(status, what);
}

/// All send first, round the ring, to each other and to themselves.
void check_rings(ddl_context* context) {
  const int own = ddl_rank(context), size = ddl_size(context);
  for (const std::uint64_t bytes : kSizes) {
    for (int distance = 0; distance < std::min(size, 3); ++distance) {
      const int next = (own + distance) % size, before = (own + size - distance) % size;
      Open out{contents(own, next, distance, bytes)}, in{Payload(bytes, 0xEE)};
      send(context, out, next, distance);
      receive(context, in, before, distance);
      wait(in, "a receive in the ring");
      wait(out, "a send in the ring");
      expect(in.source == before, "the sender in the ring is " + std::to_string(in.source));
      expect(in.bytes == contents(before, own, distance, bytes),
             "another message of " + std::to_string(bytes) + " bytes");
    }
  }
}

/// Receives from any rank get each message once, those of one rank in order.
void check_fan_in(ddl_context* context) {
  const int own = ddl_rank(context), size = ddl_size(context);
  constexpr int kEach = 20;
  const std::uint64_t sizes[] = {16, 40'000};
  for (const std::uint64_t bytes : sizes) {
    if (own != 0) {
      std::vector<Open> out(kEach);
      for (int i = 0; i < kEach; ++i) {
        out[i].bytes = contents(own, 0, i, bytes);
        send(context, out[i], 0, i);
      }
      for (Open& open : out) wait(open, "a send of the fan");
    }
    std::vector<int> seen(size, 0);
    for (int i = 0; own == 0 && i < kEach * (size - 1); ++i) {
      Open in{Payload(bytes)};
      receive(context, in, DDL_ANY_RANK, DDL_ANY_TAG);
      wait(in, "a receive of the fan");
      expect(in.source > 0 && in.source < size, "the sender is " + std::to_string(in.source));
      const int tag = seen[in.source]++;
      expect(in.bytes == contents(in.source, 0, tag, bytes), "a message out of its order");
    }
    // The next ones would go into these receives, too.
    expect_ok(ddl_barrier(context, nullptr), "barrier");
  }
}

/// Many messages with a few tags, sent and received in orders of each rank's own, while collectives run in between.
void check_random(ddl_context* context, std::uint64_t seed) {
  const int own = ddl_rank(context), size = ddl_size(context);
  constexpr int kTags = 40;
  std::mt19937_64 shared(seed);
  // By sender, receiver and tag.
  const auto size_of = [seed](int from, int to, int tag) -> std::uint64_t {
    std::mt19937_64 random(seed * 31 + static_cast<std::uint64_t>((from * 64 + to) * 64 + tag));
    const std::uint64_t sizes[] = {0, 8, 1000, 30'000, 32'769, 100'000};
    return sizes[random() % std::size(sizes)] + random() % 7;
  };
  struct Step {
    bool sends;
    int other, tag;
  };
  std::vector<Step> steps;
  for (int other = 0; other < size; ++other) {
    for (int tag = 0; tag < kTags; ++tag) {
      steps.push_back({true, other, tag});
      steps.push_back({false, other, tag});
    }
  }
  std::mt19937_64 random(seed + static_cast<std::uint64_t>(own) * 7919);
  std::shuffle(steps.begin(), steps.end(), random);
  std::vector<Open> open(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto [sends, other, tag] = steps[i];
    if (sends) {
      open[i].bytes = contents(own, other, tag, size_of(own, other, tag));
      send(context, open[i], other, tag);
    } else {
      open[i].bytes.assign(size_of(other, own, tag), 0xEE);
      receive(context, open[i], other, tag);
    }
    if (i % 50 == 0 && i < 200) {
      std::int32_t one = 1, all = 0;
      expect_ok(ddl_allreduce(context, &one, &all, 1, DDL_INT32, DDL_SUM, nullptr),
                "an allreduce between messages");
      expect(all == size, "an allreduce between messages is wrong");
    }
  }
  std::vector<std::size_t> order(steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) {
    const auto [sends, other, tag] = steps[i];
    wait(open[i], sends ? "one of many sends" : "one of many receives");
    const int from = sends ? own : other, to = sends ? other : own;
    expect(open[i].bytes == contents(from, to, tag, size_of(from, to, tag)),
           "one of many messages is another one");
  }
}

/// Messages of a process set name its ranks, and do not go into receives of the world.
void check_in_set(ddl_context* context) {
  const int own = ddl_rank(context), size = ddl_size(context);
  std::uint64_t set = DDL_NO_PROCESS_SET;
  expect_ok(ddl_process_set_split(context, DDL_WORLD, own % 2, -own, &set), "split");
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.process_set = set;
  // The set's ranks are in reverse order.
  const int members = (size - own % 2 + 1) / 2;
  const int own_in_set = members - 1 - own / 2;
  Open of_world{Payload(8, 0xEE)}, in{Payload(8)},
      out{contents(own_in_set, (own_in_set + 1) % members, 5, 8)};
  receive(context, of_world, DDL_ANY_RANK, DDL_ANY_TAG);
  receive(context, in, DDL_ANY_RANK, 5, &options);
  send(context, out, (own_in_set + 1) % members, 5, &options);
  wait(in, "a receive in a set");
  wait(out, "a send in a set");
  const int before = (own_in_set + members - 1) % members;
  expect(in.source == before, "the sender in the set is " + std::to_string(in.source));
  expect(in.bytes == contents(before, own_in_set, 5, 8), "another message in a set");
  expect(of_world.bytes == Payload(8, 0xEE), "a message of a set went into the world's receive");
  Open to_self{contents(own, own, 1, 8)};
  send(context, to_self, own, 1);
  wait(to_self, "a send to itself");
  wait(of_world, "the world's receive");
  expect(of_world.source == own && of_world.bytes == to_self.bytes, "another message to itself");
  expect_ok(ddl_process_set_free(context, set), "free");
  // What other ranks send next would go into the world's receive, too.
  expect_ok(ddl_barrier(context, nullptr), "barrier");
}

/// A receive of another size fails, and both ranks can go on.
void check_sizes(ddl_context* context) {
  const int own = ddl_rank(context), size = ddl_size(context);
  const int next = (own + 1) % size, before = (own + size - 1) % size;
  const std::uint64_t sizes[] = {100, 100'000};
  for (const std::uint64_t bytes : sizes) {
    Open out{Payload(bytes)}, in{Payload(bytes + 4, 0xEE)};
    receive(context, in, before, 9);
    send(context, out, next, 9);
    expect_status(ddl_wait(in.handle), DDL_ERROR_MISMATCH, "a receive of another size");
    const std::string sentence = ddl_last_error();
    expect_contains(sentence, "rank " + std::to_string(before) + " on ");
    expect_contains(sentence, std::to_string(bytes) + " bytes (uint8");
    expect_contains(sentence, std::to_string(bytes + 4) + " bytes (uint8");
    expect(in.bytes == Payload(bytes + 4, 0xEE), "a receive of another size was written");
    const bool is_copied = bytes <= 32'768;
    expect_status(ddl_wait(out.handle), is_copied ? DDL_OK : DDL_ERROR_MISMATCH, "the send of another size");
  }
  Open out{contents(own, next, 2, 64)}, in{Payload(64)};
  receive(context, in, before, 2);
  send(context, out, next, 2);
  wait(in, "a receive after a mismatch");
  wait(out, "a send after a mismatch");
  expect(in.bytes == contents(before, own, 2, 64), "another message after a mismatch");
}

void check_message_arguments(ddl_context* context) {
  const int size = ddl_size(context);
  std::int32_t value = 0;
  ddl_handle* handle = nullptr;
  const auto refused = [&](ddl_status status, const std::string& part) {
    expect_status(status, DDL_ERROR_INVALID_ARGUMENT, part);
    expect_contains(ddl_last_error(), part);
    expect(handle == nullptr, "a refused message has a handle");
  };
  refused(ddl_send_async(context, &value, 1, DDL_INT32, size, 0, nullptr, &handle), "is not a rank of 0 to");
  refused(ddl_send_async(context, &value, 1, DDL_INT32, DDL_ANY_RANK, 0, nullptr, &handle),
          "to -1 is not a rank");
  refused(ddl_send_async(context, &value, 1, DDL_INT32, 0, -1, nullptr, &handle), "tag -1 is below 0");
  refused(ddl_recv_async(context, &value, 1, DDL_INT32, 0, -2, nullptr, nullptr, &handle),
          "and not DDL_ANY_TAG");
  refused(ddl_recv_async(context, &value, 1, DDL_INT32, -2, 0, nullptr, nullptr, &handle), "or DDL_ANY_RANK");
  refused(ddl_send_async(context, nullptr, 1, DDL_INT32, 0, 0, nullptr, &handle), "null");
  refused(ddl_send_async(context, &value, 1, DDL_INT32, 0, 0, nullptr, nullptr), "handle is null");
  refused(ddl_send_async(context, &value, 1, -5, 0, 0, nullptr, &handle), "");
}

}  // namespace

void check_messages(ddl_context* context, std::uint64_t seed) {
  check_message_arguments(context);
  check_rings(context);
  check_fan_in(context);
  check_random(context, seed);
  check_in_set(context);
  check_sizes(context);
}

}  // namespace ddl::conformance
