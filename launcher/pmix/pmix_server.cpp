#include "launcher/pmix/pmix_server.h"

#include <pmix.h>
#include <pmix_server.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <system_error>
#include <thread>

#include "contract/environment.h"
#include "contract/rank_process.h"
#include "launcher/pmix/accept_guard.h"
#include "launcher/pmix/pmix_advisory.h"
#include "launcher/pmix/pmix_info.h"
#include "launcher/pmix/remote_requests.h"

namespace ddl::launcher {
namespace {

class LibraryServer;

// The library's callbacks carry no pointer of ours, and the library itself is one per process.
LibraryServer* the_server = nullptr;

Status check_pmix(const char* call, pmix_status_t status) {
  if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED) return {};
  return fail(ErrorCode::kSystem, std::string(call) + ": " + PMIx_Error_string(status));
}

std::vector<std::string> key_list(char** keys) {
  std::vector<std::string> list;
  for (; keys != nullptr && *keys != nullptr; ++keys) list.emplace_back(*keys);
  return list;
}

/// The library's store for clients is files that it maps, 4 MiB and more for a job, and if one cannot grow, the
/// library waits for its own lock for ever. If there may be too little space, clients ask the server over their
/// connections instead.
bool has_space_for_store(const std::string& directory) {
  constexpr std::uintmax_t kMinSpace = std::uintmax_t{64} << 20;
  std::error_code unknown;
  const auto space = std::filesystem::space(directory, unknown);
  return unknown || space.available >= kMinSpace;
}

/// Sizes of the two files that each job begins with in that store, all of which the library touches: 4 MiB each by
/// default, of which even a thousand ranks use little. Clients must have the same settings. The first holds 24 bytes
/// a rank of the job, the second a job's data, whose largest value must fit; a further file follows where one is
/// full.
constexpr std::pair<const char*, std::size_t> kStoreSizes[] = {
    {"NS_META_SEG_SIZE", std::size_t{512} << 10},
    {"NS_DATA_SEG_SIZE", std::size_t{2} << 20},
};

int rank_of(const pmix_proc_t& process) { return static_cast<int>(process.rank); }

/// Requests arrive on the library's thread and are handed to the loop; the library keeps the arguments alive until
/// its callback is called.
class LibraryServer : public PmixServer {
 public:
  LibraryServer(EventLoop& loop, std::string directory, Report report)
      : loop_(loop), directory_(std::move(directory)), report_(std::move(report)) {}

  ~LibraryServer() override {
    if (started_) PMIx_server_finalize();
    the_server = nullptr;
  }

  bool shut_down(Deadline deadline) override {
    std::promise<void> done;
    std::future<void> is_done = done.get_future();
    try {
      std::thread([promise = std::move(done)]() mutable {
        PMIx_server_finalize();
        promise.set_value();
      }).detach();
    } catch (const std::system_error&) {
      return true;  // no thread can be started (ulimit -u): the destructor does it
    }
    if (is_done.wait_until(deadline.when()) != std::future_status::ready) return false;
    started_ = false;
    return true;
  }

  Status initialise(const std::string& hostname) {
    DDL_CHECK(the_server == nullptr, "a second PMIx server in one process");
    the_server = this;
    static pmix_server_module_t module = make_module();
    InfoList infos;
    infos.add(PMIX_SERVER_TMPDIR, directory_);
    infos.add(PMIX_SYSTEM_TMPDIR, directory_);
    infos.add(PMIX_HOSTNAME, hostname);
    // Only ranks of this node connect.
    infos.add_bool(PMIX_SERVER_TOOL_SUPPORT, false);
    infos.add_bool(PMIX_SERVER_REMOTE_CONNECTIONS, false);
    DDL_TRY(check_pmix("PMIx_server_init", PMIx_server_init(&module, infos.data(), infos.size())));
    started_ = true;
    return {};
  }

  Status register_job(const JobLaunch& job, int node_index) override {
    const std::vector<int>& ranks = job.node_ranks.at(node_index);
    num_ranks_ = job.num_ranks;
    num_local_ranks_ = std::ssize(ranks);
    is_alone_ = job.node_names.size() == 1;
    DDL_ASSIGN(infos, job_info(job, node_index, directory_));
    PMIX_LOAD_NSPACE(nspace_, job.job_id.c_str());
    DDL_TRY(check_pmix(
        "PMIx_server_register_nspace",
        PMIx_server_register_nspace(nspace_, ranks.size(), infos.data(), infos.size(), nullptr, nullptr)));
    for (const int rank : ranks) {
      const pmix_proc_t process = process_of(rank);
      DDL_TRY(check_pmix(
          "PMIx_server_register_client",
          PMIx_server_register_client(&process, ::geteuid(), ::getegid(), nullptr, nullptr, nullptr)));
    }
    return expect_successors();
  }

