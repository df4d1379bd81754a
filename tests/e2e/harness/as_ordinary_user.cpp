// as_ordinary_user TREE PROGRAM ARGS...: as root, runs a program as the user "nobody". TREE is the folder that
// contains the program and all files that it needs. If it is not run by root, or if "nobody" cannot reach TREE,
// prints one line that begins with "SKIPPED: ".
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;

// The first folder in the path of tree that other users may not search; "" if there is none.
fs::path closed_folder(const fs::path& tree) {
  fs::path way;
  for (const fs::path& part : tree) {
    way /= part;
    struct stat status {};
    if (::stat(way.c_str(), &status) != 0 || (status.st_mode & S_IXOTH) == 0) return way;
  }
  return {};
}

// A clone in root's home folder is not accessible to other users. In a mount namespace of this process, an empty
// folder that all may search hides that folder, and the tree is mounted in it under its usual path.
bool make_reachable(const fs::path& tree) {
  const fs::path closed = closed_folder(tree);
  if (closed.empty()) return true;
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return false;
  // Opened in the new namespace: a mount of the previous one cannot be bound here.
  const int fd = ::open(tree.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || ::mount("none", closed.c_str(), "tmpfs", 0, "mode=755,size=1m") != 0) return false;
  std::error_code error;
  fs::create_directories(tree, error);
  const std::string source = "/proc/self/fd/" + std::to_string(fd);
  return !error && ::mount(source.c_str(), tree.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "as_ordinary_user TREE PROGRAM ARGS...\n");
    return 2;
  }
  const char* program = argv[2];
  if (::geteuid() != 0) {
    std::printf("SKIPPED: the tests run as an ordinary user anyway\n");
    return 0;
  }
  const passwd* user = ::getpwnam("nobody");
  if (user == nullptr) {
    std::printf("SKIPPED: there is no user nobody here\n");
    return 0;
  }
  if (!make_reachable(argv[1])) {
    std::printf("SKIPPED: the user nobody may not enter %s, and mounting it elsewhere: %s\n", argv[1],
                std::strerror(errno));
    return 0;
  }
  if (::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0 ||
      ::chdir("/tmp") != 0) {
    std::perror("as_ordinary_user: changing to nobody");
    return 1;
  }
  ::setenv("HOME", "/tmp", 1);
  ::setenv("USER", "nobody", 1);
  ::setenv("LOGNAME", "nobody", 1);
  ::execv(program, argv + 2);
  if (errno == EACCES) {
    std::printf("SKIPPED: the user nobody may not execute %s\n", program);
    return 0;
  }
  std::fprintf(stderr, "as_ordinary_user: %s: %s\n", program, std::strerror(errno));
  return 1;
}
