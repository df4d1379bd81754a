#include "launcher/pmix/pmix_server.h"

#include <dlfcn.h>
#include <pmix.h>
#include <pmix_server.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "contract/environment.h"
#include "launcher/pmix/info_list.h"
#include "launcher/pmix/job_info.h"
#include "launcher/pmix/pmix_advisory.h"
#include "launcher/pmix/published_data.h"

namespace ddl::launcher {
namespace {

class LibraryServer;

// The library's callbacks carry no pointer of ours, and the library itself is one per process.
LibraryServer* the_server = nullptr;

Status check(const char* call, pmix_status_t status) {
  if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED) return {};
  return fail(ErrorCode::kSystem, std::string(call) + ": " + PMIx_Error_string(status));
}

std::vector<std::string> key_list(char** keys) {
  std::vector<std::string> list;
  for (; keys != nullptr && *keys != nullptr; ++keys) list.emplace_back(*keys);
  return list;
}

/// Requests arrive on the library's thread and are handed to the loop; the library keeps the arguments alive until
/// its callback is called.
class LibraryServer : public PmixServer {
 public:
  LibraryServer(EventLoop& loop, std::string directory, OnAbort on_abort)
      : loop_(loop), directory_(std::move(directory)), on_abort_(std::move(on_abort)) {}

  ~LibraryServer() override {
    if (started_) PMIx_server_finalize();
    the_server = nullptr;
  }

  Status initialise(const std::string& hostname) {
    DDL_CHECK(the_server == nullptr, "a second PMIx server in one process");
    the_server = this;
    static pmix_server_module_t module = make_module();
    InfoList infos;
    infos.add(PMIX_SERVER_TMPDIR, directory_);
    infos.add(PMIX_SYSTEM_TMPDIR, directory_);
    infos.add(PMIX_HOSTNAME, hostname);
    // Nobody but our ranks has business here.
    infos.add_bool(PMIX_SERVER_TOOL_SUPPORT, false);
    infos.add_bool(PMIX_SERVER_REMOTE_CONNECTIONS, false);
    DDL_TRY(check("PMIx_server_init", PMIx_server_init(&module, infos.data(), infos.size())));
    started_ = true;
    return {};
  }

  Status register_job(const NodeLaunch& node) override {
    auto infos = job_info(node, directory_);
    if (!infos) return fail(infos.error());
    PMIX_LOAD_NSPACE(nspace_, node.job_id.c_str());
    DDL_TRY(check("PMIx_server_register_nspace",
                  PMIx_server_register_nspace(nspace_, static_cast<int>(node.ranks.size()), infos->data(),
                                              infos->size(), nullptr, nullptr)));
    for (const RankLaunch& rank : node.ranks) {
      const pmix_proc_t process = process_of(rank.rank);
      DDL_TRY(
          check("PMIx_server_register_client",
                PMIx_server_register_client(&process, ::geteuid(), ::getegid(), nullptr, nullptr, nullptr)));
    }
    return {};
  }

  Result<Environment> client_environment(int rank) override {
    const pmix_proc_t process = process_of(rank);
    char** entries = nullptr;
    DDL_TRY(check("PMIx_server_setup_fork", PMIx_server_setup_fork(&process, &entries)));
    const Environment environment = parse_environment(key_list(entries));
    for (char** entry = entries; entry != nullptr && *entry != nullptr; ++entry) std::free(*entry);
    std::free(entries);
    return environment;
  }

 private:
  pmix_proc_t process_of(int rank) const {
    pmix_proc_t process;
    PMIX_LOAD_PROCID(&process, nspace_, static_cast<pmix_rank_t>(rank));
    return process;
  }

