#include "launcher/node/name_lookup.h"

#include <netdb.h>

#include <array>
#include <atomic>
#include <memory>
#include <system_error>
#include <thread>

namespace ddl::launcher {
namespace {

void look_up_name(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return;
  std::array<char, NI_MAXHOST> name;
  (void)::getnameinfo(found->ai_addr, found->ai_addrlen, name.data(), name.size(), nullptr, 0, 0);
  ::freeaddrinfo(found);
}

}  // namespace

NameLookup::Settings::Settings() : look_up(look_up_name) {}

void NameLookup::start(const std::string& address) {
  // The thread may outlive this object, since nothing ends a call of getnameinfo().
  auto is_answered = std::make_shared<std::atomic<bool>>(false);
  try {
    std::thread([is_answered, address, look_up = settings_.look_up] {
      look_up(address);
      *is_answered = true;
    }).detach();
  } catch (const std::system_error&) {
    return;
  }
  timer_ = loop_.after(settings_.patience, [this, is_answered, address] {
    if (!*is_answered) on_slow_(address);
  });
}

}  // namespace ddl::launcher
