// Puts the buffers of a program's collectives into memory of a GPU. A program that is linked with this and with
// --wrap for the functions below makes the same calls as before; each is executed on copies of its buffers on a GPU,
// which are copied back after it. So a test that was written for CPU memory also tests GPUs.
//
// The copies keep the buffers' alignment, and how they overlap. Calls alternate between a stream and the default
// stream; the copies are on that stream, too, and nothing waits between, so the library has to keep the order.
// DDL_TEST_GPUS=shared: all ranks use the first GPU; otherwise each takes the one of its rank.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/support/test_gpu.h"

namespace {

using ddl::runtime::test::TestGpu;

constexpr std::size_t kAlignment = 512;
/// No test has larger buffers: such a call is one that is refused.
constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;

/// Bytes of a buffer that a call uses. 0: it does not use it.
struct Extent {
  const void* data = nullptr;
  std::uint64_t bytes = 0;

  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(data); }
  std::uintptr_t end() const { return begin() + bytes; }
};

/// A range of CPU memory, and its copy on the GPU.
class Copied {
 public:
  Copied(std::uintptr_t begin, std::uintptr_t end, void* stream)
      : host_(reinterpret_cast<std::byte*>(begin)),  // NOLINT(performance-no-int-to-ptr): it was a pointer
        bytes_(end - begin),
        shift_(begin % kAlignment),
        stream_(stream) {
    memory_ = TestGpu::get().allocate(shift_ + bytes_);
    TestGpu::get().copy(on_gpu(), host_, bytes_, stream);
  }
  ~Copied() { TestGpu::get().free(memory_); }
  Copied(const Copied&) = delete;
  Copied& operator=(const Copied&) = delete;

  bool holds(const Extent& extent) const {
    return extent.begin() >= reinterpret_cast<std::uintptr_t>(host_) &&
           extent.end() <= reinterpret_cast<std::uintptr_t>(host_) + bytes_;
  }
  std::byte* at(const Extent& extent) const {
    return on_gpu() + (static_cast<const std::byte*>(extent.data) - host_);
  }
  void copy_back() const { TestGpu::get().copy(host_, on_gpu(), bytes_, stream_); }

 private:
  std::byte* on_gpu() const { return static_cast<std::byte*>(memory_) + shift_; }

  std::byte* host_;
  std::size_t bytes_;
  std::size_t shift_;
  void* stream_;
  void* memory_ = nullptr;
};

/// Makes the GPU of a rank current on this thread, and has a stream of it.
class OnGpu {
 public:
  explicit OnGpu(const ddl_context* context) {
    TestGpu& gpus = TestGpu::get();
    const int gpu =
        ddl::runtime::test::all_ranks_share_a_gpu() ? 0 : std::max(ddl_rank(context), 0) % gpus.count();
    gpus.use(gpu);
    // A stream for each thread and GPU, of which there are few.
    thread_local std::map<int, std::unique_ptr<Stream>> streams;
    auto& stream = streams[gpu];
    if (!stream) stream = std::make_unique<Stream>(gpu);
    stream_ = stream->handle;
  }
  void* stream() const { return stream_; }

 private:
  struct Stream {
    explicit Stream(int gpu) : of(gpu), handle(TestGpu::get().make_stream()) {}
    ~Stream() {
      TestGpu::get().use(of);
      TestGpu::get().destroy(handle);
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    int of;
    void* handle;
  };
  void* stream_ = nullptr;
};

/// The buffers of one call on the GPU.
class Buffers {
 public:
  Buffers(Extent send, Extent recv, void* stream) : send_(send), recv_(recv), stream_(stream) {
    const auto is_used = [](const Extent& extent) { return extent.data != nullptr && extent.bytes > 0; };
    if (is_used(send) && is_used(recv) && send.begin() <= recv.end() && recv.begin() <= send.end()) {
      add(std::min(send.begin(), recv.begin()), std::max(send.end(), recv.end()));
      return;
    }
    if (is_used(send)) add(send.begin(), send.end());
    if (is_used(recv)) add(recv.begin(), recv.end());
  }

  bool is_empty() const { return copies_.empty(); }
  void* send() const { return moved(send_); }
  void* recv() const { return moved(recv_); }
  void copy_back() const {
    for (const auto& copy : copies_) copy->copy_back();
    TestGpu::get().synchronize(stream_);
  }

