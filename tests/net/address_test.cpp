#include "net/address.h"

#include "support/catch.h"

using namespace ddl::net;

TEST_CASE("addresses become text and back") {
  for (const char* text :
       {"192.0.2.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[2001:db8::1]:443", "[::]:0"}) {
    CAPTURE(text);
    const auto address = SocketAddress::parse(text);
    REQUIRE(address);
    CHECK(address->to_text() == text);
    const auto copy = SocketAddress::from(address->data());
    REQUIRE(copy);
    CHECK(copy->to_text() == text);
  }
  CHECK(SocketAddress::parse("[2001:db8::1]:443")->host_text() == "2001:db8::1");
  CHECK(SocketAddress::parse("192.0.2.1:80")->with_port(99).to_text() == "192.0.2.1:99");
  CHECK(SocketAddress::parse("192.0.2.1:80")->port() == 80);
}

TEST_CASE("text that is not an address is refused") {
  for (const char* text : {"", ":", "192.0.2.1", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.1:-1",
                           "192.0.2.1:+1", "192.0.2.1:80 ", "192.0.2:80", "localhost:80", "2001:db8::1:80",
                           "[2001:db8::1]", "[2001:db8::1]80", "[]:80", "[:80", "[fe80::1%eth0]:80"}) {
    CAPTURE(text);
    CHECK_FALSE(SocketAddress::parse(text));
  }
  using std::string_view_literals::operator""sv;
  for (const std::string_view with_zero : {"192.0.2.1\0x:80"sv, "[2001:db8::1\0x]:80"sv})
    CHECK_FALSE(SocketAddress::parse(with_zero));
  CHECK_FALSE(SocketAddress::from(nullptr));
  const sockaddr unix_address{AF_UNIX, {}};
  CHECK_FALSE(SocketAddress::from(&unix_address));
}

TEST_CASE("kinds of addresses are distinguished") {
  const auto parse = [](const char* text) { return *SocketAddress::parse(text); };
  CHECK(parse("127.3.0.1:1").is_loopback());
  CHECK(parse("[::1]:1").is_loopback());
  CHECK_FALSE(parse("128.0.0.1:1").is_loopback());
  CHECK_FALSE(parse("[2001:db8::1]:1").is_loopback());
  CHECK(parse("169.254.7.7:1").is_link_local());
  CHECK(parse("[fe80::1]:1").is_link_local());
  CHECK_FALSE(parse("169.253.7.7:1").is_link_local());
}

TEST_CASE("two addresses share a network if their prefixes are equal") {
  const auto parse = [](const char* text) { return *SocketAddress::parse(text); };
  CHECK(parse("10.1.2.3:1").shares_prefix(parse("10.1.9.9:2"), 16));
  CHECK_FALSE(parse("10.1.2.3:1").shares_prefix(parse("10.1.9.9:2"), 24));
  CHECK(parse("10.1.2.3:1").shares_prefix(parse("10.1.3.3:1"), 23));
  CHECK_FALSE(parse("10.1.2.3:1").shares_prefix(parse("10.1.4.3:1"), 23));
  CHECK(parse("10.1.2.3:1").shares_prefix(parse("10.1.2.3:2"), 32));
  CHECK(parse("10.1.2.3:1").shares_prefix(parse("192.0.2.1:1"), 0));
  CHECK_FALSE(parse("10.1.2.3:1").shares_prefix(parse("10.1.2.3:1"), 33));
  CHECK(parse("[2001:db8::1]:1").shares_prefix(parse("[2001:db8::2]:1"), 64));
  CHECK_FALSE(parse("[2001:db8::1]:1").shares_prefix(parse("[2001:db9::1]:1"), 64));
  CHECK_FALSE(parse("[::1]:1").shares_prefix(parse("127.0.0.1:1"), 0));
}

namespace {

std::vector<InterfaceAddress> interfaces() {
  const auto entry = [](const char* name, const char* address, int prefix) {
    return InterfaceAddress{name, *SocketAddress::parse(address), prefix};
  };
  return {entry("lo", "127.0.0.1:0", 8),        entry("eth0", "192.0.2.1:0", 24),
          entry("ib0", "10.0.0.1:0", 8),        entry("lo", "[::1]:0", 128),
          entry("eth0", "[2001:db8::1]:0", 64), entry("eth0", "[fe80::1]:0", 64)};
}

std::string offered(const std::vector<std::string>& names) {
  const auto usable = usable_addresses(interfaces(), names);
  if (!usable) return usable.error().message();
  std::string text;
  for (const auto& entry : *usable) text += entry.address.host_text() + " ";
  return text;
}

}  // namespace

TEST_CASE("all addresses are offered but loopback and link-local ones") {
  CHECK(offered({}) == "192.0.2.1 10.0.0.1 2001:db8::1 ");
  CHECK(offered({"ib0"}) == "10.0.0.1 ");
  CHECK(offered({"ib0", "eth0"}) == "192.0.2.1 10.0.0.1 2001:db8::1 ");
  CHECK(offered({"ib0", "hsn0"}) == "10.0.0.1 ");  // a name that other hosts have
  CHECK(offered({"lo"}) == "127.0.0.1 ::1 ");
  CHECK(offered({"eth1"}) ==
        "no network interface \"eth1\" with an address is up here; there are: lo, eth0, ib0");
  CHECK(offered({"hsn0", "hsn1"}) ==
        "no network interface \"hsn0\" or \"hsn1\" with an address is up here; there are: lo, eth0, ib0");
  const auto nothing = usable_addresses({interfaces()[0], interfaces()[5]}, {});
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().message() ==
        "no address that other hosts could use; interfaces that are up: lo, eth0");
}

TEST_CASE("this machine has addresses") {
  const auto all = local_addresses();
  REQUIRE(all);
  for (const auto& entry : *all) {
    CHECK_FALSE(entry.interface.empty());
    CHECK(entry.address.port() == 0);
    CHECK(entry.address.shares_prefix(entry.address, entry.prefix_bits));
    if (entry.address.to_text() == "127.0.0.1:0") CHECK(entry.prefix_bits == 8);
  }
}
