// The handlers of XLA's typed FFI for arrays in CPU memory. python/ddl/jax/_handlers.py registers them.
//
// XLA may begin calls that do not depend on each other in any order, which differs between ranks, on few threads. So a
// handler submits its call and returns a future.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "python/kernels/jax/call_frame.h"

namespace ddl::jax {
namespace {

/// A call that has ended.
struct Ended {
  const xla::Api& api;
  xla::Future* future;
  ddl_status status;
  std::string sentence;
};

/// Completes futures on threads of the module: the thread that does so runs what comes next in XLA's program, which
/// may take long and may wait, and must not hold up libddl's own thread.
class Completions {
 public:
  void add(Ended call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
    if (idle_ < calls_.size() && threads_ < kMostThreads) {
      ++threads_;
      std::thread([this] { run(); }).detach();
    }
    changed_.notify_one();
  }

  /// Waits until no thread is inside XLA. Not longer than this: what comes next in a program may wait for other ranks.
  void wait_until_idle(std::chrono::seconds longest) {
    std::unique_lock lock(mutex_);
    rested_.wait_for(lock, longest, [this] { return calls_.empty() && idle_ == threads_; });
  }

 private:
  static constexpr std::size_t kMostThreads = 8;

  [[noreturn]] void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      rested_.notify_all();
      changed_.wait(lock, [this] { return !calls_.empty(); });
      --idle_;
      const Ended call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      complete(call);
      lock.lock();
    }
  }

  static void complete(const Ended& call) {
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
  std::condition_variable rested_;
  std::deque<Ended> calls_;
  std::size_t idle_ = 0;
  std::size_t threads_ = 0;
};

// Never destroyed, because its threads may run at the end of the process.
Completions& completions() {
  static Completions& kCompletions = *new Completions;
  return kCompletions;
}

/// What a call has of its own in a program that XLA has compiled. JAX traces a function once that a program calls
/// twice, and copies the body of a loop that it unrolls: such calls have the same name, but may run in any order. So
/// all but the first of a name get a number, which is the same on all ranks that compile the same program.
struct Site {
  std::int64_t number;
};

void delete_site(void* site) { delete static_cast<Site*>(site); }

constexpr xla::TypeInfo kSiteInfo = {sizeof(xla::TypeInfo), nullptr, delete_site};
constexpr std::string_view kSiteName = "ddl.jax.Site";

// Never destroyed, because XLA's threads may run at the end of the process.
struct Sites {
  std::mutex mutex;
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> next;  ///< by program and name
  xla::TypeId type = {0};
};
Sites& sites() {
  static Sites& kSites = *new Sites;
  return kSites;
}

/// XLA's number of the type Site, which it gives at the first question.
xla::Error* know_type(const xla::Api& api) {
  const std::lock_guard lock(sites().mutex);
  if (sites().type.number != 0) return nullptr;
  xla::TypeRegisterArguments arguments = {
      sizeof arguments, nullptr, {kSiteName.data(), kSiteName.size()}, &sites().type, &kSiteInfo};
  return api.type_register(&arguments);
}

xla::Error* set_site(const xla::CallFrame& frame, Site* site) {
  const xla::Api& api = *frame.api;
  if (api.version.minor >= xla::kStageMinor) {
    xla::StateArguments arguments = {sizeof arguments, nullptr,       frame.context,
                                     frame.stage,      &sites().type, site};
    return api.state_set(&arguments);
  }
  xla::OldStateArguments arguments = {sizeof arguments, nullptr, frame.context,
                                      &sites().type,    site,    delete_site};
  if (api.version.minor >= xla::kTypeInfoMinor) arguments.struct_size -= sizeof arguments.deleter;
  return api.state_set(&arguments);
}

xla::Error* get_site(const xla::CallFrame& frame, Site*& site) {
  const xla::Api& api = *frame.api;
  xla::Error* problem = nullptr;
  if (api.version.minor >= xla::kStageMinor) {
    xla::StateArguments arguments = {sizeof arguments,  nullptr,       frame.context,
                                     xla::kInstantiate, &sites().type, nullptr};
    problem = api.state_get(&arguments);
    site = static_cast<Site*>(arguments.state);
  } else {
    xla::OldStateArguments arguments = {
        sizeof arguments - sizeof arguments.deleter, nullptr, frame.context, &sites().type, nullptr, nullptr};
    problem = api.state_get(&arguments);
    site = static_cast<Site*>(arguments.state);
  }
  return problem;
}

/// What XLA has allocated for the result of an allgather or alltoall.
struct Result {
  void* data;
  std::uint64_t count;
  std::size_t element_size;
};

/// Copies what libddl has allocated. "", or what is wrong.
std::string take(const std::vector<kernels::Gathered>& gathered, const std::vector<Result>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::uint64_t count = 0;
    for (const std::uint64_t one : gathered[i].counts) count += one;
    if (count != results[i].count)
      return "the ranks gave " + std::to_string(count) + " elements to a call that was traced for " +
             std::to_string(results[i].count);
    if (count > 0) std::memcpy(results[i].data, gathered[i].memory, count * results[i].element_size);
  }
  return "";
}