  Result<Environment> client_environment(int rank) override {
    const pmix_proc_t process = process_of(rank);
    char** entries = nullptr;
    DDL_TRY(check_pmix("PMIx_server_setup_fork", PMIx_server_setup_fork(&process, &entries)));
    Environment environment = parse_environment(key_list(entries));
    for (const auto& [name, size] : kStoreSizes) environment.insert_or_assign(name, std::getenv(name));
    for (char** entry = entries; entry != nullptr && *entry != nullptr; ++entry) std::free(*entry);
    std::free(entries);
    return environment;
  }

  void take(const message::PmixAnswer& message) override {
    std::visit([this](const auto& one) { on(one); }, message);
  }

 private:
  pmix_proc_t process_of(int rank) const {
    pmix_proc_t process;
    PMIX_LOAD_PROCID(&process, nspace_, rank);
    return process;
  }

  static pmix_server_module_t make_module() {
    pmix_server_module_t module{};
    module.client_connected2 = [](const pmix_proc_t* process, void*, pmix_info_t[], size_t, pmix_op_cbfunc_t,
                                  void*) -> pmix_status_t {
      the_server->report_progress(process, message::RankProgress::Step::kInitialised);
      return PMIX_OPERATION_SUCCEEDED;
    };
    module.client_finalized = [](const pmix_proc_t*, void*, pmix_op_cbfunc_t, void*) -> pmix_status_t {
      return PMIX_OPERATION_SUCCEEDED;
    };
    module.abort = [](const pmix_proc_t* process, void*, int status, const char text[], pmix_proc_t[], size_t,
                      pmix_op_cbfunc_t done, void* data) {
      the_server->loop_.post(
          [rank = rank_of(*process), status, message = std::string(text ? text : ""), done, data] {
            the_server->report_(message::AbortRequested{rank, status, message});
            if (done != nullptr) done(PMIX_SUCCESS, data);
          });
      return PMIX_SUCCESS;
    };
    // Called once all ranks of this node that belong to the group have called fence; the data is ours from here on.
    module.fence_nb = [](const pmix_proc_t processes[], size_t count, const pmix_info_t infos[],
                         size_t num_infos, char* data, size_t size, pmix_modex_cbfunc_t done, void* context) {
      std::string blob(data != nullptr ? data : "", data != nullptr ? size : 0);
      std::free(data);
      // The process of another rank has left meanwhile: those that are here call fence again, with its successor.
      if (const pmix_status_t status = local_status_of(infos, num_infos); status != PMIX_SUCCESS) {
        done(status, nullptr, 0, context, nullptr, nullptr);
        return PMIX_SUCCESS;
      }
      the_server->loop_.post(
          [ranks = the_server->group_of(processes, count), blob = std::move(blob), done, context]() mutable {
            the_server->fence(std::move(ranks), std::move(blob), done, context);
          });
      return PMIX_SUCCESS;
    };
    // Asked for processes of other nodes only.
    module.direct_modex = [](const pmix_proc_t* process, const pmix_info_t infos[], size_t count,
                             pmix_modex_cbfunc_t done, void* context) {
      the_server->loop_.post([rank = rank_of(*process), timeout = timeout_seconds_of(infos, count), done,
                              context] { the_server->modex_.ask(rank, timeout, done, context); });
      return PMIX_SUCCESS;
    };
    module.publish = [](const pmix_proc_t* process, const pmix_info_t infos[], size_t count,
                        pmix_op_cbfunc_t done, void* data) {
      the_server->loop_.post([publisher = rank_of(*process), infos, count, done, data] {
        the_server->names_.publish(publisher, infos, count, done, data);
      });
      return PMIX_SUCCESS;
    };
    module.lookup = [](const pmix_proc_t*, char** keys, const pmix_info_t infos[], size_t count,
                       pmix_lookup_cbfunc_t done, void* data) {
      the_server->loop_.post([keys = key_list(keys), infos, count, done, data] {
        the_server->names_.look_up(the_server->nspace_, keys, infos, count, done, data);
      });
      return PMIX_SUCCESS;
    };
    module.unpublish = [](const pmix_proc_t* process, char** keys, const pmix_info_t[], size_t,
                          pmix_op_cbfunc_t done, void* data) {
      the_server->loop_.post([publisher = rank_of(*process), keys = key_list(keys), done, data] {
        the_server->names_.unpublish(publisher, keys, done, data);
      });
      return PMIX_SUCCESS;
    };
    module.spawn = [](const pmix_proc_t* process, const pmix_info_t[], size_t, const pmix_app_t[], size_t,
                      pmix_spawn_cbfunc_t, void*) -> pmix_status_t {
      the_server->loop_.post(
          [rank = rank_of(*process)] { the_server->report_(message::SpawnRefused{rank}); });
      return PMIX_ERR_NOT_SUPPORTED;
    };
    // The library keeps the registrations of its clients itself.
    module.register_events = [](pmix_status_t*, size_t, const pmix_info_t[], size_t, pmix_op_cbfunc_t,
                                void*) -> pmix_status_t { return PMIX_OPERATION_SUCCEEDED; };
    module.deregister_events = [](pmix_status_t*, size_t, pmix_op_cbfunc_t, void*) -> pmix_status_t {
      return PMIX_OPERATION_SUCCEEDED;
    };
    // Without this function the library would also not do its own part: when a client ends, it removes the files that
    // the client has registered for removal (PMIX_REGISTER_CLEANUP), as Open MPI registers its shared memory.
    module.job_control = [](const pmix_proc_t*, const pmix_proc_t[], size_t, const pmix_info_t[], size_t,
                            pmix_info_cbfunc_t, void*) -> pmix_status_t { return PMIX_ERR_NOT_SUPPORTED; };
    // The library notifies the clients of this node; the head forwards the event to the other nodes.
    module.notify_event = [](pmix_status_t code, const pmix_proc_t* source, pmix_data_range_t range,
                             pmix_info_t infos[], size_t count, pmix_op_cbfunc_t, void*) -> pmix_status_t {
      if (code == contract::kFirstCollectiveEvent) {
        the_server->report_progress(source, message::RankProgress::Step::kFirstCollective);
        return PMIX_OPERATION_SUCCEEDED;
      }
      if (range == PMIX_RANGE_LOCAL || range == PMIX_RANGE_PROC_LOCAL) return PMIX_OPERATION_SUCCEEDED;
      // Answered at once: the callback would touch the library's state on our thread (4.2.2).
      auto packed = pack_infos(infos, count);
      if (!packed) return PMIX_ERR_PACK_FAILURE;
      the_server->loop_.post(
          [event = message::PmixEvent{code, rank_of(*source), range, std::move(*packed)}]() mutable {
            the_server->report_(std::move(event));
          });
      return PMIX_OPERATION_SUCCEEDED;
    };
    return module;
  }