 private:
  void add(std::uintptr_t begin, std::uintptr_t end) {
    copies_.push_back(std::make_unique<Copied>(begin, end, stream_));
  }
  void* moved(const Extent& extent) const {
    if (extent.data == nullptr || extent.bytes == 0) return const_cast<void*>(extent.data);
    for (const auto& copy : copies_) {
      if (copy->holds(extent)) return copy->at(extent);
    }
    return const_cast<void*>(extent.data);
  }

  Extent send_, recv_;
  void* stream_;
  std::vector<std::unique_ptr<Copied>> copies_;
};

/// The numbers of elements that a call uses, or that it is refused.
struct Counts {
  std::uint64_t send = 0, recv = 0;
};

/// The process set that a call names, as far as the numbers need it.
struct Set {
  int rank = -1, size = 0;

  Set(const ddl_context* context, std::uint64_t id)
      : rank(ddl_process_set_rank(context, id)), size(ddl_process_set_size(context, id)) {}
  std::uint64_t sum(const std::uint64_t* counts) const {
    std::uint64_t all = 0;
    for (int i = 0; counts != nullptr && i < size; ++i) all += std::min(counts[i], kMaxBytes);
    return all;
  }
  std::uint64_t own(const std::uint64_t* counts) const {
    return counts == nullptr || rank < 0 ? 0 : counts[rank];
  }
  std::uint64_t all(std::uint64_t count) const {
    return std::min(count, kMaxBytes) * static_cast<unsigned>(std::max(size, 0));
  }
};

/// nullopt for a call that libddl must refuse, such as one of an unknown type: it keeps its own buffers.
std::optional<std::pair<Extent, Extent>> extents(const void* send, const void* recv, Counts counts,
                                                 ddl_dtype dtype) {
  const std::uint64_t element = ddl_dtype_size(dtype);
  if (element == 0 || counts.send > kMaxBytes / element || counts.recv > kMaxBytes / element)
    return std::nullopt;
  return std::pair{Extent{send, counts.send * element}, Extent{recv, counts.recv * element}};
}

thread_local unsigned calls = 0;

/// Makes call(send, recv, options) with buffers on the GPU.
template <class Options, class Call>
ddl_status on_gpu(ddl_context* context, const Options* given, Options defaults, const void* send, void* recv,
                  Counts counts, ddl_dtype dtype, Call call) {
  const auto used = extents(send, recv, counts, dtype);
  const bool is_refused =
      given != nullptr && (given->struct_size < sizeof defaults || given->stream != nullptr);
  if (context == nullptr || !used || is_refused) return call(const_cast<void*>(send), recv, given);
  const OnGpu here(context);
  void* const stream = ++calls % 2 == 0 ? nullptr : here.stream();
  const Buffers buffers(used->first, used->second, stream);
  Options options = given == nullptr ? defaults : *given;
  // Without a buffer only a stream says that the others' lie on GPUs.
  options.stream = buffers.is_empty() ? here.stream() : stream;
  const ddl_status status = call(buffers.send(), buffers.recv(), &options);
  buffers.copy_back();
  return status;
}

std::uint64_t set_of(const ddl_call_options* options) {
  return options == nullptr || options->struct_size < sizeof *options ? DDL_WORLD : options->process_set;
}
std::uint64_t set_of(const ddl_async_options* options) {
  return options == nullptr || options->struct_size < sizeof *options ? DDL_WORLD : options->process_set;
}
const ddl_call_options kCallDefaults = DDL_CALL_OPTIONS_INIT;
const ddl_async_options kAsyncDefaults = DDL_ASYNC_OPTIONS_INIT;

}  // namespace

