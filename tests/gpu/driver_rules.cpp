// Rules of a vendor's runtime within one process: where memory lies, streams, events and graphs.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gpu/driver.h"
#include "runtime/src/device/device_runtimes.h"

namespace ddl::gpu_rules {
namespace {

std::string memory_of_the_host(Other*) {
  const std::vector<int> here(kInts);
  Known found;
  check(driver().find(found, here.data()), "the question for an address");
  expect(!found.is_on_gpu && found.id == 0 && found.begin == 0 && found.bytes == 0,
         "it is on a GPU, id " + std::to_string(found.id));
  return "";
}

std::string an_address_inside(Other*) {
  const Memory memory(kBytes);
  const Known found = known(static_cast<const char*>(memory.address()) + 100),
              first = known(memory.address());
  expect(found.id != 0 && found.id == first.id, "the numbers differ");
  expect(found.begin == reinterpret_cast<std::uintptr_t>(memory.address()), "it begins elsewhere");
  expect(found.bytes >= kBytes, std::to_string(found.bytes) + " bytes");
  return std::to_string(found.bytes) + " bytes of " + std::to_string(kBytes);
}

std::string numbers_of_allocations(Other*) {
  Memory before(kBytes);
  const std::uint64_t id = known(before.address()).id;
  const void* const address = before.address();
  before.free();
  const Memory after(kBytes);
  expect(known(after.address()).id != id, "they are equal");
  return after.address() == address ? "at the same address" : "at another address";
}

std::string memory_of_a_pool(Other*) {
  const Stream stream;
  void* memory = nullptr;
  check(driver().allocate_from_pool(&memory, kBytes, stream.get()), "an allocation from a pool");
  expect(!known(memory).can_be_shared, "the attribute says that it can");
  IpcHandle handle{};
  const Code result = driver().share_memory(handle, memory);
  expect(result != kSuccess, "it has a handle");
  return driver().text_of(result);
}

std::string no_bytes(Other*) {
  void* memory = nullptr;
  const Code result = driver().allocate(&memory, 0);
  // HIP gives null and no error.
  expect_result(result, is_hip() ? kSuccess : kInvalidValue, "the allocation");
  expect(memory == nullptr, "there is memory");
  return driver().text_of(result);
}

/// On a thread that has chosen no GPU.
Code result_of_allocation() {
  Code result = kSuccess;
  std::thread([&] {
    void* memory = nullptr;
    result = driver().allocate(&memory, kBytes);
    if (result == kSuccess) (void)driver().release(memory);
  }).join();
  return result;
}
std::string no_context(Other*) {
  const Code result = result_of_allocation();
  constexpr Code kInvalidContext = 201;
  expect_result(result, kInvalidContext, "an allocation");
  return driver().text_of(result);
}
std::string no_gpu_chosen(Other*) {
  check(result_of_allocation(), "an allocation");
  return "";
}

std::string the_default_stream(Other*) {
  const Stream other, ordinary(kOrdinary);
  const Memory memory(kBytes), from(kBytes), to(kBytes);
  Event of_ordinary;
  Gate gate(nullptr);
  check(driver().copy(to.address(), from.address(), kBytes, ordinary.get()), "a copy");
  of_ordinary.record(ordinary.get());
  write(memory.address(), std::vector<int>(kInts, 1),
        other.get());  // ends the rule at its deadline if it waits
  expect(!of_ordinary.is_done(), "an ordinary stream does not wait for it");
  gate.open();
  synchronize(ordinary.get());
  return "an ordinary one does";
}

std::string a_wait_for_an_event(Other*) {
  const Stream held, waits;
  Event event;
  Gate gate(held.get());
  event.record(held.get());
  event.hold(waits.get());
  expect(!is_idle(waits.get()), "the stream does not wait");
  gate.open();
  synchronize(waits.get());
  return "";
}

std::string a_later_record(Other*) {
  const Stream held, waits;
  Event event;
  event.hold(waits.get());  // it has never been recorded
  synchronize(waits.get());
  event.record(waits.get());
  event.hold(waits.get());
  Gate gate(held.get());
  event.record(held.get());
  synchronize(waits.get());
  return "";
}

std::string questions(Other*) {
  const Stream held;
  Event event;
  expect_result(driver().query(event.get()), kSuccess, "never recorded: the question");
  Gate gate(held.get());
  event.record(held.get());
  expect_result(driver().query(event.get()), kNotReady, "while held: the question");
  return "";
}

/// Pages of the host that copies can use at any time.
class Pinned {
 public:
  Pinned() { check(driver().pin(pages_, kBytes), "pinning"); }
  ~Pinned() { (void)driver().unpin(pages_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  int* data() { return pages_; }

 private:
  alignas(4096) int pages_[kInts]{};
};

std::string a_copy_of_pinned_memory(Other*) {
  const Stream held;
  const Memory memory(kBytes);
  Pinned pinned;
  pinned.data()[7] = 1;
  Gate gate(held.get());
  check(driver().copy(memory.address(), pinned.data(), kBytes, held.get()), "a copy");
  expect(!is_idle(held.get()), "it was executed at once");
  pinned.data()[7] = 2;  // read when the stream has come so far
  gate.open();
  synchronize(held.get());
  expect(read(memory.address(), kInts, held.get())[7] == 2, "the memory was read before");
  return "";
}

std::string pinned_twice(Other*) {
  Pinned pinned;
  const Code result = driver().pin(pinned.data(), kBytes);
  expect_result(result, kAlreadyPinned, "pinning");
  return driver().text_of(result);
}

std::string functions_of_two_streams(Other*) {
  const Stream held, other;
  Gate gate(held.get());
  Gate second(other.get());
  second.open();
  synchronize(other.get());
  return "";
}

std::string copies_beside_a_function(Other*) {
  const Stream held, other;
  const Memory memory(kBytes);
  Gate gate(held.get());
  write(memory.address(), std::vector<int>(kInts, 3), other.get());
  return "";
}

class Capture {
 public:
  explicit Capture(const Stream& stream) : stream_(stream) {
    check(driver().begin_capture(stream.get()), "the beginning of a capture");
  }
  Code end() { return driver().end_capture(stream_.get()); }

 private:
  const Stream& stream_;
};

std::string a_stream_that_is_captured(Other*) {
  const Stream stream(kOrdinary), other;
  Capture capture(stream);
  int of_stream = 0, of_other = 1, of_default = 0;
  check(driver().is_capturing(stream.get(), &of_stream), "the question");
  check(driver().is_capturing(other.get(), &of_other), "the question for another stream");
  const Code result = driver().is_capturing(nullptr, &of_default);
  check(capture.end(), "the end of the capture");
  expect(of_stream == 1 && of_other == 0, std::to_string(of_stream) + " and " + std::to_string(of_other));
  expect_result(result, kCaptureImplicit, "the question for the default stream");
  return "";
}

std::string questions_beside_a_capture(Other*) {
  const Stream stream, other;
  Event event;
  event.record(other.get());
  Capture capture(stream);
  std::string problem;
  std::thread([&] {
    try {
      driver().use_gpu();
      check(driver().relax_captures(), "the relaxed mode");
      (void)event.is_done();
      const Memory memory(kBytes);
      write(memory.address(), std::vector<int>(kInts, 3), other.get());
    } catch (const Broken& broken) {
      problem = broken.what();
    }
  }).join();
  const auto result = capture.end();
  expect(problem.empty(), problem);
  check(result, "the end of the capture");
  return "";
}

std::string events_with_timing(Other*) {
  void* event = nullptr;
  const Code result = driver().make_event(&event, kForProcesses);
  expect(result != kSuccess, "it is made");
  return driver().text_of(result);
}

std::string kernels(Other*) {
  const auto runtime = runtime::load_runtime(runtime::device_vendors()[is_hip() ? 1 : 0]);
  if (!runtime) throw Skipped(runtime.error().message());
  const auto device = (*runtime)->device(0);
  expect(device.has_value(), device ? "" : device.error().message());
  const runtime::CurrentDevice current(**device);
  const auto begin = std::chrono::steady_clock::now();
  for (const auto program : {runtime::GpuProgram::kForNccl, runtime::GpuProgram::kForIpc}) {
    const auto prepared = (*device)->prepare_kernels(program);
    expect(prepared.has_value(), prepared ? "" : prepared.error().message());
  }
  return seconds_since(begin);
}

}  // namespace

std::vector<Rule> driver_rules() {
  const Rule of_bytes = is_hip() ? Rule{"An allocation of no bytes is null, and no error.", no_bytes}
                                 : Rule{"An allocation of no bytes is an invalid value.", no_bytes};
  const Rule of_threads = is_hip() ? Rule{"A thread that has chosen no GPU has one.", no_gpu_chosen}
                                   : Rule{"A thread without a current context is told so.", no_context};
  return {
      {"Memory of the host is not on a GPU.", memory_of_the_host},
      {"An address inside an allocation has the allocation's number, beginning and size.", an_address_inside},
      {"Memory that is allocated after another was freed has another number.", numbers_of_allocations},
      {"Memory of a pool has no handle, and is not said to be shared.", memory_of_a_pool},
      of_bytes,
      of_threads,
      {"A stream that does not block does not wait for the default stream.", the_default_stream},
      {"A stream that waits for an event waits for the work before its record.", a_wait_for_an_event},
      {"A wait is for the last record before it; without one it waits for nothing.", a_later_record},
      {"An event is done before it is recorded, and not ready while its stream is held.", questions},
      {"A copy from pinned memory returns at once, and reads when its stream has come so far.",
       a_copy_of_pinned_memory},
      {"Memory that is pinned is not pinned again, and this is said.", pinned_twice},
      {"A function of the host that waits does not hold the copies of other streams.",
       copies_beside_a_function},
      {"A function of the host that waits does not hold the functions of other streams.",
       functions_of_two_streams},
      {"A stream that is captured says so; the default stream then has an error of its own.",
       a_stream_that_is_captured},
      {"A thread in relaxed mode asks, allocates and copies while another one captures, and spoils nothing.",
       questions_beside_a_capture},
      {"An event for other processes cannot have times.", events_with_timing},
      {"NVRTC or hipRTC compiles libddl's kernels, and they are loaded.", kernels},
  };
}

}  // namespace ddl::gpu_rules
