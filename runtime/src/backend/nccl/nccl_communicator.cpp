#include "runtime/src/backend/nccl/nccl_communicator.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/deadline.h"

namespace ddl::runtime {
namespace {

/// Between two looks at what NCCL does in the background: connecting takes milliseconds.
constexpr auto kPause = std::chrono::microseconds(100);
/// Most calls are executed at once.
constexpr int kLooksWithoutPause = 100;
constexpr auto kLeaveLimit = std::chrono::seconds(10);

}  // namespace

Result<std::unique_ptr<NcclCommunicator>> NcclCommunicator::join(const NcclLibrary& library, Device& device,
                                                                 const nccl::UniqueId& id, int rank, int size,
                                                                 const MustStop& must_stop) {
  DDL_ASSIGN(stream, DeviceStream::make(device));
  std::unique_ptr<NcclCommunicator> made(
      new NcclCommunicator(library, device, std::move(stream), rank, size));
  nccl::Config config;
  const std::lock_guard lock(made->mutex_);
  nccl::Comm comm = nullptr;
  const auto result = library.functions().ncclCommInitRankConfig(&comm, size, id, rank, &config);
  made->comm_ = comm;
  DDL_TRY(library.check("ncclCommInitRankConfig", result, comm));
  if (auto settled = made->settle(must_stop); !settled) {
    if (auto* const unfinished = std::exchange(made->comm_, nullptr))
      (void)library.functions().ncclCommAbort(unfinished);
    return fail(std::move(settled.error().during("ncclCommInitRankConfig")));
  }
  return made;
}

NcclCommunicator::~NcclCommunicator() {
  const std::lock_guard lock(mutex_);
  const CurrentDevice current(device_);
  if (scratch_ != nullptr) device_.release(scratch_);
  if (comm_ == nullptr) return;
  const nccl::Functions& nccl = library_.functions();
  // This waits for the other ranks, which leave the set, too.
  const auto limit = Deadline::after(kLeaveLimit);
  if (library_.check("ncclCommFinalize", nccl.ncclCommFinalize(comm_), comm_) &&
      settle([&] { return limit.has_passed(); })) {
    (void)nccl.ncclCommDestroy(comm_);
  } else {
    (void)nccl.ncclCommAbort(comm_);
  }
}

Result<std::byte*> NcclCommunicator::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    // Both wait until the GPU has come to rest. What it does now needs no rank that waits for this one.
    if (scratch_ != nullptr) device_.release(std::exchange(scratch_, nullptr));
    scratch_bytes_ = 0;
    DDL_ASSIGN(allocated, device_.allocate(bytes));
    scratch_ = allocated;
    scratch_bytes_ = bytes;
  }
  return static_cast<std::byte*>(scratch_);
}

Status NcclCommunicator::launch(const std::function<Status(nccl::Comm)>& calls, const MustStop& must_stop) {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return fail(ErrorCode::kClosed, "the communicator was given up");
  const nccl::Functions& nccl = library_.functions();
  DDL_TRY(library_.check("ncclGroupStart", nccl.ncclGroupStart(), comm_));
  auto called = calls(comm_);
  // The group is ended in any case: otherwise this thread would be inside it for ever.
  const auto ended = library_.check("ncclGroupEnd", nccl.ncclGroupEnd(), comm_);
  DDL_TRY(called);
  DDL_TRY(ended);
  return settle(must_stop);
}

Status NcclCommunicator::settle(const MustStop& must_stop) {
  for (int looks = 0;; ++looks) {
    nccl::Result state = nccl::kSuccess;
    DDL_TRY(library_.check("ncclCommGetAsyncError", library_.functions().ncclCommGetAsyncError(comm_, &state),
                           comm_));
    if (state != nccl::kInProgress) return library_.check("NCCL", state, comm_);
    if (must_stop()) return fail(ErrorCode::kTimeout, "NCCL did not become ready");
    if (looks >= kLooksWithoutPause) std::this_thread::sleep_for(kPause);
  }
}

Status NcclCommunicator::async_error() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  if (comm_ == nullptr) return {};
  nccl::Result state = nccl::kSuccess;
  DDL_TRY(library_.check("ncclCommGetAsyncError", library_.functions().ncclCommGetAsyncError(comm_, &state),
                         comm_));
  return library_.check("NCCL", state, comm_);
}

void NcclCommunicator::give_up() {
  const std::lock_guard lock(mutex_);
  auto* const comm = std::exchange(comm_, nullptr);
  if (comm == nullptr) return;
  const CurrentDevice current(device_);
  (void)library_.functions().ncclCommAbort(comm);
}

}  // namespace ddl::runtime
