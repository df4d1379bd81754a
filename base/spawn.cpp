#include "base/spawn.h"

#include <spawn.h>
#include <unistd.h>

#include <csignal>

#include "base/c_strings.h"

namespace ddl {
namespace {

/// posix_spawn's two settings, freed in the end.
class SpawnSettings {
 public:
  explicit SpawnSettings(const StandardStreams& streams) {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_init(&actions_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawn_file_actions_adddup2(&actions_, streams.in, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, streams.out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, streams.err, STDERR_FILENO);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

using Entries = std::optional<std::vector<std::string>>;

/// The pointers lead into the entries, which must outlive them.
std::vector<char*> pointers_to(const Entries& environment) {
  return environment ? c_strings(*environment) : std::vector<char*>{};
}
std::vector<char*> pointers_to(const Entries&& environment) = delete;

}  // namespace

Result<pid_t> spawn(const std::vector<std::string>& words, const StandardStreams& streams,
                    const std::optional<std::vector<std::string>>& environment) {
  const SpawnSettings settings(streams);
  const auto argv = c_strings(words);
  const auto variables = pointers_to(environment);
  pid_t pid = 0;
  const int refused = ::posix_spawnp(&pid, argv[0], settings.actions(), settings.attributes(), argv.data(),
                                     environment ? variables.data() : environ);
  if (refused != 0) return fail(errno_error("starting " + words.front(), refused));
  return pid;
}

Error become(const std::vector<std::string>& words,
             const std::optional<std::vector<std::string>>& environment) {
  const auto argv = c_strings(words);
  const auto variables = pointers_to(environment);
  ::execvpe(argv[0], argv.data(), environment ? variables.data() : environ);
  return errno_error("executing " + words.front(), errno);
}

}  // namespace ddl
