// Rules of NCCL and RCCL, for one GPU.
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "gpu/driver.h"
#include "runtime/src/backend/nccl/nccl_library.h"
#include "runtime/src/device/device_runtimes.h"

namespace ddl::gpu_rules {
namespace {

namespace nccl = ddl::runtime::nccl;
using ddl::runtime::NcclLibrary;

constexpr nccl::Result kInvalidUsage = 5;

const NcclLibrary& library() {
  const auto loaded = NcclLibrary::load(is_hip() ? "librccl.so.1" : "libnccl.so.2");
  if (!loaded) throw Skipped(loaded.error().message());
  return **loaded;
}
const nccl::Functions& functions() { return library().functions(); }

void check_nccl(const char* function, nccl::Result result) {
  if (const auto status = library().check(function, result, nullptr); !status)
    throw Broken(status.error().message());
}

/// The result of what the communicator does in the background, once that has ended.
nccl::Result settled(nccl::Comm comm) {
  nccl::Result state = nccl::kInProgress;
  while (state == nccl::kInProgress) {
    if (const auto asked = functions().ncclCommGetAsyncError(comm, &state); asked != nccl::kSuccess)
      return asked;
    std::this_thread::yield();
  }
  return state;
}

nccl::UniqueId new_id() {
  nccl::UniqueId id{};
  check_nccl("ncclGetUniqueId", functions().ncclGetUniqueId(&id));
  return id;
}

struct Begun {
  nccl::Comm comm = nullptr;
  nccl::Result result = nccl::kSuccess;
};
Begun begin(int ranks, const nccl::UniqueId& id, int rank) {
  nccl::Config config;
  Begun begun;
  begun.result = functions().ncclCommInitRankConfig(&begun.comm, ranks, id, rank, &config);
  return begun;
}

/// A communicator of this process alone.
class Alone {
 public:
  Alone() : comm_(begin(1, new_id(), 0).comm) {
    expect(comm_ != nullptr, "ncclCommInitRankConfig gives none");
    check_nccl("ncclCommInitRankConfig", settled(comm_));
  }
  ~Alone() { (void)functions().ncclCommAbort(comm_); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  nccl::Comm get() const { return comm_; }

 private:
  nccl::Comm comm_;
};

std::string a_version(Other*) { return ddl::runtime::nccl_version_text(library().version()); }

std::string without_blocking(Other*) {
  const Begun begun = begin(1, new_id(), 0);
  expect(begun.result == nccl::kSuccess || begun.result == nccl::kInProgress,
         "ncclCommInitRankConfig: result " + std::to_string(begun.result));
  const auto state = settled(begun.comm);
  (void)functions().ncclCommAbort(begun.comm);
  check_nccl("ncclCommGetAsyncError", state);
  return "result " + std::to_string(begun.result);
}

/// Puts an allreduce of kInts numbers on the stream, or of as many bytes of another type.
nccl::Result sum(nccl::Comm comm, const Memory& from, const Memory& to, const Stream& stream,
                 nccl::DataType type = nccl::kInt32) {
  const std::size_t count = type == nccl::kInt32 ? kInts : kBytes;
  check_nccl("ncclGroupStart", functions().ncclGroupStart());
  const auto result =
      functions().ncclAllReduce(from.address(), to.address(), count, type, nccl::kSum, comm, stream.get());
  check_nccl("ncclAllReduce", result);
  check_nccl("ncclGroupEnd", functions().ncclGroupEnd());
  check_nccl("ncclGroupEnd", settled(comm));
  return result;
}

std::string one_rank(Other*) {
  const Stream stream;
  const Memory from(kBytes), to(kBytes);
  write(from.address(), std::vector<int>(kInts, 3), stream.get());
  const Alone alone;
  const auto result = sum(alone.get(), from, to, stream);
  expect(read(to.address(), kInts, stream.get()) == std::vector<int>(kInts, 3), "another result");
  return "result " + std::to_string(result);
}

std::string giving_up_while_held(Other*) {
  const Stream stream;
  const Memory from(kBytes), to(kBytes);
  const Begun begun = begin(1, new_id(), 0);
  check_nccl("ncclCommInitRankConfig", settled(begun.comm));
  (void)sum(begun.comm, from, to, stream);
  synchronize(stream.get());
  Gate gate(stream.get());
  (void)sum(begun.comm, from, to, stream);
  auto abort = std::async(std::launch::async, [&] {
    driver().use_gpu();
    return functions().ncclCommAbort(begun.comm);
  });
  const bool is_at_once = abort.wait_for(std::chrono::milliseconds(500)) == std::future_status::ready;
  gate.open();
  check_nccl("ncclCommAbort", abort.get());
  synchronize(stream.get());
  return is_at_once ? "at once" : "when the stream goes on";
}

std::string eight_bits(Other*) {
  const auto runtime = runtime::load_runtime(runtime::device_vendors()[is_hip() ? 1 : 0]);
  if (!runtime) throw Skipped(runtime.error().message());
  const auto device = (*runtime)->device(0);
  expect(device.has_value(), device ? "" : device.error().message());
  const auto formats = (*device)->float8_formats();
  if (library().version() < nccl::kOldestWithFloat8 || formats == runtime::Float8Formats::kNone)
    throw Skipped("the library or the GPU has none");
  const Stream stream;
  const Memory from(kBytes), to(kBytes);
  write(from.address(), std::vector<int>(kInts, 0x38404838), stream.get());
  const Alone alone;
  (void)sum(alone.get(), from, to, stream, nccl::kFloat8E4m3);
  expect(read(to.address(), kInts, stream.get()) == std::vector<int>(kInts, 0x38404838), "another result");
  return formats == runtime::Float8Formats::kOcp ? "E4M3FN and E5M2" : "E4M3FNUZ and E5M2FNUZ";
}

std::string the_current_gpu(Other*) {
  const std::uintptr_t before = driver().current();
  { const Alone alone; }
  expect(driver().current() == before, "another one is current");
  return "";
}

std::string a_rank_that_never_comes(Other*) {
  const Begun begun = begin(2, new_id(), 0);
  nccl::Result state = nccl::kSuccess;
  check_nccl("ncclCommGetAsyncError", functions().ncclCommGetAsyncError(begun.comm, &state));
  expect(state == nccl::kInProgress, "it has not waited: result " + std::to_string(state));
  const auto start = std::chrono::steady_clock::now();
  check_nccl("ncclCommAbort", functions().ncclCommAbort(begun.comm));
  return seconds_since(start);
}

std::string two_on_one_gpu(Other* other) {
  if (driver().is_stand_in()) throw Skipped("the stand-in ends a program that tries it");
  const nccl::UniqueId id = new_id();
  other->send(id);
  const Begun begun = begin(2, id, 0);
  const nccl::Result result = begun.result == nccl::kSuccess || begun.result == nccl::kInProgress
                                  ? settled(begun.comm)
                                  : begun.result;
  const char* const text = begun.comm == nullptr ? "" : functions().ncclGetLastError(begun.comm);
  if (begun.comm != nullptr) (void)functions().ncclCommAbort(begun.comm);
  other->wait_done();
  expect(result != nccl::kSuccess, "it takes them");
  return (result == kInvalidUsage ? "invalid usage " : "result " + std::to_string(result) + " ") +
         (text == nullptr ? "" : text);
}
void second_on_one_gpu(Other& other) {
  const Begun begun = begin(2, other.receive<nccl::UniqueId>(), 1);
  if (begun.comm != nullptr) {
    (void)settled(begun.comm);
    (void)functions().ncclCommAbort(begun.comm);
  }
  other.say_done();
}

}  // namespace

std::vector<Rule> nccl_rules() {
  return {
      {"NCCL or RCCL is 2.14 or newer.", a_version},
      {"A communicator is made without blocking.", without_blocking},
      {"A sum of one rank is its input.", one_rank},
      {"8-bit floats are combined on the GPUs and by the versions for which libddl expects it.", eight_bits},
      {"ncclCommInitRankConfig and ncclCommAbort do not change the current GPU.", the_current_gpu},
      {"A communicator whose other rank never comes can be given up.", a_rank_that_never_comes},
      {"A communicator whose last call waits for its stream is given up, at the latest when the stream goes "
       "on.",
       giving_up_while_held},
      {"NCCL and RCCL refuse two ranks on one GPU.", two_on_one_gpu, second_on_one_gpu},
  };
}

}  // namespace ddl::gpu_rules
