// The names of hosts, which libpmix must give back to ranks as it got them.
#include <pmix.h>
#include <pmix_server.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"
#include "launcher/pmix/pmix_info.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace ddl::launcher;

namespace {

constexpr std::size_t kMaxHostName = 64;  // HOST_NAME_MAX of Linux, which has names of this length

/// A name of each length, made of a text that is repeated.
std::vector<std::string> names_of(const std::string& first, const std::string& repeated) {
  std::vector<std::string> names;
  for (std::size_t length = first.size() + 1; length <= kMaxHostName; ++length) {
    std::string name = first;
    while (name.size() < length) name += repeated[(name.size() - first.size()) % repeated.size()];
    names.push_back(name);
  }
  return names;
}

JobLaunch job_on(const std::vector<std::string>& names, const std::string& id) {
  JobLaunch job;
  job.job_id = id;
  job.num_ranks = static_cast<int>(names.size());
  job.node_names = names;
  for (int rank = 0; rank < job.num_ranks; ++rank) job.node_ranks.push_back({rank});
  return job;
}

/// What libpmix makes of the nodes of a job: "" if it has them as they were given, else a sentence.
std::string registered(const std::vector<std::string>& names, const std::string& id) {
  const JobLaunch job = job_on(names, id);
  auto infos = job_info(job, 0, "/tmp");
  if (!infos) return infos.error().message();
  pmix_nspace_t nspace{};
  PMIX_LOAD_NSPACE(nspace, id.c_str());
  const auto status = PMIx_server_register_nspace(nspace, 1, infos->data(), infos->size(), nullptr, nullptr);
  if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) return PMIx_Error_string(status);
  char* list = nullptr;
  if (PMIx_Resolve_nodes(nspace, &list) != PMIX_SUCCESS || list == nullptr)
    return names[0] + ": no list of nodes";
  const std::string wanted = ddl::join(names, ","), found = list;
  std::free(list);
  PMIx_server_deregister_nspace(nspace, nullptr, nullptr);
  return found == wanted ? "" : wanted + " became " + found;
}

int ask_libpmix(const std::string& directory) {
  static pmix_server_module_t module{};
  pmix_info_t infos[2];
  for (auto& info : infos) PMIX_INFO_CONSTRUCT(&info);
  PMIX_INFO_LOAD(&infos[0], PMIX_SERVER_TMPDIR, directory.c_str(), PMIX_STRING);
  PMIX_INFO_LOAD(&infos[1], PMIX_SYSTEM_TMPDIR, directory.c_str(), PMIX_STRING);
  if (PMIx_server_init(&module, infos, 2) != PMIX_SUCCESS) return 2;
  const std::pair<const char*, const char*> shapes[] = {
      {"", "a"},     {"", "Z"},    {"", "1"},    {"a", "0123456789"}, {"node", "9"},   {"n-", "-"},
      {"n_", "_"},   {"n.", "a."}, {"n", "a1"},  {"n", "1a-"},        {"pmix", "b"},   {"raw", "c"},
      {"blob", "d"}, {"n0", "0"},  {"r1n", "1"}, {"X-1.", "y2"},      {"n1.", "site."}};
  int jobs = 0, wrong = 0;
  for (const auto& [first, repeated] : shapes) {
    const std::string difference = registered(names_of(first, repeated), "job-" + std::to_string(++jobs));
    if (difference.empty()) continue;
    ++wrong;
    std::fprintf(stderr, "%s\n", difference.c_str());
  }
  PMIx_server_finalize();
  return wrong == 0 ? 0 : 1;
}

}  // namespace

TEST_CASE("libpmix gives back the name of every host, of all lengths and shapes") {
  const ddl::test::TemporaryDirectory directory;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(ask_libpmix(directory.path()));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