  static pmix_server_module_t make_module() {
    pmix_server_module_t module{};
    module.client_connected2 = [](const pmix_proc_t*, void*, pmix_info_t[], size_t, pmix_op_cbfunc_t,
                                  void*) -> pmix_status_t { return PMIX_OPERATION_SUCCEEDED; };
    module.client_finalized = [](const pmix_proc_t*, void*, pmix_op_cbfunc_t, void*) -> pmix_status_t {
      return PMIX_OPERATION_SUCCEEDED;
    };
    module.abort = [](const pmix_proc_t* process, void*, int status, const char text[], pmix_proc_t[], size_t,
                      pmix_op_cbfunc_t done, void* data) {
      the_server->loop_.post(
          [rank = static_cast<int>(process->rank), status, said = std::string(text ? text : ""), done, data] {
            the_server->on_abort_(rank, status, said);
            if (done != nullptr) done(PMIX_SUCCESS, data);
          });
      return PMIX_SUCCESS;
    };
    // All ranks are on this node: what the library has collected here is all there is.
    module.fence_nb = [](const pmix_proc_t[], size_t, const pmix_info_t[], size_t, char* data, size_t size,
                         pmix_modex_cbfunc_t done, void* context) {
      the_server->loop_.post([=] {
        if (done != nullptr) done(PMIX_SUCCESS, data, size, context, nullptr, nullptr);
      });
      return PMIX_SUCCESS;
    };
    // Only asked for processes of other nodes, and there are none.
    module.direct_modex = [](const pmix_proc_t*, const pmix_info_t[], size_t, pmix_modex_cbfunc_t,
                             void*) -> pmix_status_t { return PMIX_ERR_NOT_FOUND; };
    module.publish = [](const pmix_proc_t* process, const pmix_info_t infos[], size_t count,
                        pmix_op_cbfunc_t done, void* data) {
      the_server->loop_.post([publisher = *process, infos, count, done, data] {
        done(the_server->published_.publish(publisher, infos, count), data);
      });
      return PMIX_SUCCESS;
    };
    module.lookup = [](const pmix_proc_t*, char** keys, const pmix_info_t infos[], size_t count,
                       pmix_lookup_cbfunc_t done, void* data) {
      the_server->loop_.post([keys = key_list(keys), infos, count, done, data] {
        the_server->look_up(keys, infos, count, done, data);
      });
      return PMIX_SUCCESS;
    };
    module.unpublish = [](const pmix_proc_t* process, char** keys, const pmix_info_t[], size_t,
                          pmix_op_cbfunc_t done, void* data) {
      the_server->loop_.post([publisher = *process, keys = key_list(keys), done, data] {
        the_server->published_.unpublish(publisher, keys);
        done(PMIX_SUCCESS, data);
      });
      return PMIX_SUCCESS;
    };
    return module;
  }

  void look_up(const std::vector<std::string>& keys, const pmix_info_t* infos, std::size_t count,
               pmix_lookup_cbfunc_t done, void* data) {
    bool wait = false;
    int timeout_seconds = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (std::strncmp(infos[i].key, PMIX_WAIT, PMIX_MAX_KEYLEN) == 0) wait = true;
      if (std::strncmp(infos[i].key, PMIX_TIMEOUT, PMIX_MAX_KEYLEN) == 0)
        timeout_seconds = infos[i].value.data.integer;
    }
    const auto waiting = published_.lookup(keys, wait, [done, data](pmix_status_t status, const auto& found) {
      std::vector<pmix_pdata_t> answers(found.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        PMIX_PDATA_CONSTRUCT(&answers[i]);
        answers[i].proc = found[i].publisher;
        PMIX_LOAD_KEY(answers[i].key, found[i].key.c_str());
        PMIx_Value_xfer(&answers[i].value, found[i].value);
      }
      done(status, answers.data(), answers.size(), data);
      for (auto& answer : answers) PMIX_PDATA_DESTRUCT(&answer);
    });
    if (waiting && timeout_seconds > 0) {
      timeouts_.push_back(loop_.after(std::chrono::seconds(timeout_seconds),
                                      [this, id = *waiting] { published_.time_out(id); }));
    }
  }

  EventLoop& loop_;
  std::string directory_;
  OnAbort on_abort_;
  pmix_nspace_t nspace_{};
  PublishedData published_;
  std::vector<EventLoop::Timer> timeouts_;
  bool started_ = false;
};

// Where the library that this process is linked with lies.
std::string library_path() {
  Dl_info info{};
  return ::dladdr(reinterpret_cast<void*>(&PMIx_server_init), &info) != 0 ? info.dli_fname : "";
}

Status check_safety() {
  const char* allowed = std::getenv(contract::env::kAllowExposedPmix);
  if (::geteuid() != 0 || (allowed != nullptr && std::string_view(allowed) == "1")) return {};
  const char* version = PMIx_Get_version();
  if (pmix_safety(version, "") != PmixSafety::kExposed) return {};  // without a look at the package
  if (const auto refusal = pmix_refusal(version, pmix_package_version(library_path())))
    return fail(ErrorCode::kUnavailable, *refusal);
  return {};
}

}  // namespace

Result<std::unique_ptr<PmixServer>> PmixServer::start(EventLoop& loop, const std::string& directory,
                                                      const std::string& hostname, OnAbort on_abort) {
  DDL_TRY(check_safety());
  auto server = std::make_unique<LibraryServer>(loop, directory, std::move(on_abort));
  if (auto status = server->initialise(hostname); !status) {
    return fail(std::move(status.error()).during("starting the PMIx server"));
  }
  return std::unique_ptr<PmixServer>(std::move(server));
}

}  // namespace ddl::launcher
