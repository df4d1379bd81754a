// What two ranks send to each other.
#include <algorithm>
#include <string>
#include <vector>

#include "runtime/support/conformance.h"
#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

/// An element of the message that from sends to to.
std::int32_t element(int from, int to, std::uint64_t index) {
  return static_cast<std::int32_t>(from * 1'000'003 + to * 10'007 + static_cast<int>(index % 9973));
}

std::vector<std::int32_t> message(int from, int to, std::uint64_t count) {
  std::vector<std::int32_t> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = element(from, to, i);
  return values;
}

void send(ddl_context* context, int to, std::uint64_t count) {
  const int own = ddl_rank(context);
  std::vector<std::int32_t> values = message(own, to, count);
  expect_ok(ddl_send(context, values.data(), count, DDL_INT32, to, nullptr), "send to " + std::to_string(to));
  expect(values == message(own, to, count), "the message of a sender was written");
}

void receive(ddl_context* context, int from, std::uint64_t count) {
  std::vector<std::int32_t> values(count + 1, -1);
  expect_ok(ddl_recv(context, values.data(), count, DDL_INT32, from, nullptr),
            "recv from " + std::to_string(from));
  expect(values.back() == -1, "more was written than was sent");
  values.pop_back();
  expect(values == message(from, ddl_rank(context), count), "another message from " + std::to_string(from));
}

/// Every rank to every other, in an order that all can go through.
void check_all_pairs(ddl_context* context, std::uint64_t count) {
  const int own = ddl_rank(context), size = ddl_size(context);
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (from == to) continue;
      if (own == from) send(context, to, count);
      if (own == to) receive(context, from, count);
    }
  }
}

/// Round the ring: every second rank receives first, and of an odd number the last one too.
void check_ring(ddl_context* context, std::uint64_t count) {
  const int own = ddl_rank(context), size = ddl_size(context);
  const int next = (own + 1) % size, before = (own + size - 1) % size;
  const bool receives_first = own % 2 == 1;
  if (receives_first) receive(context, before, count);
  send(context, next, count);
  if (!receives_first) receive(context, before, count);
}

/// Two ranks whose calls do not match both get an error, and can go on.
void check_mismatches(ddl_context* context, int a, int b) {
  const int own = ddl_rank(context);
  if (own != a && own != b) return;
  const int other = own == a ? b : a;
  std::vector<double> values(8, -1.0);
  const auto expect_mismatch = [&](ddl_status status, const std::string& what) {
    expect_status(status, DDL_ERROR_MISMATCH, what);
    const std::string sentence = ddl_last_error();
    expect_contains(sentence, "rank " + std::to_string(a) + " on ");
    expect_contains(sentence, "rank " + std::to_string(b) + " on ");
    expect(values == std::vector<double>(8, -1.0), what + ": the buffer was written");
  };
  const auto call = [&](bool sends, std::uint64_t count, ddl_dtype dtype) {
    return sends ? ddl_send(context, values.data(), count, dtype, other, nullptr)
                 : ddl_recv(context, values.data(), count, dtype, other, nullptr);
  };
  expect_mismatch(call(own == a, own == a ? 7 : 8, DDL_FLOAT64), "counts");
  expect_mismatch(call(own == b, 8, own == a ? DDL_FLOAT64 : DDL_INT64), "dtypes");
  expect_mismatch(call(true, 8, DDL_FLOAT64), "two senders");
  expect_mismatch(call(false, 8, DDL_FLOAT64), "two receivers");
  own == a ? send(context, b, 5) : receive(context, a, 5);
}

void check_arguments(ddl_context* context) {
  const int own = ddl_rank(context), size = ddl_size(context);
  std::int32_t value = 1;
  const auto expect_refused = [](ddl_status status, const std::string& sentence) {
    expect_status(status, DDL_ERROR_INVALID_ARGUMENT, sentence);
    expect_contains(ddl_last_error(), sentence);
  };
  const std::string ranks = " is not a rank of 0 to " + std::to_string(size - 1);
  expect_refused(ddl_send(context, &value, 1, DDL_INT32, -1, nullptr), "to -1" + ranks);
  expect_refused(ddl_recv(context, &value, 1, DDL_INT32, size, nullptr),
                 "from " + std::to_string(size) + ranks);
  expect_refused(ddl_send(context, &value, 1, DDL_INT32, own, nullptr), "is this rank itself");
  expect_refused(ddl_recv(context, &value, 1, DDL_INT32, own, nullptr), "is this rank itself");
  expect_refused(ddl_send(nullptr, &value, 1, DDL_INT32, 0, nullptr), "context is null");
  if (size == 1) return;
  const int other = own == 0 ? 1 : 0;
  expect_refused(ddl_send(context, nullptr, 1, DDL_INT32, other, nullptr), "buffer is null");
  expect_refused(ddl_recv(context, nullptr, 1, DDL_INT32, other, nullptr), "buffer is null");
  expect_refused(ddl_send(context, &value, 1, 99, other, nullptr), "dtype 99 does not exist");
  expect_refused(ddl_send(context, &value, std::uint64_t{1} << 62, DDL_INT32, other, nullptr),
                 "does not fit into memory");
  expect_refused(ddl_recv(context, reinterpret_cast<char*>(&value) + 1, 1, DDL_INT16, other, nullptr),
                 "buffer is not aligned for int16");
}

/// Ranks are those of the set, and transfers of different sets are independent.
void check_in_process_sets(ddl_context* context) {
  const int own = ddl_rank(context), size = ddl_size(context);
  std::uint64_t reversed = DDL_NO_PROCESS_SET;
  expect_ok(ddl_process_set_split(context, DDL_WORLD, 0, -own, &reversed), "split");
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.process_set = reversed;
  // The last rank of the job is the set's first.
  std::int32_t value = own;
  if (size > 1 && own == size - 1) {
    expect_ok(ddl_send(context, &value, 1, DDL_INT32, size - 1, &options), "send in a set");
  } else if (size > 1 && own == 0) {
    expect_ok(ddl_recv(context, &value, 1, DDL_INT32, 0, &options), "recv in a set");
    expect(value == size - 1, "a set's message is another");
  }
  expect_ok(ddl_process_set_free(context, reversed), "free");
}

}  // namespace

void check_transfers(ddl_context* context, const std::vector<std::uint64_t>& counts) {
  const int size = ddl_size(context);
  check_arguments(context);
  check_in_process_sets(context);
  for (const std::uint64_t count : counts) {
    check_all_pairs(context, count);
    if (size > 1) check_ring(context, count);
  }
  for (int a = 0; a < size; ++a) {
    for (int b = a + 1; b < size; ++b) check_mismatches(context, a, b);
  }
  // The set itself is not affected by all that.
  expect_ok(ddl_barrier(context, nullptr), "barrier");
}

}  // namespace ddl::conformance
