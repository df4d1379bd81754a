#include "cluster/harness/cluster.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "base/text.h"
#include "support/catch.h"

namespace ddl::cluster {
namespace {

// The script's state directory, which exists only on the head.
constexpr const char* kInside = "/run/ddl-cluster";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool is_required() { return environment("DDL_REQUIRE_CLUSTER") == "1"; }

Cluster::~Cluster() {
  while (!undo_.empty()) {
    const auto words = undo_.back().words;
    undo_.pop_back();
    try {
      run(words);
    } catch (...) {  // already counted as a failure of the test case
    }
  }
}

std::vector<std::string> Cluster::hosts() {
  std::vector<std::string> hosts;
  const std::string names = e2e::bytes_of(std::string(kInside) + "/hosts");
  for (const auto line : split(names, '\n')) {
    if (!line.empty()) hosts.emplace_back(line);
  }
  return hosts;
}

pid_t Cluster::first_process(const std::string& host) {
  if (host == "head") return 1;
  const std::string file = std::string(kInside) + "/pid/" + host;
  if (::access(file.c_str(), R_OK) != 0) return 0;
  const std::string identity = e2e::bytes_of(file);  // "number namespace"
  return static_cast<pid_t>(parse_integer(split(identity, ' ').front()).value_or(0));
}

std::string Cluster::path_on(const std::string& host, const std::string& path) {
  return "/proc/" + std::to_string(first_process(host)) + "/root" + path;
}

void Cluster::kill(const std::string& host) {
  undo_.push_back({{"kill", host}, {"restart", host}});
  run({"kill", host});
}

void Cluster::kill_for_good(const std::string& host) { run({"kill", host}); }

void Cluster::restart(const std::string& host) {
  std::erase_if(undo_, [&](const Undo& undo) { return undo.words.back() == host; });
  run({"restart", host});
}

void Cluster::partition(const std::string& host) {
  undo_.push_back({{"partition", host}, {"heal", host}});
  run({"partition", host});
}

void Cluster::heal(const std::string& host) {
  std::erase_if(undo_, [&](const Undo& undo) {
    return undo.words == std::vector<std::string>{"heal", host};
  });
  run({"heal", host});
}

void Cluster::partition(const std::string& host, const std::string& other) {
  undo_.push_back({{"partition", host, other}, {"heal", host, other}});
  run({"partition", host, other});
}

void Cluster::heal(const std::string& host, const std::string& other) {
  std::erase_if(undo_, [&](const Undo& undo) {
    return undo.words == std::vector<std::string>{"heal", host, other};
  });
  run({"heal", host, other});
}

void Cluster::fill(const std::string& host) {
  undo_.push_back({{"fill", host}, {"drain", host}});
  run({"fill", host});
}

void Cluster::cover(const std::string& host, const std::string& path, const std::string& file) {
  run({"cover", host, path, file});
  undo_.push_back({{"cover", host, path, file}, {"cover", host, path, "--undo"}});
}

void Cluster::twin(const std::string& host) {
  run({"twin", host});
  undo_.push_back({{"twin", host}, {"twin", host, "--undo"}});
}

void Cluster::on_host(const std::string& host, const std::vector<std::string>& command) {
  std::vector<std::string> words = {"exec", host};
  words.insert(words.end(), command.begin(), command.end());
  run(words);
}

void Cluster::run(const std::vector<std::string>& words) {
  e2e::Command command;
  command.argv = words;
  command.argv.insert(command.argv.begin(), DDL_CLUSTER_SCRIPT);
  e2e::Job job(scratch_, command);
  const int status = job.wait();
  INFO(join(words, " ") << " printed: " << job.out() << job.err());
  REQUIRE(status == 0);
}

std::string tested_login() {
  const std::string login = environment("DDL_CLUSTER_LOGIN");
  return login.empty() ? "root" : login;
}

e2e::Command as_login(const std::string& login, std::vector<std::string> argv, const std::string& host) {
  e2e::Command command;
  command.argv = {DDL_CLUSTER_SCRIPT, "exec", "--user", login, host};
  command.argv.insert(command.argv.end(), argv.begin(), argv.end());
  return command;
}

SharedScratch::SharedScratch() : e2e::Scratch("/home/shared") {
  if (::chmod(path().c_str(), 0755) != 0) throw std::runtime_error("chmod " + path());
}

}  // namespace ddl::cluster