/// Submits the call of a frame. Its future is completed when it has been executed or has failed.
void start(xla::CallFrame& frame, kernels::Request request, xla::Future* future) {
  std::vector<Result> results;
  const bool gathers = request.kind == kernels::Kind::kAllgather || request.kind == kernels::Kind::kAlltoall;
  for (std::size_t i = 0; i < request.parts.size(); ++i) {
    const kernels::Part& part = request.parts[i];
    const std::size_t element_size = ddl_dtype_size(part.dtype);
    if (gathers) results.push_back({part.recv, elements(*frame.results.buffers[i]), element_size});
    if (request.kind == kernels::Kind::kBroadcast && part.recv != part.send && part.count > 0)
      std::memcpy(part.recv, part.send, part.count * element_size);
  }
  const xla::Api& api = *frame.api;
  kernels::start(std::move(request), [&api, future, results = std::move(results)](kernels::Outcome& outcome) {
    if (outcome.status == DDL_OK) {
      outcome.sentence = take(outcome.gathered, results);
      if (!outcome.sentence.empty()) outcome.status = DDL_ERROR_MISMATCH;
    }
    outcome.free_gathered();
    completions().add({api, future, outcome.status, std::move(outcome.sentence)});
  });
}

}  // namespace
}  // namespace ddl::jax

namespace xla = ddl::jax::xla;

/// XLA calls this once for each call of a program that it compiles.
extern "C" DDL_API xla::Error* ddl_jax_instantiate(xla::CallFrame* frame) {
  using namespace ddl::jax;
  if (frame->api != nullptr)
    if (xla::Error* const problem = know_type(*frame->api)) return problem;
  if (is_question(*frame, &sites().type)) return nullptr;
  auto site = std::make_unique<Site>();
  {
    const std::lock_guard lock(sites().mutex);
    site->number = sites().next[{whole_attribute(*frame, "program"), text_attribute(*frame, "name")}]++;
  }
  xla::Error* const problem = set_site(*frame, site.get());
  if (problem == nullptr) (void)site.release();
  return problem;
}

/// Python calls this before JAX may end XLA: a thread that has completed a call goes on in XLA after its results are
/// there.
extern "C" DDL_API void ddl_jax_settle() { ddl::jax::completions().wait_until_idle(std::chrono::seconds(5)); }

/// XLA calls this when the arrays of a call are there.
extern "C" DDL_API xla::Error* ddl_jax_execute(xla::CallFrame* frame) {
  using namespace ddl::jax;
  if (is_question(*frame, nullptr)) return nullptr;
  Site* site = nullptr;
  if (xla::Error* const problem = get_site(*frame, site)) return problem;
  try {
    ddl::kernels::Request request = request_of(*frame, ddl::kernels::joined().context);
    if (site->number > 0) request.name += "@" + std::to_string(site->number);
    xla::FutureCreateArguments arguments = {sizeof arguments, nullptr, nullptr};
    if (xla::Error* const problem = frame->api->future_create(&arguments)) return problem;
    frame->future = arguments.future;
    start(*frame, std::move(request), arguments.future);
  } catch (const Failure& failure) {
    return error_of(*frame->api, failure.status, failure.sentence);
  }
  return nullptr;
}
