// ssh_floor HOST,HOST... COMMAND...: runs the command on every host, one ssh each, all at once, and waits for them.
// A launcher over ssh that does nothing else.
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "bench/contenders/wait_for_all.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: ssh_floor HOST,HOST... COMMAND...\n");
    return 2;
  }
  std::string command = argv[2];
  for (int i = 3; i < argc; ++i) command += std::string(" ") + argv[i];
  std::istringstream hosts(argv[1]);
  for (std::string host; std::getline(hosts, host, ',');) {
    std::vector<std::string> words{"ssh", "-n", "-T", "-o", "BatchMode=yes", host, command};
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_t pid = -1;
    if (::posix_spawnp(&pid, "ssh", nullptr, nullptr, pointers.data(), environ) != 0) {
      std::perror("ssh");
      return 127;
    }
  }
  return ddl::bench::wait_for_all();
}