  void report_progress(const pmix_proc_t* process, message::RankProgress::Step step) {
    loop_.post([this, rank = rank_of(*process), step] { report_(message::RankProgress{rank, step}); });
  }

  // A rank may be a shell that starts one client after the other. Of a client that ends without PMIx_Finalize() the
  // library believes that its rank has no other, and later fences would end without the successor. So the number of
  // ranks of this node is registered again.
  Status expect_successors() {
    only_number_.add_bool(PMIX_REGISTER_NODATA, true);
    pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
    const pmix_status_t registered = PMIx_Register_event_handler(
        &lost, 1, nullptr, 0,
        [](size_t, pmix_status_t, const pmix_proc_t*, pmix_info_t[], size_t, pmix_info_t*, size_t,
           pmix_event_notification_cbfunc_fn_t done, void* context) {
          // With a callback, as this is the library's thread.
          PMIx_server_register_nspace(
              the_server->nspace_, the_server->num_local_ranks_, the_server->only_number_.data(),
              the_server->only_number_.size(), [](pmix_status_t, void*) {}, nullptr);
          done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, context);
        },
        nullptr, nullptr);
    return registered < 0 ? check_pmix("PMIx_Register_event_handler", registered) : Status();
  }

  // The ranks of a fence, ascending; empty for the whole job.
  std::vector<int> group_of(const pmix_proc_t processes[], std::size_t count) const {
    std::vector<int> ranks;
    for (std::size_t i = 0; i < count; ++i) {
      if (processes[i].rank == PMIX_RANK_WILDCARD) return {};
      ranks.push_back(processes[i].rank);
    }
    std::sort(ranks.begin(), ranks.end());
    if (std::ssize(ranks) == num_ranks_) ranks.clear();
    return ranks;
  }

  void fence(std::vector<int> ranks, std::string&& data, pmix_modex_cbfunc_t done, void* context) {
    // All ranks are on this node: what the library has collected here is all there is.
    if (is_alone_) return give(done, context, PMIX_SUCCESS, data);
    fences_[ranks].push_back(
        [done, context](const std::string& all) { give(done, context, PMIX_SUCCESS, all); });
    report_(message::PmixFence{std::move(ranks), std::move(data)});
  }

