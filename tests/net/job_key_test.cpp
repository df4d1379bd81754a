#include "net/job_key.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "support/catch.h"

using namespace ddl;
using namespace ddl::net;

namespace {

bool same(const JobKey& a, const JobKey& b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
}

std::string refusal(int fd) {
  const auto key = JobKey::from_memfd(fd);
  return key ? "taken" : key.error().message();
}

}  // namespace

TEST_CASE("a key becomes text or memory and back, repeatedly") {
  const auto key = JobKey::random();
  REQUIRE(key);
  CHECK_FALSE(same(*key, *JobKey::random()));
  CHECK(key->to_hex().size() == 64);
  CHECK(same(*key, *JobKey::from_hex(key->to_hex())));
  CHECK(same(*key, *JobKey::from_bytes(key->bytes())));

  const auto memfd = key->to_memfd();
  REQUIRE(memfd);
  // As it would be inherited.
  REQUIRE(::fcntl(memfd->get(), F_SETFD, 0) == 0);
  for (int time = 0; time < 2; ++time) {
    const auto read = JobKey::from_memfd(memfd->get());
    REQUIRE(read);
    CHECK(same(*key, *read));
    CHECK((::fcntl(memfd->get(), F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(::ftruncate(memfd->get(), 0) != 0);
  CHECK(::pwrite(memfd->get(), "x", 1, 0) < 0);
}

TEST_CASE("a descriptor that holds no key is refused and not changed") {
  CHECK_FALSE(JobKey::from_hex(""));
  CHECK_FALSE(JobKey::from_hex(std::string(63, 'a')));
  CHECK_FALSE(JobKey::from_hex(std::string(64, 'g')));
  CHECK_FALSE(JobKey::from_bytes(std::vector<std::byte>(31)));

  CHECK(refusal(-1).find("it is not open") != std::string::npos);
  const UniqueFd file(::open("/dev/null", O_RDONLY));
  CHECK(refusal(file.get()).find("it is not sealed memory") != std::string::npos);
  CHECK((::fcntl(file.get(), F_GETFD) & FD_CLOEXEC) == 0);
  const UniqueFd unsealed(::memfd_create("test", MFD_ALLOW_SEALING));
  CHECK(refusal(unsealed.get()).find("it is not sealed memory") != std::string::npos);
  REQUIRE(::ftruncate(unsealed.get(), 33) == 0);
  REQUIRE(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  CHECK(refusal(unsealed.get()).find("it has 33 bytes") != std::string::npos);
}

TEST_CASE("a key is in no core dump and not in a forked child") {
  const auto key = JobKey::random();
  REQUIRE(key);
  // smaps(5): the flags "dd" (do not dump) and "wf" (wipe on fork) of the mapping that holds the key.
  const auto address = reinterpret_cast<std::uintptr_t>(key->bytes().data());
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false, found = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) == 2) inside = begin <= address && address < end;
    if (!inside || line.rfind("VmFlags:", 0) != 0) continue;
    found = true;
    CHECK(line.find(" dd") != std::string::npos);
    CHECK(line.find(" wf") != std::string::npos);
  }
  CHECK(found);

  const pid_t child = ::fork();
  if (child == 0) {
    const auto bytes = key->bytes();
    ::_exit(std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{}; }) ? 0
                                                                                                        : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
