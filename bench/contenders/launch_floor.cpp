// The minimal launcher: it starts processes and waits for them. No launcher can be faster.
//
//   launch_floor spawn N PROGRAM [ARGUMENT...]   starts N copies, each with its number in DDL_BENCH_RANK
//   launch_floor ssh HOST,HOST... COMMAND...     runs the command on every host, one ssh each, all at once
//
// Exit status: 0 if all processes exited with 0, otherwise 1; 2 for wrong usage, 127 if one cannot be started.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

bool start(char* const* words) {
  // Not by Child::start(): its preparations and its error pipe would be measured, too.
  pid_t pid = -1;
  if (::posix_spawnp(&pid, words[0], nullptr, nullptr, words, environ) == 0) return true;
  std::perror(words[0]);
  return false;
}

bool start_copies(int count, char** words) {
  for (int i = 0; i < count; ++i) {
    ::setenv("DDL_BENCH_RANK", std::to_string(i).c_str(), 1);
    if (!start(words)) return false;
  }
  return true;
}

bool start_on_hosts(const char* names, char** words) {
  std::string command = words[0];
  for (int i = 1; words[i] != nullptr; ++i) command += std::string(" ") + words[i];
  std::istringstream hosts(names);
  for (std::string host; std::getline(hosts, host, ',');) {
    std::vector<std::string> texts{"ssh", "-n", "-T", "-o", "BatchMode=yes", host, command};
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    if (!start(pointers.data())) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 3 ? argv[1] : "";
  if (mode != "ssh" && (mode != "spawn" || std::atoi(argv[2]) < 1)) {
    std::fprintf(
        stderr,
        "usage: launch_floor spawn N PROGRAM [ARGUMENT...], or launch_floor ssh HOST,HOST... COMMAND...\n");
    return 2;
  }
  if (!(mode == "ssh" ? start_on_hosts(argv[2], argv + 3) : start_copies(std::atoi(argv[2]), argv + 3)))
    return 127;
  int status = 0, code = 0;
  while (::wait(&status) > 0) {
    if (status != 0) code = 1;
  }
  return code;
}
