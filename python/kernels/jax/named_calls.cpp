#include "python/kernels/jax/named_calls.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "python/kernels/jax/context.h"

namespace ddl::jax {
namespace {

struct Call;

/// A part in flight.
struct OpenPart {
  Call* call = nullptr;
  const Part* part = nullptr;
  void* gathered = nullptr;           ///< of libddl
  std::vector<std::uint64_t> counts;  ///< how many elements came from each rank
};

struct Call {
  Call(const xla::Api& its_api, xla::Future* its_future, Request its_request)
      : api(its_api), future(its_future), request(std::move(its_request)), parts(request.parts.size()) {}

  const xla::Api& api;
  xla::Future* future;
  Request request;
  std::vector<OpenPart> parts;
  /// Parts that are not complete, and one more while they are submitted.
  std::atomic<std::size_t> open = 1;
  std::mutex mutex;
  ddl_status status = DDL_OK;  ///< the first failure of a part
  std::string sentence;

  void fail(ddl_status why, std::string text) {
    const std::lock_guard lock(mutex);
    if (status != DDL_OK) return;
    status = why;
    sentence = std::move(text);
  }
};

/// Completes futures on threads of the module: the thread that does so runs what comes next in XLA's program, which
/// may take long and may wait, and must not hold up libddl's own thread.
class Completions {
 public:
  void add(std::unique_ptr<Call> call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    if (idle_ < calls_.size() && threads_ < kMostThreads) {
      ++threads_;
      std::thread([this] { run(); }).detach();
    }
    changed_.notify_one();
  }

 private:
  static constexpr int kMostThreads = 8;

  [[noreturn]] void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [this] { return !calls_.empty(); });
      --idle_;
      const std::unique_ptr<Call> call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      complete(*call);
      lock.lock();
    }
  }

  static void complete(const Call& call) {
    xla::Error* problem = nullptr;
    if (call.status == DDL_OK) {
      xla::FutureSetAvailableArguments arguments = {sizeof arguments, nullptr, call.future};
      problem = call.api.future_set_available(&arguments);
    } else {
      xla::FutureSetErrorArguments arguments = {sizeof arguments, nullptr, call.future,
                                                error_of(call.api, call.status, call.sentence)};
      problem = call.api.future_set_error(&arguments);
    }
    if (problem == nullptr) return;
    xla::ErrorDestroyArguments arguments = {sizeof arguments, nullptr, problem};
    call.api.error_destroy(&arguments);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Call>> calls_;
  std::size_t idle_ = 0;
  int threads_ = 0;
};

/// The calls in flight, by process set and name; the first of each has been submitted.
class Calls {
 public:
  void start(std::unique_ptr<Call> call) {
    Call* const first = call.get();
    {
      const std::lock_guard lock(mutex_);
      auto& same_name = calls_[{call->request.process_set, call->request.name}];
      same_name.push_back(std::move(call));
      if (same_name.size() > 1) return;
    }
    submit(*first);
  }

 private:
  void submit(Call& call);
  /// A part is complete, or all have been submitted.
  void one_less(Call& call) {
    if (--call.open > 0) return;
    Call* next = nullptr;
    std::unique_ptr<Call> done;
    {
      const std::lock_guard lock(mutex_);
      const auto same_name = calls_.find({call.request.process_set, call.request.name});
      done = std::move(same_name->second.front());
      same_name->second.pop_front();
      if (same_name->second.empty())
        calls_.erase(same_name);
      else
        next = same_name->second.front().get();
    }
    completions_.add(std::move(done));
    if (next != nullptr) submit(*next);
  }
  static void completed(void* argument, ddl_status status, const char* message);

  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::string>, std::deque<std::unique_ptr<Call>>> calls_;
  Completions completions_;
};

// Never destroyed, because its threads, and libddl's, may run at the end of the process.
Calls& calls() {
  static Calls& kCalls = *new Calls;
  return kCalls;
}

