#include "launcher/fleet/ssh.h"

#include <algorithm>

#include "base/text.h"
#include "support/catch.h"

using namespace ddl::launcher;

namespace {

AllocatedNode node_called(const std::string& name) {
  AllocatedNode node;
  node.name = name;
  return node;
}

SshSettings settings() {
  SshSettings settings;
  settings.remote_path = "/opt/ddl/bin/ddlrun";
  return settings;
}

bool has_pair(const std::vector<std::string>& words, const std::string& first, const std::string& second) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == first && words[i + 1] == second) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("ssh has the options of a plain pipe, and the host's name follows the last option") {
  const auto words = ssh_command(settings(), node_called("node3"), "nonce");
  REQUIRE(words);
  CHECK(words->front() == "ssh");
  for (const char* option :
       {"BatchMode=yes", "ClearAllForwardings=yes", "RemoteCommand=none", "ConnectTimeout=30"})
    CHECK(has_pair(*words, "-o", option));
  CHECK(std::find(words->begin(), words->end(), "-T") != words->end());
  const std::vector<std::string> end(words->end() - 3, words->end());
  CHECK(end == std::vector<std::string>{"--", "node3", "exec /opt/ddl/bin/ddlrun --agent nonce"});
  for (const auto& word : *words) CHECK_THAT(word, !Catch::Contains("StrictHostKeyChecking"));
}

TEST_CASE("user, port, key and further arguments are passed; a host's own port wins") {
  SshSettings given = settings();
  given.port = 2222;
  given.identity_file = "/keys/cluster";
  given.args = {"-v", "-o", "Compression=yes"};
  AllocatedNode node = node_called("node3");
  auto words = ssh_command(given, node, "nonce");
  REQUIRE(words);
  CHECK(has_pair(*words, "-p", "2222"));
  CHECK(has_pair(*words, "-i", "/keys/cluster"));
  CHECK(has_pair(*words, "-o", "Compression=yes"));
  node.port = 23;
  node.user = "ada";
  words = ssh_command(given, node, "nonce");
  REQUIRE(words);
  CHECK(has_pair(*words, "-p", "23"));
  CHECK_FALSE(has_pair(*words, "-p", "2222"));
  CHECK(has_pair(*words, "-l", "ada"));
}

TEST_CASE("a path with blanks is quoted for every login shell; one that cannot be quoted is refused") {
  SshSettings given = settings();
  given.remote_path = "/opt/my tools/$x/ddlrun";
  const auto words = ssh_command(given, node_called("a"), "n");
  REQUIRE(words);
  CHECK(words->back() == "exec '/opt/my tools/$x/ddlrun' --agent n");
  for (const char* path : {"/opt/it's/ddlrun", "/opt/a!b/ddlrun", "/opt/a\\b", "/opt/a\nb"}) {
    CAPTURE(path);
    given.remote_path = path;
    const auto refused = ssh_command(given, node_called("a"), "n");
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().message(), Catch::Contains("--remote-path"));
  }
}

TEST_CASE("a launch agent has the user's words with the host in them, followed by ddlrun's") {
  SshSettings given = settings();
  given.launch_agent = {"docker", "exec", "-i", "box-%h", "env", "A=%h%h"};
  const auto words = ssh_command(given, node_called("n%h"), "nonce");
  REQUIRE(words);
  CHECK(*words == std::vector<std::string>{"docker", "exec", "-i", "box-n%h", "env", "A=n%hn%h",
                                           "/opt/ddl/bin/ddlrun", "--agent", "nonce"});
}
