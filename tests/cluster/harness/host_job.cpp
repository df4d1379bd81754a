#include "cluster/harness/host_job.h"

#include <pwd.h>
#include <unistd.h>

#include <stdexcept>

#include "cluster/harness/cluster.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

// The login becomes the owner of the scratch directory.
e2e::Command command_of(const e2e::Scratch& scratch, std::vector<std::string> arguments,
                        e2e::Command settings) {
  const std::string login = tested_login();
  const passwd* account = ::getpwnam(login.c_str());
  if (account == nullptr) throw std::runtime_error("no login " + login);
  for (const std::string& folder : {scratch.path(), scratch.make_directory("tmp")}) {
    if (::chown(folder.c_str(), account->pw_uid, account->pw_gid) != 0)
      throw std::runtime_error("chown " + folder);
  }
  // Ranks start in the working directory of ddlrun, so all hosts must have it.
  if (settings.directory.empty()) settings.directory = "/home/shared";
  for (std::string& word : e2e::ddlrun(std::move(arguments)).argv) settings.argv.push_back(std::move(word));
  settings.argv = as_login(login, std::move(settings.argv)).argv;
  return settings;
}

}  // namespace

HostJob::HostJob(std::vector<std::string> arguments) : HostJob(std::move(arguments), e2e::Command{}) {}

HostJob::HostJob(std::vector<std::string> arguments, e2e::Command settings)
    : job_(scratch_, command_of(scratch_, std::move(arguments), std::move(settings))) {}

int HostJob::wait() {
  const int status = job_.wait();
  INFO("exit code " << status << ", standard error:\n" << err());
  before_.require_nothing_left();
  REQUIRE(e2e::names_in(scratch_.path("tmp")) == std::vector<std::string>{});
  return status;
}

std::vector<HostProcess> HostJob::processes(const std::string& name, const std::string& host) const {
  return before_.new_processes([&](const HostProcess& process) {
    return process.name == name && (host.empty() || process.host == host);
  });
}

}  // namespace ddl::cluster