  void on(const message::PmixFenceDone& m) {
    const auto waiting = fences_.find(m.ranks);
    if (waiting == fences_.end()) return;
    const auto answer = std::move(waiting->second.front());
    waiting->second.pop_front();
    if (waiting->second.empty()) fences_.erase(waiting);
    answer(m.data);
  }
  void on(const message::PmixModex& m) { modex_.serve(m, process_of(m.rank)); }
  void on(const message::PmixModexData& m) { modex_.take(m); }
  void on(const message::PmixNames& m) { names_.take(m); }
  void on(const message::PmixEvent& m) {
    auto infos = unpack_infos(m.infos);
    if (!infos) return;
    // The library reads the pairs on its own thread: they live until it says that it is done.
    auto* kept = new std::vector<pmix_info_t>(std::move(*infos));
    const pmix_proc_t source = process_of(m.source);
    const auto release = [](pmix_status_t, void* object) {
      auto* done = static_cast<std::vector<pmix_info_t>*>(object);
      for (auto& info : *done) PMIX_INFO_DESTRUCT(&info);
      delete done;
    };
    const pmix_status_t status = PMIx_Notify_event(m.status, &source, static_cast<pmix_data_range_t>(m.range),
                                                   kept->data(), kept->size(), release, kept);
    if (status != PMIX_SUCCESS) release(status, kept);
  }

  EventLoop& loop_;
  std::string directory_;
  Report report_;
  pmix_nspace_t nspace_{};
  int num_ranks_ = 0;
  int num_local_ranks_ = 0;
  InfoList only_number_;  // for expect_successors()
  bool is_alone_ = true;  // no other node has ranks of the job
  std::map<std::vector<int>, std::deque<std::function<void(const std::string&)>>> fences_;
  ModexClient modex_{loop_, report_};
  NamesClient names_{report_};
  bool started_ = false;
};

Status check_safety() {
  const char* allowed = std::getenv(contract::env::kAllowExposedPmix);
  if (::geteuid() != 0 || (allowed != nullptr && std::string_view(allowed) == "1")) return {};
  const PmixLibrary library = linked_pmix();
  // The package need not be read.
  if (pmix_safety(library.version_text, "") != PmixSafety::kExposed) return {};
  const auto package = pmix_package_version(library);
  // Whether the library is patched is unknown: the error is that of reading the package's version.
  if (!package) return fail(package.error());
  if (const auto refusal = pmix_refusal(library.version_text, *package))
    return fail(ErrorCode::kUnavailable, *refusal);
  return {};
}

}  // namespace

// By default, half of the library's start is work that has no use here.
void PmixServer::prepare_environment(const std::string& directory) {
  // The library reads the node's topology and needs no devices of it; hwloc's plugins for devices load OpenCL, and
  // X11, which searches for displays. Nor need hwloc run on every CPU to query it: the kernel has reported the same
  // already. A description of another machine, by hwloc's variables, may crash the library.
  for (const char* name : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_CPUID_PATH"})
    ::unsetenv(name);
  ::setenv("HWLOC_COMPONENTS", "-pci,-linuxio,-x86", 0);
  ::setenv("HWLOC_PLUGINS_PATH", directory.c_str(), 0);
  // A second store of everything, for clients of PMIx 1.2, of 2017.
  for (const auto& [name, size] : kStoreSizes) ::setenv(name, std::to_string(size).c_str(), 0);
  ::setenv("PMIX_MCA_gds", has_space_for_store(directory) ? "^ds12" : "^ds12,ds21", 0);
  // Where munge runs, the server would ask clients for munge's credentials first, and the libpmix of a wheel, which has
  // none, prints an error message in each rank. The credential that remains is the user that a client says it has.
  // So the accept guard decides who may connect, by the word of the kernel; start() fails where there is no guard.
  ::setenv("PMIX_MCA_psec", "native", 0);
  // By default the library reports after a second that a client is lost, to report several together.
  ::setenv("PMIX_MCA_pmix_event_caching_window", "0", 0);
}

Result<std::unique_ptr<PmixServer>> PmixServer::start(EventLoop& loop, const std::string& directory,
                                                      const std::string& hostname, Report report) {
  DDL_TRY(check_safety());
  DDL_TRY(check_accept_guard());
  auto server = std::make_unique<LibraryServer>(loop, directory, std::move(report));
  if (auto status = server->initialise(hostname); !status) {
    return fail(std::move(status.error()).during("starting the PMIx server"));
  }
  return std::unique_ptr<PmixServer>(std::move(server));
}

}  // namespace ddl::launcher
