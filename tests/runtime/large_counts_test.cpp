// Calls with more than 2^32 elements. Two ranks hold 4.3 GB each, in place, and every byte of the results is checked.
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "ddl/ddl.h"
#include "runtime/support/expect.h"
#include "runtime/support/thread_job.h"
#include "support/catch.h"
#include "support/skip.h"

using namespace ddl::conformance;
using namespace ddl::runtime::test;

namespace {

constexpr std::uint64_t kBytes = (std::uint64_t{1} << 32) + 5;
constexpr std::uint64_t kPartBytes = (std::uint64_t{1} << 31) + 3;  // of an alltoall, of which there are two
constexpr std::uint64_t kBufferBytes = kBytes + 64;
constexpr std::uint64_t kNeededMiB = 10'000;

/// The memory that is available without swapping.
std::uint64_t available_mib() {
  std::ifstream file("/proc/meminfo");
  for (std::string name, rest; file >> name && std::getline(file, rest);) {
    if (name == "MemAvailable:") return std::stoull(rest) / 1024;
  }
  return 0;
}

enum class Memory { kPrivate, kSharedHeap };

/// A rank's buffer.
class Buffer {
 public:
  Buffer(ddl_context* context, Memory memory) : context_(context), memory_(memory) {
    if (memory == Memory::kSharedHeap) {
      expect_ok(ddl_alloc(context, kBufferBytes, &data_), "alloc");
      return;
    }
    data_ = ::mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    expect(data_ != MAP_FAILED, "no address space for a buffer");
    (void)::madvise(data_, kBufferBytes, MADV_HUGEPAGE);
  }
  ~Buffer() {
    if (memory_ == Memory::kSharedHeap) {
      ddl_free(context_, data_);
    } else {
      ::munmap(data_, kBufferBytes);
    }
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  unsigned char* data() const { return static_cast<unsigned char*>(data_); }

 private:
  ddl_context* context_;
  Memory memory_;
  void* data_ = nullptr;
};

/// Eight bytes of a rank's input. They differ at all positions of all buffers.
std::uint64_t word_of(int rank, std::uint64_t index) {
  return (index + 1) * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(rank) * 0xBF58476D1CE4E5B9u;
}

/// The same from any byte on, in little-endian order.
std::uint64_t eight_from(int rank, std::uint64_t byte) {
  const std::uint64_t low = word_of(rank, byte / 8), high = word_of(rank, byte / 8 + 1);
  const unsigned shift = byte % 8 * 8;
  return shift == 0 ? low : low >> shift | high << (64 - shift);
}

/// Adds byte by byte, without carries.
std::uint64_t sum_of_bytes(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kHighest = 0x8080808080808080u;
  return ((a & ~kHighest) + (b & ~kHighest)) ^ ((a ^ b) & kHighest);
}

void fill(const Buffer& buffer, int rank) {
  for (std::uint64_t index = 0; index < kBufferBytes / 8; ++index) {
    const std::uint64_t word = word_of(rank, index);
    std::memcpy(buffer.data() + index * 8, &word, sizeof word);
  }
}

/// wanted(byte): the eight bytes from there on.
template <class Wanted>
void check(const unsigned char* data, std::uint64_t bytes, const char* what, Wanted wanted) {
  for (std::uint64_t byte = 0; byte < bytes; byte += 8) {
    const std::uint64_t eight = wanted(byte);
    if (std::memcmp(data + byte, &eight, std::min<std::uint64_t>(8, bytes - byte)) != 0) {
      expect(false, std::string(what) + " is wrong at or after byte " + std::to_string(byte));
    }
  }
}

void check_collectives(ddl_context* context, Memory memory) {
  const int rank = ddl_rank(context), other = 1 - rank;
  const Buffer buffer(context, memory);
  unsigned char* const data = buffer.data();

  fill(buffer, rank);
  expect_ok(ddl_allreduce(context, data, data, kBytes, DDL_UINT8, DDL_SUM, nullptr), "allreduce");
  check(data, kBytes, "the sum",
        [](std::uint64_t byte) { return sum_of_bytes(eight_from(0, byte), eight_from(1, byte)); });
  check(data + kBytes, kBufferBytes - kBytes - 8, "what follows the sum",
        [rank](std::uint64_t byte) { return eight_from(rank, kBytes + byte); });

  fill(buffer, rank);
  expect_ok(ddl_broadcast(context, data, kBytes, DDL_UINT8, 1, nullptr), "broadcast");
  check(data, kBytes, "what rank 1 has sent", [](std::uint64_t byte) { return eight_from(1, byte); });
  check(data + kBytes, kBufferBytes - kBytes - 8, "what follows it",
        [rank](std::uint64_t byte) { return eight_from(rank, kBytes + byte); });

  fill(buffer, rank);
  expect_ok(ddl_alltoall(context, data, data, kPartBytes, DDL_INT8, nullptr), "alltoall");
  const std::uint64_t own_part = static_cast<std::uint64_t>(rank) * kPartBytes;
  check(data + own_part, kPartBytes, "the own part",
        [=](std::uint64_t byte) { return eight_from(rank, own_part + byte); });
  check(data + kPartBytes - own_part, kPartBytes, "the other rank's part",
        [=](std::uint64_t byte) { return eight_from(other, own_part + byte); });
}

void run(ThreadJob job, Memory memory) {
  if (available_mib() < kNeededMiB) {
    DDL_SKIP("two buffers of 4.3 GB need " + std::to_string(kNeededMiB) + " MiB, and " +
             std::to_string(available_mib()) + " MiB are available");
  }
  job.timeout_seconds = 500;
  job.slot_bytes = 256 << 10;
  job.run([memory](ddl_context*& context) { check_collectives(context, memory); });
}

}  // namespace

TEST_CASE("more than 2^32 elements go between the ranks of a host") {
  run(job_on(hosts_of_sizes({2})), Memory::kPrivate);
}

TEST_CASE("more than 2^32 elements go between ranks in the shared heap") {
  run(job_on(hosts_of_sizes({2})), Memory::kSharedHeap);
}

TEST_CASE("more than 2^32 elements go between hosts of one rank each") {
  run(job_on(hosts_of_sizes({1, 1})), Memory::kPrivate);
}
