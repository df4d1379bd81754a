// as_ordinary_user PROGRAM ARGS...: as root, runs a program as nobody. Otherwise, or where nobody cannot reach the
// program, prints one line that begins with "SKIPPED: ", for ctest.
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "as_ordinary_user PROGRAM ARGS...\n");
    return 2;
  }
  if (::geteuid() != 0) {
    std::printf("SKIPPED: the tests run as an ordinary user anyway\n");
    return 0;
  }
  const passwd* user = ::getpwnam("nobody");
  if (user == nullptr) {
    std::printf("SKIPPED: there is no user nobody here\n");
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
  ::execv(argv[1], argv + 1);
  if (errno == EACCES) {
    std::printf("SKIPPED: the user nobody may not execute %s\n", argv[1]);
    return 0;
  }
  std::fprintf(stderr, "as_ordinary_user: %s: %s\n", argv[1], std::strerror(errno));
  return 1;
}
