// Rules of NVIDIA's driver within one process: where memory lies, streams, events and graphs.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gpu/driver.h"
#include "runtime/src/device/device_runtimes.h"

namespace ddl::gpu_rules {
namespace {

constexpr unsigned kBlocking = 0;
constexpr int kCaptureGlobal = 0;

std::string memory_of_the_host(Other*) {
  const std::vector<int> here(kInts);
  const Known found = known(reinterpret_cast<std::uintptr_t>(here.data()));
  expect(found.type == 0 && found.id == 0 && found.begin == 0 && found.bytes == 0,
         "type " + std::to_string(found.type) + ", id " + std::to_string(found.id));
  return "";
}

std::string an_address_inside(Other*) {
  const Memory memory(kBytes);
  const Known found = known(memory.address() + 100), first = known(memory.address());
  expect(found.type == cuda::kDeviceMemory, "type " + std::to_string(found.type));
  expect(found.id != 0 && found.id == first.id, "the numbers differ");
  expect(found.begin == memory.address(), "it begins elsewhere");
  expect(found.bytes >= kBytes, std::to_string(found.bytes) + " bytes");
  return std::to_string(found.bytes) + " bytes of " + std::to_string(kBytes);
}

std::string numbers_of_allocations(Other*) {
  Memory before(kBytes);
  const std::uint64_t id = known(before.address()).id;
  const cuda::Address address = before.address();
  before.free();
  const Memory after(kBytes);
  expect(known(after.address()).id != id, "they are equal");
  return after.address() == address ? "at the same address" : "at another address";
}

std::string memory_of_a_pool(Other*) {
  const Stream stream;
  const Memory own(kBytes);
  cuda::Address memory = own.address();
  if (driver().cuMemAllocAsync != nullptr) {
    check(driver().cuMemAllocAsync(&memory, kBytes, stream.get()), "cuMemAllocAsync");
  } else if (driver().ddl_stand_in_keep_private != nullptr) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers
    driver().ddl_stand_in_keep_private(reinterpret_cast<const void*>(memory));
  } else {
    throw Skipped("the driver has no cuMemAllocAsync");
  }
  expect(known(memory).can_be_shared == 0, "the attribute says that it can");
  cuda::Ipc handle{};
  const auto result = driver().cuIpcGetMemHandle(&handle, memory);
  expect(result != cuda::kSuccess, "it has a handle");
  return text_of(result);
}

std::string no_bytes(Other*) {
  cuda::Address memory = 0;
  const auto result = driver().cuMemAlloc_v2(&memory, 0);
  expect_result(result, 1, "cuMemAlloc");
  return text_of(result);
}

std::string no_context(Other*) {
  cuda::Result result = cuda::kSuccess;
  std::thread([&] {
    cuda::Address memory = 0;
    result = driver().cuMemAlloc_v2(&memory, kBytes);
  }).join();
  expect_result(result, 201, "cuMemAlloc");
  return text_of(result);
}

std::string the_default_stream(Other*) {
  const Stream other, ordinary(kBlocking);
  const Memory memory(kBytes), from(kBytes), to(kBytes);
  Event of_ordinary;
  Gate gate(nullptr);
  check(driver().cuMemcpyAsync(to.address(), from.address(), kBytes, ordinary.get()), "cuMemcpyAsync");
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
  expect_result(driver().cuEventQuery(event.get()), cuda::kSuccess, "never recorded: cuEventQuery");
  Gate gate(held.get());
  event.record(held.get());
  expect_result(driver().cuEventQuery(event.get()), cuda::kErrorNotReady, "while held: cuEventQuery");
  return "";
}

/// Pages of the host that copies can use at any time.
class Pinned {
 public:
  Pinned() {
    check(driver().cuMemHostRegister_v2(pages_, kBytes, cuda::kHostRegisterPortable), "cuMemHostRegister");
  }
  ~Pinned() { (void)driver().cuMemHostUnregister(pages_); }
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
  check(driver().cuMemcpyAsync(memory.address(), reinterpret_cast<std::uintptr_t>(pinned.data()), kBytes,
                               held.get()),
        "cuMemcpyAsync");
  expect(!is_idle(held.get()), "it was carried out at once");
  pinned.data()[7] = 2;  // read when the stream has come so far
  gate.open();
  synchronize(held.get());
  expect(read(memory.address(), kInts, held.get())[7] == 2, "the memory was read before");
  return "";
}

std::string pinned_twice(Other*) {
  Pinned pinned;
  const auto result = driver().cuMemHostRegister_v2(pinned.data(), kBytes, cuda::kHostRegisterPortable);
  expect_result(result, cuda::kErrorAlreadyRegistered, "cuMemHostRegister");
  return text_of(result);
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
  explicit Capture(const Stream& stream, int mode) : stream_(stream) {
    check(driver().cuStreamBeginCapture_v2(stream.get(), mode), "cuStreamBeginCapture");
  }
  cuda::Result end() {
    void* graph = nullptr;
    return driver().cuStreamEndCapture(stream_.get(), &graph);
  }

 private:
  const Stream& stream_;
};

std::string a_stream_that_is_captured(Other*) {
  const Stream stream(kBlocking), other;
  Capture capture(stream, kCaptureGlobal);
  int of_stream = 0, of_other = 1, of_default = 0;
  check(driver().cuStreamIsCapturing(stream.get(), &of_stream), "cuStreamIsCapturing");
  check(driver().cuStreamIsCapturing(other.get(), &of_other), "another stream: cuStreamIsCapturing");
  const auto result = driver().cuStreamIsCapturing(nullptr, &of_default);
  check(capture.end(), "cuStreamEndCapture");
  expect(of_stream == 1 && of_other == 0, std::to_string(of_stream) + " and " + std::to_string(of_other));
  expect_result(result, cuda::kErrorCaptureImplicit, "the default stream: cuStreamIsCapturing");
  return "";
}

std::string questions_beside_a_capture(Other*) {
  const Stream stream, other;
  Event event;
  event.record(other.get());
  Capture capture(stream, kCaptureGlobal);
  std::string problem;
  std::thread([&] {
    try {
      use_gpu();
      int mode = cuda::kCaptureModeRelaxed;
      check(driver().cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
      (void)event.is_done();
      const Memory memory(kBytes);
      write(memory.address(), std::vector<int>(kInts, 3), other.get());
    } catch (const Broken& broken) {
      problem = broken.what();
    }
  }).join();
  const auto result = capture.end();
  expect(problem.empty(), problem);
  check(result, "cuStreamEndCapture");
  return "";
}

std::string events_with_timing(Other*) {
  void* event = nullptr;
  const auto result = driver().cuEventCreate(&event, cuda::kEventInterprocess);
  expect(result != cuda::kSuccess, "it is made");
  return text_of(result);
}

std::string kernels(Other*) {
  const auto runtime = runtime::load_runtime(runtime::device_vendors().front());
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
  return {
      {"Of memory of the host the driver gives attributes of zero, and no error.", memory_of_the_host},
      {"An address inside an allocation has the allocation's number, beginning and size.", an_address_inside},
      {"Memory that is allocated after another was freed has another number.", numbers_of_allocations},
      {"Memory of a pool says that it cannot be shared, and has no handle.", memory_of_a_pool},
      {"An allocation of no bytes is an invalid value.", no_bytes},
      {"A thread without a current context is told so.", no_context},
      {"A stream that does not block does not wait for the default stream.", the_default_stream},
      {"A stream that waits for an event waits for the work before its record.", a_wait_for_an_event},
      {"A wait is for the last record before it; without one it waits for nothing.", a_later_record},
      {"An event is done before it is recorded, and not ready while its stream is held.", questions},
      {"A copy from pinned memory returns at once, and reads when its stream has come so far.",
       a_copy_of_pinned_memory},
      {"Memory that is pinned is not pinned again, and the driver says so.", pinned_twice},
      {"A function of the host that waits does not hold the copies of other streams.",
       copies_beside_a_function},
      {"A function of the host that waits does not hold the functions of other streams.",
       functions_of_two_streams},
      {"A stream that is captured says so; the default stream then has an error of its own.",
       a_stream_that_is_captured},
      {"A thread in relaxed mode asks, allocates and copies while another one captures, and spoils nothing.",
       questions_beside_a_capture},
      {"An event for other processes cannot have times.", events_with_timing},
      {"NVRTC compiles libddl's kernels, and the driver loads them.", kernels},
  };
}

}  // namespace ddl::gpu_rules