extern "C" {

#define DDL_WRAPPED(result, name, ...) \
  result __real_##name(__VA_ARGS__);   \
  result __wrap_##name(__VA_ARGS__)

DDL_WRAPPED(ddl_status, ddl_allreduce, ddl_context* context, const void* send, void* recv, uint64_t count,
            ddl_dtype dtype, ddl_op op, const ddl_call_options* options) {
  return on_gpu(context, options, kCallDefaults, send, recv, {count, count}, dtype,
                [&](void* s, void* r, const ddl_call_options* o) {
                  return __real_ddl_allreduce(context, s, r, count, dtype, op, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_reduce, ddl_context* context, const void* send, void* recv, uint64_t count,
            ddl_dtype dtype, ddl_op op, int32_t root, const ddl_call_options* options) {
  const Set set(context, set_of(options));
  return on_gpu(context, options, kCallDefaults, send, recv, {count, set.rank == root ? count : 0}, dtype,
                [&](void* s, void* r, const ddl_call_options* o) {
                  return __real_ddl_reduce(context, s, r, count, dtype, op, root, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_reduce_scatter, ddl_context* context, const void* send, void* recv,
            const uint64_t* counts, ddl_dtype dtype, ddl_op op, const ddl_call_options* options) {
  const Set set(context, set_of(options));
  return on_gpu(context, options, kCallDefaults, send, recv, {set.sum(counts), set.own(counts)}, dtype,
                [&](void* s, void* r, const ddl_call_options* o) {
                  return __real_ddl_reduce_scatter(context, s, r, counts, dtype, op, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_scan, ddl_context* context, const void* send, void* recv, uint64_t count,
            ddl_dtype dtype, ddl_op op, const ddl_call_options* options) {
  return on_gpu(context, options, kCallDefaults, send, recv, {count, count}, dtype,
                [&](void* s, void* r, const ddl_call_options* o) {
                  return __real_ddl_scan(context, s, r, count, dtype, op, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_broadcast, ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype,
            int32_t root, const ddl_call_options* options) {
  return on_gpu(context, options, kCallDefaults, nullptr, buffer, {0, count}, dtype,
                [&](void*, void* r, const ddl_call_options* o) {
                  return __real_ddl_broadcast(context, r, count, dtype, root, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_allgather, ddl_context* context, const void* send, void* recv, uint64_t count,
            ddl_dtype dtype, const ddl_call_options* options) {
  const Set set(context, set_of(options));
  return on_gpu(context, options, kCallDefaults, send, recv, {count, set.all(count)}, dtype,
                [&](void* s, void* r, const ddl_call_options* o) {
                  return __real_ddl_allgather(context, s, r, count, dtype, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_allgatherv, ddl_context* context, const void* send, void* recv,
            const uint64_t* counts, ddl_dtype dtype, const ddl_call_options* options) {
  const Set set(context, set_of(options));
  return on_gpu(context, options, kCallDefaults, send, recv, {set.own(counts), set.sum(counts)}, dtype,
                [&](void* s, void* r, const ddl_call_options* o) {
                  return __real_ddl_allgatherv(context, s, r, counts, dtype, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_gather, ddl_context* context, const void* send, void* recv, uint64_t count,
            ddl_dtype dtype, int32_t root, const ddl_call_options* options) {
  const Set set(context, set_of(options));
  return on_gpu(context, options, kCallDefaults, send, recv, {count, set.rank == root ? set.all(count) : 0},
                dtype, [&](void* s, void* r, const ddl_call_options* o) {
                  return __real_ddl_gather(context, s, r, count, dtype, root, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_scatter, ddl_context* context, const void* send, void* recv, uint64_t count,
            ddl_dtype dtype, int32_t root, const ddl_call_options* options) {
  const Set set(context, set_of(options));
  return on_gpu(context, options, kCallDefaults, send, recv, {set.rank == root ? set.all(count) : 0, count},
                dtype, [&](void* s, void* r, const ddl_call_options* o) {
                  return __real_ddl_scatter(context, s, r, count, dtype, root, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_alltoall, ddl_context* context, const void* send, void* recv, uint64_t count,
            ddl_dtype dtype, const ddl_call_options* options) {
  const Set set(context, set_of(options));
  return on_gpu(context, options, kCallDefaults, send, recv, {set.all(count), set.all(count)}, dtype,
                [&](void* s, void* r, const ddl_call_options* o) {
                  return __real_ddl_alltoall(context, s, r, count, dtype, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_alltoallv, ddl_context* context, const void* send, const uint64_t* send_counts,
            void* recv, uint64_t recv_capacity, uint64_t* recv_counts, ddl_dtype dtype,
            const ddl_call_options* options) {
  const Set set(context, set_of(options));
  return on_gpu(context, options, kCallDefaults, send, recv, {set.sum(send_counts), recv_capacity}, dtype,
                [&](void* s, void* r, const ddl_call_options* o) {
                  return __real_ddl_alltoallv(context, s, send_counts, r, recv_capacity, recv_counts, dtype,
                                              o);
                });
}

DDL_WRAPPED(ddl_status, ddl_send, ddl_context* context, const void* buffer, uint64_t count, ddl_dtype dtype,
            int32_t to, const ddl_call_options* options) {
  return on_gpu(context, options, kCallDefaults, buffer, nullptr, {count, 0}, dtype,
                [&](void* s, void*, const ddl_call_options* o) {
                  return __real_ddl_send(context, s, count, dtype, to, o);
                });
}

DDL_WRAPPED(ddl_status, ddl_recv, ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype,
            int32_t from, const ddl_call_options* options) {
  return on_gpu(context, options, kCallDefaults, nullptr, buffer, {0, count}, dtype,
                [&](void*, void* r, const ddl_call_options* o) {
                  return __real_ddl_recv(context, r, count, dtype, from, o);
                });
}

// Named tensors: the copies live until the tensor is waited for.

}  // extern "C"

namespace {

/// A tensor that has been submitted.
struct Open {
  ddl_context* context = nullptr;
  std::unique_ptr<Buffers> buffers;
  /// Where the program wants a result that libddl allocates, and where libddl stores it.
  void** result = nullptr;
  void* on_gpu = nullptr;
  std::uint64_t* recv_counts = nullptr;
  std::vector<std::uint64_t> own_counts;
  ddl_dtype dtype = DDL_UINT8;
};

std::mutex mutex;
std::map<ddl_handle*, std::unique_ptr<Open>> open_tensors;  // guarded by mutex
std::map<void*, bool> results;                              // of the program's, by malloc(); guarded by mutex

/// Submits with call(send, recv, options, open, handle).
template <class Call>
ddl_status submit(ddl_context* context, const ddl_async_options* given, const void* send, void* recv,
                  Counts counts, ddl_dtype dtype, ddl_handle** handle, Call call) {
  const auto used = extents(send, recv, counts, dtype);
  auto open = std::make_unique<Open>();
  if (context == nullptr || !used || handle == nullptr || (given != nullptr && given->stream != nullptr))
    return call(const_cast<void*>(send), recv, given, *open);
  const OnGpu here(context);
  void* const stream = ++calls % 2 == 0 ? nullptr : here.stream();
  open->context = context;
  open->dtype = dtype;
  open->buffers = std::make_unique<Buffers>(used->first, used->second, stream);
  ddl_async_options options = given == nullptr ? kAsyncDefaults : *given;
  options.stream = open->buffers->is_empty() ? here.stream() : stream;
  const ddl_status status = call(open->buffers->send(), open->buffers->recv(), &options, *open);
  if (status == DDL_OK) {
    const std::lock_guard lock(mutex);
    open_tensors[*handle] = std::move(open);
  }
  return status;
}

/// After the tensor has been waited for.
void close(const std::unique_ptr<Open>& open) {
  const OnGpu here(open->context);
  open->buffers->copy_back();
  if (open->result == nullptr) return;
  std::uint64_t count = 0;
  for (const std::uint64_t part : open->own_counts) count += part;
  if (open->recv_counts != nullptr)
    std::copy(open->own_counts.begin(), open->own_counts.end(), open->recv_counts);
  *open->result = nullptr;
  if (open->on_gpu == nullptr) return;
  const std::size_t bytes = count * ddl_dtype_size(open->dtype);
  void* const copy = std::malloc(bytes + 1);
  if (bytes > 0) {
    TestGpu::get().copy(copy, open->on_gpu, bytes, nullptr);
    TestGpu::get().synchronize(nullptr);
  }
  (void)ddl_free(open->context, open->on_gpu);
  *open->result = copy;
  const std::lock_guard lock(mutex);
  results[copy] = true;
}

}  // namespace

extern "C" {

DDL_WRAPPED(ddl_status, ddl_allreduce_async, ddl_context* context, const char* name, const void* send,
            void* recv, uint64_t count, ddl_dtype dtype, ddl_op op, const ddl_async_options* options,
            ddl_handle** handle) {
  return submit(context, options, send, recv, {count, count}, dtype, handle,
                [&](void* s, void* r, const ddl_async_options* o, Open&) {
                  return __real_ddl_allreduce_async(context, name, s, r, count, dtype, op, o, handle);
                });
}

DDL_WRAPPED(ddl_status, ddl_allgather_async, ddl_context* context, const char* name, const void* send,
            void* recv, uint64_t count, ddl_dtype dtype, const ddl_async_options* options,
            ddl_handle** handle) {
  const Set set(context, set_of(options));
  return submit(context, options, send, recv, {count, set.all(count)}, dtype, handle,
                [&](void* s, void* r, const ddl_async_options* o, Open&) {
                  return __real_ddl_allgather_async(context, name, s, r, count, dtype, o, handle);
                });
}

DDL_WRAPPED(ddl_status, ddl_allgatherv_async, ddl_context* context, const char* name, const void* send,
            uint64_t count, void** result, uint64_t* recv_counts, ddl_dtype dtype,
            const ddl_async_options* options, ddl_handle** handle) {
  const Set set(context, set_of(options));
  return submit(context, options, send, nullptr, {count, 0}, dtype, handle,
                [&](void* s, void*, const ddl_async_options* o, Open& open) {
                  if (open.context == nullptr || result == nullptr)
                    return __real_ddl_allgatherv_async(context, name, s, count, result, recv_counts, dtype, o,
                                                       handle);
                  open.result = result;
                  open.recv_counts = recv_counts;
                  open.own_counts.resize(static_cast<std::size_t>(set.size));
                  return __real_ddl_allgatherv_async(context, name, s, count, &open.on_gpu,
                                                     open.own_counts.data(), dtype, o, handle);
                });
}

DDL_WRAPPED(ddl_status, ddl_broadcast_async, ddl_context* context, const char* name, void* buffer,
            uint64_t count, ddl_dtype dtype, int32_t root, const ddl_async_options* options,
            ddl_handle** handle) {
  return submit(context, options, nullptr, buffer, {0, count}, dtype, handle,
                [&](void*, void* r, const ddl_async_options* o, Open&) {
                  return __real_ddl_broadcast_async(context, name, r, count, dtype, root, o, handle);
                });
}

DDL_WRAPPED(ddl_status, ddl_alltoallv_async, ddl_context* context, const char* name, const void* send,
            const uint64_t* send_counts, void** result, uint64_t* recv_counts, ddl_dtype dtype,
            const ddl_async_options* options, ddl_handle** handle) {
  const Set set(context, set_of(options));
  return submit(context, options, send, nullptr, {set.sum(send_counts), 0}, dtype, handle,
                [&](void* s, void*, const ddl_async_options* o, Open& open) {
                  if (open.context == nullptr || result == nullptr)
                    return __real_ddl_alltoallv_async(context, name, s, send_counts, result, recv_counts,
                                                      dtype, o, handle);
                  open.result = result;
                  open.recv_counts = recv_counts;
                  open.own_counts.resize(static_cast<std::size_t>(set.size));
                  return __real_ddl_alltoallv_async(context, name, s, send_counts, &open.on_gpu,
                                                    open.own_counts.data(), dtype, o, handle);
                });
}

DDL_WRAPPED(ddl_status, ddl_reduce_scatter_async, ddl_context* context, const char* name, const void* send,
            void* recv, const uint64_t* counts, ddl_dtype dtype, ddl_op op, const ddl_async_options* options,
            ddl_handle** handle) {
  const Set set(context, set_of(options));
  return submit(context, options, send, recv, {set.sum(counts), set.own(counts)}, dtype, handle,
                [&](void* s, void* r, const ddl_async_options* o, Open&) {
                  return __real_ddl_reduce_scatter_async(context, name, s, r, counts, dtype, op, o, handle);
                });
}

DDL_WRAPPED(ddl_status, ddl_wait, ddl_handle* handle) {
  std::unique_ptr<Open> open;
  {
    const std::lock_guard lock(mutex);
    const auto found = open_tensors.find(handle);
    if (found != open_tensors.end()) {
      open = std::move(found->second);
      open_tensors.erase(found);
    }
  }
  const ddl_status status = __real_ddl_wait(handle);
  if (open) close(open);
  return status;
}

DDL_WRAPPED(ddl_status, ddl_free, ddl_context* context, void* memory) {
  {
    const std::lock_guard lock(mutex);
    if (results.erase(memory) > 0) {
      std::free(memory);
      return DDL_OK;
    }
  }
  return __real_ddl_free(context, memory);
}

}  // extern "C"