/// Copies what libddl has allocated for the result of a part.
void take_gathered(OpenPart& open) {
  const Part& part = *open.part;
  const Request& request = open.call->request;
  std::uint64_t count = 0;
  for (const std::uint64_t one : open.counts) count += one;
  if (count != part.recv_count) {
    open.call->fail(DDL_ERROR_MISMATCH, "the ranks gave " + std::to_string(count) + " elements to \"" +
                                            request.name + "\", which was traced for " +
                                            std::to_string(part.recv_count));
  } else if (count > 0) {
    std::memcpy(part.recv, open.gathered, recv_bytes(part));
  }
  const Joined here = joined();
  if (here.context != nullptr) (void)ddl_free(here.context, open.gathered);
}

void Calls::completed(void* argument, ddl_status status, const char* message) {
  OpenPart& open = *static_cast<OpenPart*>(argument);
  Call& call = *open.call;
  if (status != DDL_OK)
    call.fail(status, message);
  else if (!open.counts.empty())
    take_gathered(open);
  calls().one_less(call);
}

ddl_status submit_part(ddl_context* context, const Request& request, const std::string& name,
                       const Part& part, OpenPart& open, ddl_async_options& options) {
  const auto op = static_cast<ddl_op>(request.op);
  const auto ranks = static_cast<std::size_t>(ddl_process_set_size(context, request.process_set));
  switch (request.kind) {
    case Kind::kAllreduce:
      return ddl_allreduce_async(context, name.c_str(), part.send, part.recv, part.send_count, part.dtype, op,
                                 &options, nullptr);
    case Kind::kBroadcast:
      if (part.recv != part.send && part.send_count > 0) std::memcpy(part.recv, part.send, recv_bytes(part));
      return ddl_broadcast_async(context, name.c_str(), part.recv, part.send_count, part.dtype,
                                 static_cast<std::int32_t>(request.root), &options, nullptr);
    case Kind::kReduceScatter:
      return ddl_reduce_scatter_async(context, name.c_str(), part.send, part.recv,
                                      scattered_counts(part, static_cast<int>(ranks)).data(), part.dtype, op,
                                      &options, nullptr);
    case Kind::kAllgather:
    case Kind::kAlltoall: break;
  }
  open.counts.resize(ranks);
  if (options.dimensions > 0) ++options.shape, --options.dimensions;  // the first may differ
  if (request.kind == Kind::kAllgather)
    return ddl_allgatherv_async(context, name.c_str(), part.send, part.send_count, &open.gathered,
                                open.counts.data(), part.dtype, &options, nullptr);
  const std::vector<std::uint64_t> parts(ranks, part.send_count / ranks);
  return ddl_alltoallv_async(context, name.c_str(), part.send, parts.data(), &open.gathered,
                             open.counts.data(), part.dtype, &options, nullptr);
}

void Calls::submit(Call& call) {
  const Request& request = call.request;
  {
    const Joined here = joined();
    const std::string problem = here.context == nullptr ? kNotJoined : problem_with(request, here.context);
    if (!problem.empty()) {
      call.fail(here.context == nullptr ? DDL_ERROR_ABORTED : DDL_ERROR_INVALID_ARGUMENT, problem);
    } else {
      const std::size_t size = request.parts.size();
      for (std::size_t i = 0; i < size; ++i) {
        OpenPart& open = call.parts[i];
        open.call = &call;
        open.part = &request.parts[i];
        ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
        options.process_set = request.process_set;
        options.prescale = request.prescale;
        options.postscale = request.postscale;
        options.completed = completed;
        options.argument = &open;
        options.shape = open.part->shape.data();
        options.dimensions = open.part->shape.size();
        if (size > 1) {
          options.group = request.name.c_str();
          options.group_size = static_cast<std::uint32_t>(size);
        }
        const std::string name = size == 1 ? request.name : request.name + "." + std::to_string(i);
        ++call.open;
        if (submit_part(here.context, request, name, *open.part, open, options) == DDL_OK) continue;
        call.fail(DDL_ERROR_INVALID_ARGUMENT, ddl_last_error());
        --call.open;
        break;
      }
    }
  }
  one_less(call);
}

}  // namespace

void start(const xla::Api& api, xla::Future* future, Request request) {
  calls().start(std::make_unique<Call>(api, future, std::move(request)));
}

}  // namespace ddl::jax
