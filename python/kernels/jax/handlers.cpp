// The handlers of XLA's typed FFI for arrays in CPU memory. python/ddl/jax/_handlers.py registers them.
//
// XLA may begin calls that do not depend on each other in any order, which differs between ranks, on few threads. So a
// handler submits its call and returns a future.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "python/kernels/jax/call_frame.h"
#include "python/kernels/jax/named_calls.h"

namespace ddl::jax {
namespace {

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

xla::Error* execute(xla::CallFrame& frame, Kind kind) {
  if (is_question(frame, nullptr)) return nullptr;
  Site* site = nullptr;
  if (xla::Error* const problem = get_site(frame, site)) return problem;
  xla::FutureCreateArguments arguments = {sizeof arguments, nullptr, nullptr};
  if (xla::Error* const problem = frame.api->future_create(&arguments)) return problem;
  frame.future = arguments.future;
  Request request = request_of(frame, kind);
  if (site->number > 0) request.name += "@" + std::to_string(site->number);
  start(*frame.api, arguments.future, std::move(request));
  return nullptr;
}

}  // namespace
}  // namespace ddl::jax

using ddl::jax::Kind;
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
extern "C" DDL_API xla::Error* ddl_jax_allreduce(xla::CallFrame* frame) {
  return ddl::jax::execute(*frame, Kind::kAllreduce);
}
extern "C" DDL_API xla::Error* ddl_jax_allgather(xla::CallFrame* frame) {
  return ddl::jax::execute(*frame, Kind::kAllgather);
}
extern "C" DDL_API xla::Error* ddl_jax_broadcast(xla::CallFrame* frame) {
  return ddl::jax::execute(*frame, Kind::kBroadcast);
}
extern "C" DDL_API xla::Error* ddl_jax_alltoall(xla::CallFrame* frame) {
  return ddl::jax::execute(*frame, Kind::kAlltoall);
}
extern "C" DDL_API xla::Error* ddl_jax_reduce_scatter(xla::CallFrame* frame) {
  return ddl::jax::execute(*frame, Kind::kReduceScatter);
}
